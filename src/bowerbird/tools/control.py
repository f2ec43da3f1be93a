"""What a tool asks of the loop: a result may carry one of these, and the loop acts on it.

Here: the requests as values. Not here: what the loop does about them (`agent/`).
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CompactNow:
    """Compact the sent view after this batch; `focus` reaches the summariser (TO-34)."""

    focus: str = ""


@dataclass(frozen=True, slots=True)
class EnterPlan:
    """Go to plan mode (TO-35)."""


@dataclass(frozen=True, slots=True)
class ExitPlan:
    """End the turn with `plan_ready`; `plan` waits for a person (TO-35, AG-64)."""

    plan: str


@dataclass(frozen=True, slots=True)
class SwitchModel:
    """Answer from the next model call on with this tier (TO-47, MO-43)."""

    tier: str


@dataclass(frozen=True, slots=True)
class AskUser:
    """Pause the turn until a person answers; the answer becomes the call's result (TO-36)."""

    question: str
    options: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class EndTurn:
    """End the turn after this batch, as a reply without tool calls would (DE-58, DE-63)."""


Control = CompactNow | EnterPlan | ExitPlan | SwitchModel | AskUser | EndTurn
