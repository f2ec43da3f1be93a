"""Whose session it is: another's, a deleted and a malformed id are all the same error (PT-12).

Here: that one check. Not here: roles (`tools.py`).
"""

from typing import TYPE_CHECKING

from bowerbird.core.errors import UnknownSession
from bowerbird.protocols.mcp_server.ground import McpCaller, McpGround
from bowerbird.providers.contract.errors import shown

if TYPE_CHECKING:
    from bowerbird.store.rows.sessions import SessionRow
    from bowerbird.workspace import Branch


def unknown(thread_id: str) -> UnknownSession:
    """Return the error for a session that does not exist for the caller."""
    return UnknownSession(f"Session {shown(thread_id)} not found.")


async def owned_session(ground: McpGround, caller: McpCaller, thread_id: str) -> "SessionRow":
    """Return the caller's own session, whatever their role.

    Raises:
        UnknownSession: there is none with this id.
    """
    row = await ground.sessions.find(thread_id) if thread_id and "\0" not in thread_id else None
    if row is None or row.owner != caller.owner:
        raise unknown(thread_id)
    return row


async def owned_branch(ground: McpGround, caller: McpCaller, thread_id: str) -> "Branch":
    """Return the branch of the caller's own session, also of a session of `execute_agent`.

    Raises:
        UnknownSession: there is no such session, or it has no branch.
    """
    if ground.agent_branch is not None:
        branch = await ground.agent_branch(thread_id, caller)
        if branch is not None:
            return branch
    row = await owned_session(ground, caller, thread_id)
    if row.branch_id is None:
        raise UnknownSession(f"Session {shown(thread_id)} has no branch.")
    return await ground.sessions.branch(row.thread_id)
