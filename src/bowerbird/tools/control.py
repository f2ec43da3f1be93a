"""What a tool asks of the loop: a result may carry one of these, and the loop acts on it.

Here: the requests as values. Not here: what the loop does about them (`agent/`).
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CompactNow:
    """Compact the sent view after this batch; `focus` reaches the summariser."""

    focus: str = ""


@dataclass(frozen=True, slots=True)
class EnterPlan:
    """Go to plan mode."""


@dataclass(frozen=True, slots=True)
class ExitPlan:
    """End the turn with `plan_ready`; `plan` waits for a person."""

    plan: str


@dataclass(frozen=True, slots=True)
class SwitchModel:
    """Answer from the next model call on with this tier."""

    tier: str


@dataclass(frozen=True, slots=True)
class AskUser:
    """Pause the turn until a person answers; the answer becomes the call's result."""

    question: str
    options: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class EndTurn:
    """End the turn after this batch, as a reply without tool calls would."""


Control = CompactNow | EnterPlan | ExitPlan | SwitchModel | AskUser | EndTurn
