"""Ends that still say something: a summary without tools, and a list when even that fails (AG-43, AG-50).

Here: the last call of a run that has to stop. Not here: why it stops.
"""

from collections import Counter
from typing import Literal

from bowerbird.agent.turn_loop.flow import Flow
from bowerbird.agent.turn_loop.model_call import call_model
from bowerbird.agent.turn_loop.model_step import Ask
from bowerbird.agent.turn_loop.state import Turn
from bowerbird.core.events import Injected
from bowerbird.core.messages import user_text

_ASK = (
    "Stop here: {why}. Do not call tools. Answer the user as far as you can, and say what is done and what "
    "is still open."
)
_WHY = {"max_iterations": "all model calls of this run are used", "stuck": "the same calls keep repeating"}


async def summary_without_tools(turn: Turn, stop: Literal["max_iterations", "stuck"]) -> Flow:
    """End the run with `stop` after one more call without tools."""
    yield Injected("runtime", user_text(_ASK.format(why=_WHY[stop])))
    yield call_model(turn, Ask(tools=False))
    text = turn.reply.message.text if turn.reply is not None else ""
    turn.finish(stop, text.strip() or _what_ran(turn, stop))


def _what_ran(turn: Turn, stop: str) -> str:
    ran = Counter(turn.tools_started)
    tools = ", ".join(f"{name} × {count}" if count > 1 else name for name, count in ran.items())
    return f"Stopped: {_WHY[stop]}, and no summary could be made. Tools that ran: {tools or 'none'}."
