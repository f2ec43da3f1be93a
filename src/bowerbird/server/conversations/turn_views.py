"""Turns as REST shows them: no path of this machine in the message of a failure (SV-1, SV-19).

Here: that one change to what `sessions/shown.py` says. Not here: routes, the form.
"""

from typing import TYPE_CHECKING, Any

from bowerbird.server.common.errors import said
from bowerbird.sessions import shown

if TYPE_CHECKING:
    from bowerbird.server.common.context import ServerContext
    from bowerbird.sessions.values import TurnInfo


def turn_row(turn: "TurnInfo") -> dict[str, Any]:
    """Return a turn as lists show it."""
    return _masked(shown.turn_row(turn))


async def answered(context: "ServerContext", turn: "TurnInfo") -> dict[str, Any]:
    """Return how a turn ended or what it waits for, with its final answer; a plan that waits is one."""
    return _masked(await shown.answered(context.sessions, turn))


def _masked(row: dict[str, Any]) -> dict[str, Any]:
    error = row["error"]
    if error is not None and "message" in error:
        return {**row, "error": {**error, "message": said(str(error["message"]))}}
    return row
