"""Subagents of a session as doors look after them, beside its turns (SV-62, DE-6 … DE-8, DE-17).

Here: their records, diffs and transcripts, merging and discarding one. Not here: what a merge is
(`subagents/calls.py`), tournaments (`tournaments.py`), routes.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from bowerbird.core.errors import SessionError, TurnRunning, UnknownSession, WorkspaceError
from bowerbird.core.events import AssistantStep, Injected, ToolOutcome, UserStep
from bowerbird.core.messages import text_of
from bowerbird.core.threads import in_thread
from bowerbird.sessions.journal.events_as_records import events_of
from bowerbird.sessions.subagents.runner import Children
from bowerbird.store.journal.journal import Record
from bowerbird.store.rows.leases import lease_is_free
from bowerbird.store.store import Store
from bowerbird.subagents.calls import Calls
from bowerbird.subagents.diff import child_diff
from bowerbird.subagents.records import Child

PATCH_CHARS = 200_000
RESULT_CHARS = 2_000


async def require_quiet(store: Store, thread_id: str) -> None:
    """Raise TurnRunning while a turn of the session is driven: its branch must not change under it."""
    if not await store.read(lambda c: lease_is_free(c, thread_id)):
        raise TurnRunning("a turn works on this conversation's branch; wait for its end, or cancel it")


class DoorSubagents(msgspec.Struct, frozen=True):
    """What doors do with the subagents of sessions.

    Args:
        store, children: of the process.
    """

    store: Store
    children: Children

    async def all(self, thread_id: str) -> list[Child]:
        """Return a session's subagents, oldest first, without those that were discarded."""
        return [c for c in await self.children.records.of(thread_id) if c.state != "discarded"]

    async def one(self, thread_id: str, handle: str) -> Child:
        """Return one of them; raises UnknownSession for an unknown or discarded handle."""
        for child in await self.all(thread_id):
            if child.handle == handle:
                return child
        raise UnknownSession(f"unknown subagent handle: {handle!r}")

    async def diff(self, child: Child) -> dict[str, Any] | None:
        """Return what a subagent changed, None when its fork cannot be opened."""
        try:
            fork = await self.children.open(child)
            return await in_thread(lambda: child_diff(fork, PATCH_CHARS))
        except WorkspaceError:
            return None

    async def transcript(self, child: Child, *, after: int = 0, limit: int = 1000) -> list[dict[str, Any]]:
        """Return what a subagent was told, said and did, in order."""
        # From the beginning: a result's record names its tool only by the call.
        every = transcript(await self.store.records(child.session))
        return [row for row in every if row["cursor"] > after][:limit]

    async def file(self, thread_id: str, handle: str, path: str) -> dict[str, Any]:
        """Return a subagent's version of a file: `path`, `deleted`, `text`, and what reading it says.

        Raises:
            UnknownSession: see `one`. NotFound, PathEscape …: there is no such file.
        """
        calls = await self._calls(thread_id, handle)
        return _checked(await calls.read(handle, path))

    async def merge(
        self, thread_id: str, handle: str, paths: Sequence[str] | None = None, *, force: bool = False
    ) -> dict[str, Any]:
        """Merge a subagent's fork into its session's branch; return the record of DE-6.

        Raises:
            UnknownSession: see `one`. TurnRunning: a turn works on the branch. SessionError: it runs.
        """
        calls = await self._calls(thread_id, handle)
        await require_quiet(self.store, thread_id)
        return _checked(await calls.merge(handle, paths, force))

    async def discard(self, thread_id: str, handle: str) -> None:
        """Throw a subagent and its fork away; one that runs is cancelled first.

        Raises:
            UnknownSession: see `one`.
        """
        calls = await self._calls(thread_id, handle)
        _checked(await calls.discard(handle))

    async def _calls(self, thread_id: str, handle: str) -> Calls:
        await self.one(thread_id, handle)
        return await self.children.on_behalf(thread_id)


def _checked(result: dict[str, Any]) -> dict[str, Any]:
    if "error" in result:
        raise SessionError(str(result["error"]))
    return result


def transcript(records: Sequence[Record]) -> list[dict[str, Any]]:
    """Return the records of a session as one list of messages; results are cut, `calls/{id}` has them whole.

    Each has `cursor`, `at`, `role` (`user`, `assistant`, `tool`) and `content`; an assistant's also
    `tool_calls`, a tool's `id`, `tool`, `status` and `truncated`. Pure.
    """
    shown: list[dict[str, Any]] = []
    for record, event in events_of(records):
        facts: dict[str, Any] = {"cursor": record.seq, "at": record.at}
        if isinstance(event, UserStep | Injected):
            shown.append({**facts, "role": "user", "content": event.message.text})
        elif isinstance(event, AssistantStep):
            calls = [
                {"id": use.id, "tool": use.name, "input": use.input} for use in event.message.tool_uses
            ]  # fmt: skip
            shown.append({**facts, "role": "assistant", "content": event.message.text, "tool_calls": calls})
        elif isinstance(event, ToolOutcome):
            shown.append({**facts, **_result(event)})
    return shown


def _result(event: ToolOutcome) -> dict[str, Any]:
    text = text_of(event.content)
    return {
        "role": "tool",
        "id": event.call,
        "tool": event.tool,
        "status": event.status,
        "content": text if len(text) <= RESULT_CHARS else text[:RESULT_CHARS] + "...",
        "truncated": event.truncated or len(text) > RESULT_CHARS,
    }
