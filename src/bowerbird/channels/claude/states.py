"""Who is in Claude Code's mode, and where (AS-58).

Here: one stored value per person, committed before each run and deleted on leaving. Not here: what a person
can do there (`mode.py`).
"""

import asyncio
from collections.abc import Callable
from pathlib import Path

import msgspec
from sqlalchemy import Connection

from bowerbird.core.forms import decode
from bowerbird.core.json_text import json_text
from bowerbird.core.threads import to_thread
from bowerbird.core.timestamps import now_iso
from bowerbird.store.journal.quarantine import put_aside
from bowerbird.store.rows.meta import delete_meta, get_meta, set_meta, with_prefix
from bowerbird.store.store import Store

MODE = "claude_code"
SOURCE = "claude_code states"
FILE_BYTES = 1 << 20


class ClaudeState(msgspec.Struct, frozen=True):
    """Where one person is.

    Attributes:
        active_project: name of its directory in `projects_dir`; active_project_path: the project itself.
        active_session_id: None = the next message begins a conversation. active_model, active_effort: None =
            Claude Code's own. is_begun: a message was sent under that id. cost_usd: of the answers so far.
        working_on: the message that was sent last, so that a dead process's one is not sent again.
    """

    active_project: str
    active_project_path: str
    mode: str = MODE
    active_session_id: str | None = None
    active_model: str | None = None
    active_effort: str | None = None
    is_begun: bool = False
    cost_usd: float = 0.0
    working_on: str | None = None


class ClaudeStates:
    """The states of one channel's people.

    Args:
        imported: a file of an earlier program, whose states are taken over once.
    """

    def __init__(self, store: Store, channel: str, imported: Path | None = None) -> None:
        self._store = store
        self._prefix = f"claude:{channel}:"
        self._imported = imported
        self._states: dict[str, ClaudeState] = {}
        self._lock = asyncio.Lock()

    async def start(self) -> None:
        """Read what is stored; an entry that cannot be read is set aside, alone."""
        raw = b"" if self._imported is None else await to_thread(_read, self._imported)
        found = await self._store.write(lambda c: self._load(c, raw))
        self._states = found

    def of(self, user_id: str) -> ClaudeState | None:
        """Return where a person is, None for whoever is not in the mode."""
        return self._states.get(user_id)

    async def put(self, user_id: str, state: ClaudeState) -> None:
        """Keep where a person is; it is committed when this returns."""
        async with self._lock:
            text = json_text(state)
            await self._store.write(lambda c: set_meta(c, self._prefix + user_id, text))
            self._states[user_id] = state

    async def change(self, user_id: str, change: Callable[[ClaudeState], ClaudeState]) -> ClaudeState | None:
        """Change where a person is, from what it is at that moment; returns it, None for whoever has left."""
        async with self._lock:
            present = self._states.get(user_id)
            if present is None:
                return None
            state = change(present)
            text = json_text(state)
            await self._store.write(lambda c: set_meta(c, self._prefix + user_id, text))
            self._states[user_id] = state
            return state

    async def drop(self, user_id: str) -> None:
        """Forget a person who leaves."""
        async with self._lock:
            await self._store.write(lambda c: delete_meta(c, self._prefix + user_id))
            self._states.pop(user_id, None)

    def _load(self, connection: Connection, raw: bytes) -> dict[str, ClaudeState]:
        marker = f"{self._prefix}/imported"
        if raw and get_meta(connection, marker) is None:
            for user, text in _entries(connection, raw).items():
                if get_meta(connection, self._prefix + user) is None:
                    set_meta(connection, self._prefix + user, text)
            set_meta(connection, marker, now_iso())
        found: dict[str, ClaudeState] = {}
        for user, text in with_prefix(connection, self._prefix).items():
            if user.startswith("/"):
                continue
            try:
                state = decode(text, ClaudeState)
            except (msgspec.DecodeError, msgspec.ValidationError, RecursionError) as error:
                put_aside(connection, source=SOURCE, key=user, reason=str(error), raw=text, at=now_iso())
                delete_meta(connection, self._prefix + user)
                continue
            if state.mode == MODE:
                found[user] = state
        return found


def _entries(connection: Connection, raw: bytes) -> dict[str, str]:
    """Return the entries of an earlier program's file; one that has begun goes on."""
    try:
        table = decode(raw, dict[str, msgspec.Raw])
    except (msgspec.DecodeError, msgspec.ValidationError, RecursionError) as error:
        text = raw.decode("utf-8", "replace")
        put_aside(connection, source=SOURCE, key="file", reason=str(error), raw=text, at=now_iso())
        return {}
    found: dict[str, str] = {}
    for user, entry in table.items():
        text = bytes(entry).decode("utf-8", "replace")
        try:
            state = decode(text, ClaudeState)
            found[user] = json_text(
                msgspec.structs.replace(state, is_begun=state.active_session_id is not None)
            )
        except (msgspec.DecodeError, msgspec.ValidationError, RecursionError):
            found[user] = text  # set aside by whoever reads the states
    return found


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(FILE_BYTES)
    except OSError:
        return b""  # most installations have none
