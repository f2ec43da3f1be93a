"""Who drives a turn in this process: the lease taken, one attempt, signals obeyed (SE-14, 22, 28, 34).

Here: beginning an attempt, and what reaches it from outside. Not here: the attempt itself
(`attempt.py`), what its first transaction writes (`begin_transaction.py`), when a turn is driven
(`dispatch/dispatcher.py`).
"""

import logging

from bowerbird.agent.stop import StopReason, StopSignal
from bowerbird.core.errors import LeaseLost
from bowerbird.sessions.dispatch.dispatcher import Signal, TurnRef
from bowerbird.sessions.dispatch.lease import Lease
from bowerbird.sessions.turn.attempt import Attempt
from bowerbird.sessions.turn.begin_transaction import Begun, Waiting, begin, first_records, taken
from bowerbird.sessions.turn.driver_context import DriverContext
from bowerbird.store.journal.journal import Append
from bowerbird.store.rows.turns import TurnRow

_log = logging.getLogger(__name__)
_STOPS: dict[str, StopReason] = {
    "cancel": "cancelled",
    "disconnect": "cancelled",
    "interrupt": "interrupted",
}


class Driver:
    """Drives one turn once; made for it and thrown away.

    Args:
        context: what the process's drivers share.
        ref: the turn.
        begun: its attempt, when that was begun with its message.
    """

    def __init__(self, context: DriverContext, ref: TurnRef, begun: Begun | None = None) -> None:
        self.ref = ref
        self._context = context
        self._begun = begun
        self._stop = StopSignal()
        self._draining = False
        self._left = False  # nobody asked for the stop: the last viewer went away
        self._attempt: Attempt | None = None

    @property
    def was_cancelled(self) -> bool:
        """Whether somebody asked for the turn's end."""
        return self._stop.reason == "cancelled" and not self._left

    def signal(self, signal: Signal) -> None:
        """Obey a signal at once: stop, look for an answer, or wait for one outside of this process."""
        if signal.kind in _STOPS:
            self._left = self._left or (signal.kind == "disconnect" and self._stop.reason is None)
            self._stop.set(_STOPS[signal.kind])
        elif self._attempt is not None and signal.kind == "make_room":
            self._attempt.approver.make_room()
        elif self._attempt is not None:
            self._attempt.approver.look_again()

    def drain(self) -> None:
        """Stop at the next step's end and leave the turn to the next process."""
        self._draining = True
        if self._attempt is not None:
            self._attempt.draining = True

    async def run(self) -> TurnRow | None:
        """Drive the turn until it ends, waits, or must be left; returns the turn to drive next.

        Raises:
            StoreError: nothing more could be recorded; a sweep finds the turn again.
        """
        context = self._context
        begun = self._begun or await self._begin()
        if begun is None:
            return None
        lease = Lease(context.store, self.ref.thread_id, begun.turn.epoch, context.settings, self._lost)
        try:
            self._attempt = Attempt(context, begun, lease, self._stop, self._draining, lambda: self._left)
            return await self._attempt.drive()
        except LeaseLost as error:
            # Nothing to warn about: the turn goes on, here where a machine slept, else with who took it over.
            _log.info("turn %s was left to whoever is free: %s", self.ref.turn_id, error)
            return None
        finally:
            await lease.aclose()

    async def _begin(self) -> Begun | None:
        """Take the lease and begin the attempt, in one transaction; None when the turn may not run now."""
        context, thread, turn = self._context, self.ref.thread_id, self.ref.turn_id
        begun = await context.store.write(lambda c: begin(c, thread, turn, context))
        if not isinstance(begun, Waiting):
            return begun
        waiting, records = begun, first_records(begun, context.maker.model_of(begun.session))
        append = await context.store.prepared(Append(thread, None, records))
        return await context.store.write(lambda c: taken(c, waiting, append, context))

    def _lost(self) -> None:
        # The loop closes stream and tools; what it reports then is refused by the journal's fence.
        self._stop.set("interrupted")
