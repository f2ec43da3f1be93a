"""The task boards of a process: one per workspace, shared through the store (DE-32 … DE-44).

Here: which board is whose, its changes as one transaction each, its first use, its readable copies,
who hears of a change. Not here: rules (`rules.py`), rows (`store/rows/board.py`), the tools
(`tools/together/board.py`), events to viewers (`app/`).

Copies follow commits: whoever changed something reads the board again under the copies' lock and writes
what it then says, so of two writers the later one leaves the newer state.
"""

import asyncio
import hashlib
import logging
import os
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from sqlalchemy import Connection

from bowerbird.boards.changes import (
    Changed,
    all_shown,
    claim_task,
    create_task,
    import_tasks,
    one_shown,
    release_claims,
    update_task,
)
from bowerbird.boards.files import DIRECTORY, file_content, file_name, read_left, write_files
from bowerbird.boards.rules import TaskChange, TaskData
from bowerbird.core.errors import WorkspaceError
from bowerbird.core.processes.alone import alone_when, claim_at
from bowerbird.core.threads import to_thread
from bowerbird.store.rows.board import boards_of_threads, find_board
from bowerbird.store.rows.sessions import find_session
from bowerbird.tools.result import ToolResult, to_result

if TYPE_CHECKING:
    from bowerbird.store.rows.sessions import SessionRow
    from bowerbird.store.store import Store
    from bowerbird.tools.context import ToolContext
    from bowerbird.workspace import Branch

_log = logging.getLogger(__name__)
_MOST_KEYS = 10_000
_CHILD_MARKS = {"subagent": ".sub", "teammate": ".team."}


class BoardKey(msgspec.Struct, frozen=True):
    """Whose board: a workspace's (`workspace` is its real path), or that of one session without files."""

    name: str
    workspace: Path | None = None


class BoardState(msgspec.Struct, frozen=True):
    """A board at one moment; `revision` 0 before its first use."""

    revision: int
    tasks: tuple[TaskData, ...]


Heard = Callable[[BoardKey, BoardState], None]
Also = Callable[[Connection, TaskData], None]


def board_of(session: "SessionRow") -> BoardKey:
    """Return the board of a session: its workspace's; without one, that of the session itself.

    Subagents and teammates of a session without a workspace share its board.
    """
    return BoardKey(f"session:{_root(session)}") if not session.workspace else board_at(session.workspace)


def board_at(workspace: str) -> BoardKey:
    """Return the board of a directory, however its path is spelled."""
    real = os.path.realpath(workspace)
    return BoardKey(real, Path(real))


def _root(session: "SessionRow") -> str:
    mark = _CHILD_MARKS.get(session.kind)
    return session.thread_id.partition(mark)[0] if mark is not None else session.thread_id


