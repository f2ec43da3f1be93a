"""Sessions as such: made, found, renamed, forked, reset (SE-1 … SE-4, 24, 36).

Here: what concerns a session's row and branch while nothing runs. Not here: inputs and turns
(`service.py`), the order inside a fork or delete (`forks.py`).
"""

import builtins
import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from sqlalchemy import Connection

from bowerbird.core.errors import InvalidArgument, StorageFull
from bowerbird.core.events import ModeChange
from bowerbird.core.ids import check_thread_id, new_thread_id
from bowerbird.core.threads import in_thread
from bowerbird.sessions.forks import branch_of, fork_session, restore_session
from bowerbird.sessions.live.hub import BranchChanged, Published
from bowerbird.sessions.parts import SessionPart
from bowerbird.sessions.thread_ids import chat_of_thread, thread_of_chat
from bowerbird.sessions.turn.driver_context import DriverContext
from bowerbird.sessions.values import NewSession, SessionInfo
from bowerbird.sessions.views import session_by_prefix, session_info, session_infos
from bowerbird.store.journal.journal import Append, NewRecord, Record, append_one
from bowerbird.store.rows.sessions import (
    SessionRow,
    counter_of,
    find_session,
    get_session,
    insert_session,
    list_sessions,
    lock_session,
    raise_counter,
    update_session,
)
from bowerbird.store.store import Store

if TYPE_CHECKING:
    from bowerbird.sessions.delivery.outbox import Outbox
    from bowerbird.workspace import Branch

Part = TypeVar("Part", bound=SessionPart)

LISTED = ("chat", "web", "cli", "scheduler")  # subagents and teammates belong to another session
_COLUMNS = ("title", "thinking_effort", "auto_approve", "system_prompt")


