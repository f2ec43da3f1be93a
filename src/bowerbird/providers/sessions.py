"""What is said to agents, kept: the question before the call, the answer after it (PR-30 … PR-33).

Here: opening a session for its owner, its messages, its memory. Not here: calling an agent (`registry`).
"""

import os
import re
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Literal, cast

from sqlalchemy import Connection

from bowerbird.core.errors import InvalidArgument
from bowerbird.providers.contract.errors import AgentSessionError, shown
from bowerbird.providers.contract.types import AgentResponse, BranchRef, MemoryLog
from bowerbird.providers.turns import Turns
from bowerbird.store.rows.providers import (
    INTERRUPTED,
    ProviderMessageRow,
    ProviderSessionRow,
    add_provider_message,
    answer_after,
    find_provider_session,
    insert_provider_session,
    newest_messages,
    newest_runs,
    set_message_metadata,
    update_provider_session,
)
from bowerbird.store.store import Store

NEWEST = 50
_MOST_SYSTEM = 1_000
_OWN = "sess_"
_ID = re.compile(r"(?!\.)[A-Za-z0-9._-]{1,128}")


@dataclass(frozen=True, slots=True)
class Asked:
    """A question that is kept, and what was said before it.

    Attributes:
        message_id: of the question. metadata: what is known of it, without the mark of a missing answer.
    """

    session: ProviderSessionRow
    message_id: int
    metadata: dict[str, Any]
    history: tuple[MemoryLog, ...]


@dataclass(frozen=True, slots=True)
class PastRun:
    """A question and what came of it, for lists; `answer` None = it runs, or was interrupted."""

    session: ProviderSessionRow
    question: ProviderMessageRow
    answer: ProviderMessageRow | None


def check_session_id(session_id: str) -> None:
    """Raise InvalidArgument for what is no id of a session (PR-33)."""
    if not _ID.fullmatch(session_id):
        raise InvalidArgument(
            f"{shown(session_id)!r} is no session id: use 1 to 128 of A-Z a-z 0-9 . _ -, no dot first"
        )


class ProviderSessions:
    """The sessions of one store. Two runs in one session take their turns.

    Args:
        store: open; closed by its owner.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._turns = Turns(store)

    def turn(self, session_id: str, wait_s: float) -> AbstractAsyncContextManager[None]:
        """Wait until no other run is in the session, and be in it; see `Turns.held`."""
        return self._turns.held(session_id, wait_s)

    async def opened(self, agent: str, session_id: str | None, owner: str) -> ProviderSessionRow:
        """Return the session to go on with, or a new one that is kept from now on.

        Raises:
            InvalidArgument: what is no id.
            AgentSessionError: another agent's; another person's, or one that Bowerbird named and has not.
        """
        if session_id is not None:
            check_session_id(session_id)
        new_id = session_id or _OWN + os.urandom(12).hex()
        row = ProviderSessionRow(session_id=new_id, agent_name=agent, owner=owner)

        def open_it(connection: Connection) -> ProviderSessionRow:
            known = find_provider_session(connection, new_id)
            if known is None and (session_id is None or not session_id.startswith(_OWN)):
                insert_provider_session(connection, row)
                return row
            if known is None or known.owner != owner:
                raise AgentSessionError(f"session {new_id} not found")
            if known.agent_name != agent:
                raise AgentSessionError(
                    f"session {new_id} is one with {known.agent_name}; begin another for {agent}"
                )
            return known

        return await self._store.write(open_it)

    async def ask(self, session: ProviderSessionRow, question: str, metadata: dict[str, Any]) -> Asked:
        """Keep a question, marked as interrupted until its answer comes, and return what was said before."""

        def write(connection: Connection) -> Asked:
            now = find_provider_session(connection, session.session_id) or session
            history = _history(connection, session.session_id)
            marked = {**metadata, INTERRUPTED: True}
            number = add_provider_message(connection, session.session_id, "user", question, marked)
            update_provider_session(connection, session.session_id)
            return Asked(now, number, metadata, history)

        return await self._store.write(write)

    async def answered(self, asked: Asked, response: AgentResponse) -> None:
        """Keep the answer, or the error, and take the mark from the question."""
        known: dict[str, Any] = {
            **response.metadata,
            "execution_time": round(response.execution_time, 3),
            "tokens_used": response.tokens_used,
            "cost": response.cost,
            "changes": None if response.changes is None else _counts(response),
        }
        if response.error is not None:
            known["error"] = response.error
        native = response.metadata.get("native_session_id")
        said = response.content or ("" if response.error is None else f"[error] {response.error}")

        def write(connection: Connection) -> None:
            set_message_metadata(connection, asked.message_id, asked.metadata)
            add_provider_message(connection, asked.session.session_id, "assistant", said, known)
            changes = {"native_session_id": native} if isinstance(native, str) and native else {}
            update_provider_session(connection, asked.session.session_id, **changes)

        await self._store.write(write)

    async def place(self, session_id: str, thread_id: str, branch: BranchRef) -> None:
        """Keep where a session's changes are."""
        await self._store.write(
            lambda c: update_provider_session(c, session_id, thread_id=thread_id, branch_id=branch.branch_id)
        )

    async def memory(self, session_id: str, owner: str) -> Sequence[MemoryLog] | None:
        """Return the newest 50 messages, oldest first; None where the owner has no such session."""

        def read(connection: Connection) -> Sequence[MemoryLog] | None:
            known = find_provider_session(connection, session_id)
            if known is None or known.owner != owner:
                return None
            return _logs(newest_messages(connection, session_id, NEWEST))

        return await self._store.read(read) if _ID.fullmatch(session_id) else None

    async def session(self, session_id: str, owner: str) -> ProviderSessionRow | None:
        """Return a session of this person's, None without one."""
        found = await self._store.read(lambda c: find_provider_session(c, session_id))
        return found if found is not None and found.owner == owner else None

    async def past_runs(self, owner: str | None, most: int = NEWEST) -> list[PastRun]:
        """Return the newest runs of a person, or of all for None, the newest first."""

        def read(connection: Connection) -> list[PastRun]:
            rows = newest_runs(connection, owner, most)
            return [PastRun(session, asked, answer_after(connection, asked)) for session, asked in rows]

        return await self._store.read(read)


def _history(connection: Connection, session_id: str) -> tuple[MemoryLog, ...]:
    """Return all that a system said, and the newest 50 others (PR-31)."""
    system = newest_messages(connection, session_id, _MOST_SYSTEM, ("system",))
    others = newest_messages(connection, session_id, NEWEST, ("user", "assistant"))
    return tuple(_logs(sorted((*system, *others), key=lambda row: row.id)))


def _logs(rows: Sequence[ProviderMessageRow]) -> list[MemoryLog]:
    return [MemoryLog(cast("Literal['user', 'assistant', 'system']", row.role), row.content) for row in rows]


def _counts(response: AgentResponse) -> dict[str, int]:
    changes = response.changes
    assert changes is not None, "asked before"
    return {
        "written": len(changes.written),
        "deleted": len(changes.deleted),
        "added_lines": changes.added_lines,
        "removed_lines": changes.removed_lines,
    }
