"""Traces of model calls: recorded while a conversation wants it, shown live and kept (MO-34, SV-33, SV-41).

Here: from a turn's model to one that leaves records, and where these go. Not here: the records
(`models/wrappers/tracing.py`), how long they stay (`store/rows/traces.py`).
"""

import asyncio
import itertools
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

from bowerbird.core.errors import BowerbirdError
from bowerbird.core.events import Trace
from bowerbird.models.redact import redactor_of
from bowerbird.sessions.live.hub import Published
from bowerbird.sessions.parts import SessionPart
from bowerbird.sessions.thread_ids import root_of
from bowerbird.store.rows.traces import add_trace, last_trace_seq

if TYPE_CHECKING:
    from bowerbird.agent.turn import Router, TurnRun
    from bowerbird.models.protocol import Model
    from bowerbird.models.settings import ModelSettings
    from bowerbird.sessions.live.hub import Live
    from bowerbird.sessions.turn_maker import TurnContext
    from bowerbird.store.store import Store

_log = logging.getLogger(__name__)


class TracedRouter(msgspec.Struct, frozen=True):
    """A router whose tiers are traced: a switch within a turn leaves no gap."""

    router: "Router"
    traced: "Callable[[Model], Model]"

    def switch(self, tier: str) -> "Model":
        """See `agent.turn.Router`."""
        return self.traced(self.router.switch(tier))


class Traces(SessionPart):
    """Keeps and shows the traces of a process's sessions.

    Args:
        store: where they are kept; closed by its owner after `aclose`. live: where they are shown.
        settings: whose secrets are masked.
    """

    def __init__(self, store: "Store", live: "Live", settings: "ModelSettings") -> None:
        self._store = store
        self._live = live
        self._redactor = redactor_of(settings)
        self._numbers: dict[str, itertools.count[int]] = {}
        self._last: dict[str, asyncio.Task[None]] = {}

    def use(self, settings: "ModelSettings") -> None:
        """Mask the secrets of other settings in what is recorded from the next turn on."""
        self._redactor = redactor_of(settings)

    async def join(self, run: "TurnRun", context: "TurnContext") -> "TurnRun":
        """Record the calls of every model of a turn whose conversation wants it."""
        if not context.flags.get("enable_tracing"):
            return run
        traced = await self._tracer(context.session.thread_id, context.turn.turn_id)
        own = run.summaries.model
        return msgspec.structs.replace(
            run,
            model=traced(run.model),
            router=None if run.router is None else TracedRouter(run.router, traced),
            summaries=run.summaries
            if own is None
            else msgspec.structs.replace(run.summaries, model=traced(own)),
        )

    async def _tracer(self, thread_id: str, turn_id: str) -> "Callable[[Model], Model]":
        """Return what makes models whose calls are recorded under a session, all counted together.

        The calls of subagents and teammates are recorded under the conversation they work for, where
        people look, and say whose they are. Their numbers go on after a restart.
        """
        child, thread_id = thread_id, root_of(thread_id)
        agent = child.removeprefix(thread_id).lstrip(".") or "main"
        if thread_id not in self._numbers:
            last = await self._store.read(lambda c: last_trace_seq(c, thread_id))
            self._numbers.setdefault(thread_id, itertools.count(last + 1))
        numbers = self._numbers[thread_id]

        def take(record: dict[str, Any]) -> None:
            self._live.publish(Published(thread_id, turn_id, None, Trace(record)))
            before = self._last.get(thread_id)
            task = asyncio.get_running_loop().create_task(self._keep(before, thread_id, turn_id, record))
            self._last[thread_id] = task
            task.add_done_callback(lambda done: self._forget(thread_id, done))

        def traced(model: "Model") -> "Model":
            from bowerbird.models.wrappers.tracing import TracingModel

            return TracingModel(model, take, numbers.__next__, agent=agent, redactor=self._redactor)

        return traced

    def _forget(self, thread_id: str, done: "asyncio.Task[None]") -> None:
        if self._last.get(thread_id) is done:
            del self._last[thread_id]

    async def _keep(
        self, before: "asyncio.Task[None] | None", thread_id: str, turn_id: str, record: dict[str, Any]
    ) -> None:
        if before is not None:
            await asyncio.wait([before])  # records of one session are kept in their order
        try:
            await self._store.write(lambda c: add_trace(c, thread_id, turn_id, record), flush=False)
        except BowerbirdError as error:
            _log.warning("a trace of %s was not kept: %s", thread_id, error)

    async def aclose(self) -> None:
        """Wait until everything is kept."""
        while self._last:
            await asyncio.wait(list(self._last.values()))
