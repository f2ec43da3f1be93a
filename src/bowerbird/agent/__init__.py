"""The agent: a value, and the loop that runs it.

Lives here: `Agent`, the loop and its pure decisions (permission, compaction, stuck, continuation),
prompts, structured output. Must not be here: settings, the database, sandboxes, doors: the loop does
no I/O of its own and stores nothing; whoever drives it does (`sessions`, or the library run).
"""

from typing import TYPE_CHECKING

from bowerbird.core.lazy import lazy

if TYPE_CHECKING:
    from bowerbird.agent.agent import Agent
    from bowerbird.agent.context.history import History, HistoryBuilder
    from bowerbird.agent.limits import Limits
    from bowerbird.agent.policy import Policy
    from bowerbird.agent.result import RunDone, RunResult, StepResult
    from bowerbird.agent.turn import StopSignal, TurnRun
    from bowerbird.agent.turn_loop.loop import run_turn

__all__ = [
    "Agent", "History", "HistoryBuilder", "Limits", "Policy", "RunDone", "RunResult", "StepResult",
    "StopSignal", "TurnRun", "run_turn",
]  # fmt: skip

__getattr__, __dir__ = lazy(
    __name__,
    {
        "agent": "Agent",
        "context.history": "History HistoryBuilder",
        "limits": "Limits",
        "policy": "Policy",
        "result": "RunDone RunResult StepResult",
        "turn": "StopSignal TurnRun",
        "turn_loop.loop": "run_turn",
    },
)
