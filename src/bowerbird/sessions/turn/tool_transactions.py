"""A tool's change of the store and its outcome as one transaction (SE-25).

Here: that transaction for the calls of one attempt, and which calls have had it. Not here: what is
changed (tools), committing the other outcomes (`attempt.py`).

The change runs when its tool asks, before the loop tells of the call's end, and its outcome is shown as
soon as it is committed, so that what is shown keeps the order of the records. What the loop says of such a
call afterwards is not recorded again. A process that lost its lease cannot change anything: the append's
fence takes the change back with it.
"""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection

from bowerbird.core.events import ToolOutcome
from bowerbird.sessions.journal.events_as_records import MessageSeqs
from bowerbird.sessions.turn.step_records import Writer, append_of
from bowerbird.store.journal.journal import Record, append_one
from bowerbird.store.store import Store
from bowerbird.tools.result import ToolResult


@dataclass(slots=True)
class OutcomeChanges:
    """`agent.turn.Changes` over a store, for one attempt at a turn.

    Attributes:
        writer: on whose behalf it writes.
        recorded: told of each outcome at once after its commit; shows it.
    """

    store: Store
    writer: Writer
    recorded: Callable[[ToolOutcome, tuple[Record, ...]], None]
    _calls: dict[str, asyncio.Task[ToolResult]] = field(default_factory=dict[str, "asyncio.Task[ToolResult]"])

    async def run(self, call: str, tool: str, change: Callable[[Any], ToolResult]) -> ToolResult:
        """See `Changes`; whoever is cancelled meanwhile does not take the change back."""
        self.store.require_space()
        task = asyncio.ensure_future(self._record(call, tool, change))
        self._calls[call] = task
        return await asyncio.shield(task)

    async def has_outcome(self, call: str) -> bool:
        """Whether the outcome of a call is on record already; waits for a change under way."""
        task = self._calls.pop(call, None)
        if task is None:
            return False
        await asyncio.wait([task])
        # One that failed changed nothing: its tool was told, and the loop's outcome says so.
        return not task.cancelled() and task.exception() is None

    async def _record(self, call: str, tool: str, change: Callable[[Any], ToolResult]) -> ToolResult:
        started = time.perf_counter()

        def both(connection: Connection) -> tuple[ToolResult, ToolOutcome, tuple[Record, ...]]:
            result = change(connection)
            outcome = ToolOutcome(
                call=call,
                tool=tool,
                status="error" if result.is_error else "ok",
                content=result.content,
                data=result.data,
                ms=int((time.perf_counter() - started) * 1000),
            )
            return result, outcome, append_one(connection, append_of(outcome, self.writer, MessageSeqs()))

        result, outcome, records = await self.store.write(both)
        self.recorded(outcome, records)
        return result
