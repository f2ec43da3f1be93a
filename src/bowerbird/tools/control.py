"""What a tool asks of the loop: a result may carry one of these, and the loop acts on it.

Here: the requests as values. Not here: what the loop does about them (`agent/`).
"""

import msgspec


class CompactNow(msgspec.Struct, frozen=True):
    """Compact the sent view after this batch; `focus` reaches the summariser."""

    focus: str = ""


class EnterPlan(msgspec.Struct, frozen=True):
    """Go to plan mode."""


class ExitPlan(msgspec.Struct, frozen=True):
    """End the turn with `plan_ready`; `plan` waits for a person."""

    plan: str


class SwitchModel(msgspec.Struct, frozen=True):
    """Answer from the next model call on with this tier."""

    tier: str


class AskUser(msgspec.Struct, frozen=True):
    """Pause the turn until a person answers; the answer becomes the call's result."""

    question: str
    options: tuple[str, ...] = ()


class EndTurn(msgspec.Struct, frozen=True):
    """End the turn after this batch, as a reply without tool calls would."""


Control = CompactNow | EnterPlan | ExitPlan | SwitchModel | AskUser | EndTurn
