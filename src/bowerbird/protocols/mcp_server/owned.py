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


OF_AGENTS = "sess_"  # begins the ids that execute_agent returns


def unknown(thread_id: str) -> UnknownSession:
    """Return the error for a session that does not exist for the caller."""
    return UnknownSession(f"Session {shown(thread_id)} not found.")


async def owned_session(ground: McpGround, caller: McpCaller, thread_id: str) -> "SessionRow":
    """Return the caller's own session, whatever their role; of a session of an agent, that of its changes.

    Raises:
        UnknownSession: there is none with this id.
    """
    found: str | None = thread_id if thread_id and "\0" not in thread_id else None
    if found is not None and found.startswith(OF_AGENTS):
        found = await ground.agent_thread(found, caller)
    row = await ground.sessions.find(found) if found is not None else None
    if row is None or row.owner != caller.owner:
        raise unknown(thread_id)
    return row


async def owned_branch(ground: McpGround, caller: McpCaller, thread_id: str) -> "Branch":
    """Return the branch of the caller's own session.

    Raises:
        UnknownSession: there is no such session, or it has no branch.
    """
    row = await owned_session(ground, caller, thread_id)
    if row.branch_id is None:
        raise UnknownSession(f"Session {shown(thread_id)} has no branch.")
    return await ground.sessions.branch(row.thread_id)
