"""The agent: a value, and the loop that runs it.

Lives here: `Agent`, the loop and its pure decisions (permission, compaction, stuck, continuation),
prompts, structured output. Must not be here: settings, the database, sandboxes, doors: the loop does
no I/O of its own and stores nothing; whoever drives it does (`sessions`, or the library run).
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bowerbird.agent.agent import Agent
    from bowerbird.agent.context.history import History, HistoryBuilder
    from bowerbird.agent.limits import Limits
    from bowerbird.agent.policy import Policy
    from bowerbird.agent.result import RunDone, RunResult, StepResult
    from bowerbird.agent.turn import StopSignal, TurnRun
    from bowerbird.agent.turn_loop.loop import run_turn

__all__ = [
    "Agent",
    "History",
    "HistoryBuilder",
    "Limits",
    "Policy",
    "RunDone",
    "RunResult",
    "StepResult",
    "StopSignal",
    "TurnRun",
    "run_turn",
]

_HOMES = {
    "Agent": "agent",
    "History": "context.history",
    "HistoryBuilder": "context.history",
    "Limits": "limits",
    "Policy": "policy",
    "RunDone": "result",
    "RunResult": "result",
    "StepResult": "result",
    "StopSignal": "turn",
    "TurnRun": "turn",
    "run_turn": "turn_loop.loop",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: importing this package costs nothing."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
