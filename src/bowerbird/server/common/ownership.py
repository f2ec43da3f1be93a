"""Whose conversation it is (SV-5, SV-56): another's, a deleted and a malformed id are all 404.

Here: that one check and the error. Not here: roles (`access/`).
"""

from typing import TYPE_CHECKING

from bowerbird.server.common.errors import Problem, problem
from bowerbird.server.common.json_answers import is_id

if TYPE_CHECKING:
    from bowerbird.server.common.context import Caller, ServerContext
    from bowerbird.sessions.lookup import SessionRow


def unknown(conversation_id: str) -> Problem:
    """Return the error for a conversation that does not exist for the caller."""
    shown = conversation_id if is_id(conversation_id) else "with this id"
    return problem("not_found", f"there is no conversation {shown}")


async def owned_session(
    context: "ServerContext", caller: "Caller", conversation_id: str, *, deleted: bool = False
) -> "SessionRow":
    """Return the caller's session.

    Args:
        deleted: also a deleted one, for restoring it.

    Raises:
        Problem: 404.
    """
    if not is_id(conversation_id):
        raise unknown(conversation_id)
    row = await context.sessions.find(conversation_id, deleted=deleted)
    if row is None or not caller.owns(row.owner):
        raise unknown(conversation_id)
    return row