class Boards:
    """Every board that a process works on; made once, belongs to its event loop.

    Args:
        store: open; closed by its owner.
        own: the server's own workspace, in which copies are real files; copies of other boards are on
            branches only.
        heard: told of each new state that this process makes or finds.
        seen: returns the revisions that boards had a moment ago, None when nobody looks at them; who gives
            it brings boards that another process changes up to date by `refresh`.
    """

    def __init__(
        self,
        store: "Store",
        *,
        own: Path | None = None,
        heard: Heard | None = None,
        seen: Callable[[], Mapping[str, int] | None] = lambda: None,
    ) -> None:
        self._store = store
        self._own = None if own is None else Path(os.path.realpath(own))
        self._heard = [] if heard is None else [heard]
        self._used: set[str] = set()
        self._keys: dict[str, BoardKey] = {}  # session → its board
        self._attached: dict[str, tuple[BoardKey, Branch]] = {}
        self._copied: dict[str, int] = {}  # branch → revision of the copies on it
        self._changing: Counter[str] = Counter()
        self._changed_here: set[str] = set()
        self._seen = seen
        self._writing: dict[str, asyncio.Lock] = {}

    def listen(self, heard: Heard) -> None:
        """Tell somebody more of each new state that this process makes or finds."""
        self._heard.append(heard)

    async def key_of(self, session: str) -> BoardKey:
        """Return the board of a session by its thread id; an unknown one has its own."""
        found = self._keys.get(session)
        if found is None:
            if len(self._keys) >= _MOST_KEYS:
                self._keys.clear()  # they are read again
            row = await self._store.read(lambda c: find_session(c, session))
            found = self._keys[session] = BoardKey(f"session:{session}") if row is None else board_of(row)
        return found

    # ------------------------------------------------------------ reading

    async def state(self, key: BoardKey) -> BoardState:
        """Return a board as it is committed."""
        return await self._store.read(lambda c: board_state(c, key))

    async def sessions_on(self, key: BoardKey, among: Collection[str]) -> list[str]:
        """Return those of these sessions that work on a board."""
        found = await self._store.read(lambda c: boards_of_threads(c, among)) if among else ()
        return [session.thread_id for session in found if board_of(session) == key]

    async def task(self, key: BoardKey, task_id: int) -> TaskData:
        """Return one task; raises InvalidArgument naming an unknown one."""
        return await self._store.read(lambda c: one_shown(c, key.name, task_id))

    # ------------------------------------------------------------ changing

    async def create(
        self,
        key: BoardKey,
        subject: str,
        *,
        description: str = "",
        active_form: str = "",
        session: str = "",
        call: "ToolContext | None" = None,
    ) -> TaskData:
        """Add a task.

        Args:
            call: the tool call that asks; its outcome becomes part of the transaction.
        """
        await self.begin(key)
        return await self._change(
            key,
            lambda c: create_task(
                c, key.name, subject, description=description, active_form=active_form, session=session
            ),
            call,
        )

    async def update(
        self, key: BoardKey, task_id: int, change: TaskChange, *, call: "ToolContext | None" = None
    ) -> TaskData:
        """Change a task; an error changes nothing."""
        await self.begin(key)
        return await self._change(key, lambda c: update_task(c, key.name, task_id, change), call)

    async def claim(
        self, key: BoardKey, owner: str, task_id: int | None = None, *, also: Also | None = None
    ) -> TaskData | None:
        """Claim a task for `owner`, by default the claimable one with the lowest id.

        Args:
            also: a further change of the same transaction, told the task; not run without a claim.

        Returns:
            The task; None when nothing is claimable and no task was named.

        Raises:
            InvalidArgument: the named task is unknown, owned, blocked or not pending.
        """
        await self.begin(key)

        def change(connection: Connection) -> Changed | None:
            claimed = claim_task(connection, key.name, owner, task_id)
            if claimed is not None and also is not None:
                also(connection, claimed.task)
            return claimed

        done = await self._store.write(change)
        if done is None:
            return None
        await self._changed(key, done.touched)
        return done.task

    async def release(
        self,
        key: BoardKey,
        owner: str,
        reason: str,
        *,
        session: str = "",
        first: Callable[[Connection], bool] | None = None,
    ) -> list[TaskData]:
        """Give back what somebody who ended had claimed; returns the tasks.

        Args:
            first: records the end in the same transaction; when it returns False nothing is given back.
        """

        def change(connection: Connection) -> list[Changed]:
            if first is not None and not first(connection):
                return []
            return release_claims(connection, key.name, owner, reason, session=session)

        done = await self._store.write(change)
        if done:
            await self._changed(key, {task_id for each in done for task_id in each.touched})
        return [each.task for each in done]

    async def _change(
        self, key: BoardKey, change: Callable[[Connection], Changed], call: "ToolContext | None"
    ) -> TaskData:
        done: list[Changed] = []

        def apply(connection: Any) -> ToolResult:
            done[:] = [change(connection)]  # a transaction may be tried twice
            return to_result(done[0].task)

        self._changing[key.name] += 1
        try:
            if call is None or call.change is None:
                await self._store.write(apply)
            else:
                await call.change(apply)
            await self._changed(key, done[0].touched)
        finally:
            self._changing[key.name] -= 1
        return done[0].task

    def is_changing(self, name: str) -> bool:
        """Whether this process changes a board just now and will tell of it itself."""
        return self._changing[name] > 0

    # ------------------------------------------------------------ first use

    async def open(self, key: BoardKey) -> tuple[str, ...]:
        """Make a board whose workspace holds task files; without any it is made with its first task.

        Returns:
            What a person should be told: files that could not be read.
        """
        if key.name in self._used or key.workspace is None:
            return ()
        is_there = await to_thread((key.workspace / DIRECTORY).is_dir)
        return await self.begin(key) if is_there else ()

    async def begin(self, key: BoardKey) -> tuple[str, ...]:
        """Make a board at its first use, with the task files that are in its workspace.

        Returns:
            What a person should be told: files that could not be read.
        """
        if key.name in self._used:
            return ()
        if await self._store.read(lambda c: find_board(c, key.name)) is not None:
            self._used.add(key.name)
            return ()
        warnings: tuple[str, ...] = ()
        if key.workspace is not None:
            left = await to_thread(read_left, key.workspace)
            rows = [file.row(key.name) for file in left.files]
            edges = [edge for file in left.files for edge in file.edges()]
            made = await self._store.write(lambda c: import_tasks(c, key.name, rows, edges, left.highest))
            if made:
                warnings = tuple(
                    f"{DIRECTORY}/{name} was not taken over: {why}; it is left as it is"
                    for name, why in left.damaged
                )
        self._used.add(key.name)
        return warnings

    # ------------------------------------------------------------ copies

    async def attach(self, key: BoardKey, branch: "Branch") -> None:
        """Keep the copies on a branch up to date from now on, beginning at once."""
        self._attached[branch.id] = (key, branch)
        seen = None if key.name in self._changed_here else self._seen()
        if seen is not None and seen.get(key.name, 0) == self._copied.get(branch.id, 0):
            return  # whatever another process changes from now on, `seen` will show, and it is copied then
        head = await self._store.read(lambda c: find_board(c, key.name))
        if head is not None and head.next_id > 1 and self._copied.get(branch.id) != head.revision:
            await self.refresh(key)

    def detach(self, branch_id: str) -> None:
        """Write no more copies on a branch; its next turn brings them up to date."""
        self._attached.pop(branch_id, None)

    def went_back(self, branch_id: str) -> None:
        """Say that a branch was taken back to an earlier state, its copies with it."""
        self._copied.pop(branch_id, None)

    async def refresh(self, key: BoardKey) -> BoardState:
        """Bring every copy of a board up to date and tell who listens; returns the board."""
        return await self._copy(key, None)

    async def _changed(self, key: BoardKey, touched: Collection[int]) -> None:
        self._changed_here.add(key.name)
        branches = any(other.name == key.name for other, _ in self._attached.values())
        if not branches and not self._heard and key.workspace != self._own:
            return
        # Committed already: whoever is cancelled now must not leave copies behind.
        await asyncio.shield(asyncio.ensure_future(self._copy(key, touched)))

    async def _copy(self, key: BoardKey, touched: Collection[int] | None) -> BoardState:
        async with self._turn(key):
            state = await self.state(key)
            for heard in self._heard:
                heard(key, state)
            files: dict[int, bytes | None] = dict.fromkeys(touched or ())
            wanted = None if touched is None else set(touched)
            files |= {t["id"]: file_content(t) for t in state.tasks if wanted is None or t["id"] in wanted}
            branches = [branch for other, branch in self._attached.values() if other.name == key.name]
            await to_thread(self._write, key, branches, files, complete=touched is None)
            if len(self._copied) >= _MOST_KEYS:
                self._copied.clear()  # copies are compared once more
            self._copied |= {branch.id: state.revision for branch in branches}
            return state

    def _write(
        self, key: BoardKey, branches: "list[Branch]", files: Mapping[int, bytes | None], *, complete: bool
    ) -> None:
        if key.workspace is not None and key.workspace == self._own:
            # Branches of this directory see the files through it.
            try:
                write_files(key.workspace, files, complete=complete)
            except OSError as error:
                _log.warning("the copies in %s/%s are out of date: %s", key.workspace, DIRECTORY, error)
            return
        named = {file_name(task_id): content for task_id, content in files.items()}
        for branch in branches:
            try:
                branch.sync_private(f"/{DIRECTORY}", named, complete=complete)
            except (WorkspaceError, OSError) as error:
                # Copies are for reading: the board itself is in the store, the next turn tries again.
                _log.warning("branch %s: its copies of the board are out of date: %s", branch.id, error)

    @asynccontextmanager
    async def _turn(self, key: BoardKey) -> AsyncGenerator[None]:
        """Be the only one, of all processes of this data directory, who writes a board's copies."""
        name = hashlib.sha256(os.fsencode(key.name)).hexdigest()[:32]
        async with self._writing.setdefault(key.name, asyncio.Lock()):
            place = self._store.data_dir / "boards"
            place.mkdir(mode=0o700, exist_ok=True)
            async with alone_when(lambda: claim_at(place / f"{name}.lock")):
                yield


def board_state(connection: Connection, key: BoardKey) -> BoardState:
    """Return a board as one query's view has it."""
    head = find_board(connection, key.name)
    if head is None:
        return BoardState(0, ())
    return BoardState(head.revision, tuple(all_shown(connection, key.name)))
