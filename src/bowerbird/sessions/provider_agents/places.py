"""Where the changes of a program's runs are: the branch of a session of the run's owner (PR-20).

Here: which one, making it, and landing it where settings allow that. So they are reviewed, landed and undone
like any session's, and are in every list of sessions. Not here: running the program.
"""

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from bowerbird.core.errors import BowerbirdError, UnknownSession
from bowerbird.core.ids import new_thread_id
from bowerbird.core.threads import to_thread
from bowerbird.providers.contract.errors import AgentSessionError
from bowerbird.providers.contract.types import AgentRequest, BranchRef
from bowerbird.sessions.provider_agents.unreviewed import DOOR, land_unreviewed
from bowerbird.sessions.values import NewSession
from bowerbird.store.journal.outcomes import note_run
from bowerbird.store.rows.sessions import (
    SessionRow,
    find_session,
    get_session,
    insert_session,
    session_of_branch,
)

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from bowerbird.providers.catalogue import CatalogueEntry
    from bowerbird.sessions.branches.branches import Branches
    from bowerbird.sessions.service import SessionService
    from bowerbird.store.rows.providers import ProviderSessionRow
    from bowerbird.store.store import Store
    from bowerbird.workspace import Branch

TITLE_CHARS = 80
FLAG = "provider_agent"  # of a session that a run made: whose work it is

_log = logging.getLogger(__name__)


class BranchPlaces:
    """The branches of programs' runs: each is that of a session of the run's owner. See `registry.Places`.

    Args:
        store, branches, service: of the process. workspace: returns the directory of runs that name none.
    """

    def __init__(
        self,
        store: "Store",
        branches: "Branches",
        service: "SessionService",
        workspace: Callable[[], str],
    ) -> None:
        self._store = store
        self._branches = branches
        self._service = service
        self._own_workspace = workspace

    async def of(
        self, entry: "CatalogueEntry", request: AgentRequest, session: "ProviderSessionRow", owner: str
    ) -> tuple[str, BranchRef]:
        """Return the branch that is asked for, the session's own, a fork of the caller's, or a new one."""
        if request.branch is not None:
            return await self._asked_for(entry, request, request.branch, owner)
        if session.thread_id is not None:
            known = await self._owned(session.thread_id, owner)
            if known is not None and known.branch_id is not None:
                return known.thread_id, BranchRef(known.branch_id)
        caller = request.metadata.get("caller_thread")
        if isinstance(caller, str):
            parent = await self._owned(caller, owner)
            if parent is None:
                raise UnknownSession(f"no session {caller}")
            return await self._forked(entry, request, parent, None)
        workspace = request.metadata.get("workspace")
        made = await self._service.create(
            NewSession(
                owner=owner or None,
                title=_title(entry, request),
                flags={FLAG: entry.name},
                workspace=workspace if isinstance(workspace, str) else self._own_workspace(),
            )
        )
        assert made.branch_id is not None, "a new session has a branch"
        return made.thread_id, BranchRef(made.branch_id)

    async def untouched(self, thread_id: str) -> None:
        """See `registry.Places`: what earlier runs left on the branch is reviewed first."""
        branch = await self._service.branch(thread_id)
        if await to_thread(lambda: branch.changes(ignored=False).paths):
            raise AgentSessionError(
                f"session {thread_id} has changes that nobody has reviewed; land or discard them first"
            )

    async def land(self, thread_id: str, owner: str) -> dict[str, Any]:
        """See `registry.Places`: through the gate of every landing, so that it can be undone."""
        await self._noted(thread_id)
        return await land_unreviewed(self._service, self._branches, thread_id, actor=owner or DOOR)

    async def ran(self, thread_id: str) -> None:
        """Count what a run changed, for lists."""
        try:
            await self._noted(thread_id)
            await self._service.note_changes(thread_id)
        except (BowerbirdError, OSError) as error:  # the run is over: only a count is old
            _log.warning("the changes of session %s were not counted: %s", thread_id, error)

    async def _noted(self, thread_id: str) -> None:
        branch = await self._service.branch(thread_id)
        pending = await to_thread(lambda: branch.changes(ignored=False).paths)

        def note(connection: "Connection") -> None:
            agent = get_session(connection, thread_id).flags.get(FLAG)
            if isinstance(agent, str):
                note_run(connection, thread_id, agent, pending)

        await self._store.write(note)

    async def branch_of(self, request: AgentRequest) -> "Branch":
        """Return the open branch of a run, which `of` has chosen."""
        assert request.branch is not None, "the registry sets it for programs"
        branch_id = request.branch.branch_id
        row = await self._store.read(lambda c: session_of_branch(c, branch_id))
        if row is None:
            raise UnknownSession(f"branch {branch_id} belongs to no session")
        return await self._branches.of(row)

    async def _owned(self, thread_id: str, owner: str) -> "SessionRow | None":
        row = await self._store.read(lambda c: find_session(c, thread_id))
        return row if row is not None and (row.owner or "") == owner else None

    async def _asked_for(
        self, entry: "CatalogueEntry", request: AgentRequest, branch: BranchRef, owner: str
    ) -> tuple[str, BranchRef]:
        row = await self._store.read(lambda c: session_of_branch(c, branch.branch_id))
        if row is None or (row.owner or "") != owner:
            raise UnknownSession(f"no session has the branch {branch.branch_id[:128]}")
        if branch.snapshot_id is None:
            return row.thread_id, branch
        return await self._forked(entry, request, row, branch.snapshot_id)

    async def _forked(
        self, entry: "CatalogueEntry", request: AgentRequest, parent: "SessionRow", snapshot: str | None
    ) -> tuple[str, BranchRef]:
        """Make a session on a fork: the caller's branch stays as it is until somebody merges."""
        name = f"{entry.name} for {parent.thread_id}"
        child = await self._branches.fork(parent, snapshot, name, carry=True)
        row = SessionRow(
            thread_id=new_thread_id(),
            owner=parent.owner,
            title=_title(entry, request),
            flags={FLAG: entry.name},
            workspace=parent.workspace,
            branch_id=child.id,
        )
        await self._store.write(lambda c: insert_session(c, row))
        return row.thread_id, BranchRef(child.id)


def _title(entry: "CatalogueEntry", request: AgentRequest) -> str:
    first = request.prompt.strip().splitlines()[0]
    return f"{entry.display_name}: {first}"[:TITLE_CHARS]
