"""What a tool's result may ask of the loop, and what that changes (TO-34, TO-35, TO-47).

Here: compaction wishes, plan mode, the model's tier. Not here: questions to a person (`asking`), the
tools that ask for these, the decisions they lead to.
"""

from bowerbird.agent.turn_loop.state import Turn
from bowerbird.core.events import ModeChange, ModelSwitch, RunEvent
from bowerbird.tools.control import CompactNow, Control, EndTurn, EnterPlan, ExitPlan, SwitchModel


def apply_control(turn: Turn, control: Control) -> RunEvent | None:
    """Change `turn` as `control` asks and return the step that records it, if any does.

    A switch of tier holds from the next model call on, whatever else runs in the batch.
    """
    match control:
        case CompactNow(focus=focus):
            turn.compact_focus, turn.compact_by = focus, "tool"
        case EnterPlan() if turn.mode != "plan":
            turn.mode = "plan"
            return ModeChange({"enable_plan_mode": True}, "tool")
        case ExitPlan(plan=plan):
            turn.plan = plan
        case EndTurn():
            turn.ending = True
        case SwitchModel(tier=tier) if turn.run.router is not None:
            turn.model, turn.tier = turn.run.router.switch(tier), tier
            return ModelSwitch(tier, "tool")
        case _:
            pass
    return None