class Catalogue:
    """The sessions of a store; the base of `SessionService`.

    Attributes:
        store: they are in. parts: their features, in order. executor_id: who this process is in leases.
    """

    store: Store
    executor_id: str
    parts: tuple[SessionPart, ...]
    _context: DriverContext

    @property
    def outbox(self) -> "Outbox":
        """What delivers to doors without a connection; a door calls `outbox.serve(deliverer)`."""
        return self._context.outbox

    def part(self, kind: type[Part]) -> Part:
        """Return the part of this kind, for doors that offer its feature; raises LookupError without one."""
        for found in self.parts:
            if isinstance(found, kind):
                return found
        raise LookupError(f"these sessions have no {kind.__name__}")

    async def create(self, new: NewSession | None = None) -> SessionInfo:
        """Make a session and its branch.

        Raises:
            InvalidWorkspace: the directory is missing. InvalidArgument: the id exists.
            InvalidThreadId: the id cannot be one.
        """
        wanted = new or NewSession()
        thread_id = check_thread_id(wanted.thread_id or new_thread_id())
        self.store.require_space()
        await self.store.read(lambda c: _require_new(c, thread_id))
        branch = await self._context.branches.create(
            wanted.workspace, name=None, policy=wanted.policy, hide=wanted.hide
        )
        row = _new_row(wanted, thread_id, branch.id)

        def insert(connection: Connection) -> SessionInfo:
            _require_new(connection, thread_id)
            insert_session(connection, row)
            return session_info(connection, row)

        return await self._made(insert, branch)

    async def _made(self, insert: Callable[[Connection], SessionInfo], branch: "Branch") -> SessionInfo:
        """Write a session's row; where it certainly was not written, its branch goes, too."""
        try:
            return await self.store.write(insert)
        except (StorageFull, InvalidArgument):
            with contextlib.suppress(OSError):  # what is said is why the session was not made
                await self._context.branches.remove(branch)
            raise

    async def get(self, thread_id: str) -> SessionInfo:
        """Return a session by id, or by a prefix of at least 4 characters; raises UnknownSession."""
        info = await self.store.read(lambda c: session_info(c, session_by_prefix(c, thread_id)))
        return (await self._counted([info]))[0]

    async def _counted(self, infos: "Sequence[SessionInfo]") -> "builtins.list[SessionInfo]":
        """Return sessions with the files of those whose turn is open and not driven: none was counted."""
        return [
            msgspec.structs.replace(info, changed_files=await self._count(info.thread_id))
            if info.status in ("queued", "waiting") and info.branch_id is not None
            else info
            for info in infos
        ]

    async def _count(self, thread_id: str) -> int:
        row = await self.store.read(lambda c: get_session(c, thread_id))
        if row.branch_id is None:
            return 0
        branch = await self._context.branches.of(row)
        return await in_thread(branch.count)

    async def list(
        self,
        *,
        workspace: str | None = None,
        kinds: Sequence[str] = (),
        before: str | None = None,
        query: str | None = None,
        owner: str | None = None,
        limit: int | None = 1000,
    ) -> list[SessionInfo]:
        """Return living sessions, the most recently used first; arguments narrow the list.

        Args:
            kinds: none = all but subagents and teammates, who belong to another session.
            before: a thread id: only what comes after it in the list, for paging.
            query: title or id contains it, any case. owner: only of this user. limit: None = all.
        """

        def select(connection: Connection) -> list[SessionInfo]:
            rows = list_sessions(
                connection,
                workspace=workspace,
                kinds=kinds or LISTED,
                before=before,
                query=query,
                owner=owner,
                limit=limit,
            )
            return session_infos(connection, rows)

        return await self._counted(await self.store.read(select))

    async def rename(self, thread_id: str, title: str) -> None:
        """Give a session a title of its own."""
        await self.set_flags(thread_id, {"title": title})

    async def set_flags(self, thread_id: str, changes: Mapping[str, Any], by: str = "user") -> None:
        """Change a session's settings durably; every viewer is told.

        Flags, columns and the `settings` record are one transaction. In a running turn approval and plan
        mode hold from the next call of a tool on; the rest of it goes on with what it began with.

        Args:
            changes: `enable_plan_mode`, `enable_teams`, `enable_tracing`, `enable_approval`,
                `enable_thinking`, `model` and other flags; None takes a flag back to the settings'
                default. `title`, `thinking_effort`, `auto_approve`, `system_prompt` are columns.
            by: `user` or `tool`.

        Raises:
            UnknownSession: there is no such session.
        """
        wanted = dict(changes)
        if not wanted:
            return
        for part in self.parts:
            await part.changing(thread_id, wanted)
        columns = {key: value for key, value in wanted.items() if key in _COLUMNS}
        flags = {key: value for key, value in wanted.items() if key not in _COLUMNS}
        if flags.get("enable_approval") is True:  # who wants to be asked again takes "always" back
            columns["auto_approve"] = False
        append = await self.store.prepared(
            Append(thread_id, None, (NewRecord("settings", {**wanted, "by": by}),))
        )

        def change(connection: Connection) -> Record:
            session = lock_session(connection, thread_id)
            update_session(connection, thread_id, flags={**session.flags, **flags}, **columns)
            (record,) = append_one(connection, append)
            return record

        record = await self.store.write(change)
        said = ModeChange(wanted, "tool" if by == "tool" else "user")
        self._context.live.publish(Published(thread_id, None, record.seq, said))

    async def note_changes(self, thread_id: str) -> int:
        """Count the changed files of a session's branch again and tell its viewers; returns the count."""
        row = await self.store.read(lambda c: get_session(c, thread_id))
        count = await self._count(thread_id)
        await self.store.write(
            lambda c: update_session(c, thread_id, changed_files=count, updated_at=row.updated_at),
            flush=False,
        )
        self._context.live.publish(Published(thread_id, None, None, BranchChanged(count)))
        return count

    async def fork(self, thread_id: str, turn_id: str | None = None, title: str | None = None) -> SessionInfo:
        """Return a new session that goes on from the end of a turn (default: the last ended one).

        Raises:
            TurnRunning: that turn has not ended. UnknownSession: no such session or turn.
        """
        self.store.require_space()
        child = await fork_session(self._context, thread_id, turn_id, title)
        return await self.store.read(lambda c: session_info(c, child))

    async def reset(self, channel: str, chat_id: str, new: NewSession | None = None) -> SessionInfo:
        """Begin a chat anew: the counter rises and the next session exists, in one transaction."""
        base = thread_of_chat(channel, chat_id)
        wanted = new or NewSession(kind="chat")
        branch = await self._context.branches.create(
            wanted.workspace, name=None, policy=wanted.policy, hide=wanted.hide
        )

        def both(connection: Connection) -> SessionInfo:
            count = raise_counter(connection, base)
            thread_id = thread_of_chat(channel, chat_id, count)
            row = msgspec.structs.replace(
                _new_row(wanted, thread_id, branch.id), channel=channel, chat_id=chat_id, counter=count
            )
            insert_session(connection, row)
            return session_info(connection, row)

        return await self._made(both, branch)

    async def thread_of(self, channel: str, chat_id: str) -> str:
        """Return the thread id that messages of a chat go to now."""
        base = thread_of_chat(channel, chat_id)
        count = await self.store.read(lambda c: counter_of(c, base))
        return thread_of_chat(channel, chat_id, count)

    async def restore(self, thread_id: str) -> SessionInfo:
        """Bring a deleted session back."""
        row = await restore_session(self._context, thread_id)
        return await self.store.read(lambda c: session_info(c, row))

    async def branch(self, thread_id: str) -> "Branch":
        """Return the session's open branch, for diff, landing and export; do not close it."""
        row = await self.store.read(lambda c: get_session(c, thread_id))
        return await branch_of(self._context, row)


def _require_new(connection: Connection, thread_id: str) -> None:
    if find_session(connection, thread_id, deleted=True) is not None:
        raise InvalidArgument(f"thread_id {thread_id} is taken by another session, perhaps a deleted one")


def _new_row(new: NewSession, thread_id: str, branch_id: str) -> SessionRow:
    chat = chat_of_thread(thread_id) if new.channel else None
    return SessionRow(
        thread_id=thread_id,
        kind=new.kind,
        channel=new.channel,
        chat_id=new.chat_id if chat is None else chat.chat_id,
        counter=new.counter,
        owner=new.owner,
        title=new.title,
        preset=new.preset,
        system_prompt=new.system_prompt,
        flags=dict(new.flags),
        thinking_effort=new.thinking_effort,
        workspace=new.workspace,
        branch_id=branch_id,
    )
