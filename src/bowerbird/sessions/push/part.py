"""Telling browsers that an agent asks or is done: the part of sessions (UI-95).

Here: when somebody is told, and whom. Not here: sending (`door.py`), the rows (`store/rows/push.py`).

What is sent says that there is something and in which conversation, never what: the page asks for that,
signed in.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime

import msgspec
from sqlalchemy import Connection

from bowerbird.core.errors import InvalidArgument, UnknownSession
from bowerbird.core.events import ApprovalRequest
from bowerbird.core.extras import require
from bowerbird.core.tasks import Tasks
from bowerbird.core.timestamps import from_iso, now_iso
from bowerbird.sessions.delivery.messages import Parcel, ordered_ids
from bowerbird.sessions.delivery.outbox import Outbox
from bowerbird.sessions.live.hub import Live, Published, TurnMark
from bowerbird.sessions.parts import SessionPart
from bowerbird.sessions.push.encryption import check_keys, public_key
from bowerbird.sessions.push.own_key import own_key
from bowerbird.sessions.push.rules import DOOR, WHAT, PushRules, check_endpoint
from bowerbird.sessions.thread_ids import root_of
from bowerbird.store.rows.outbox import OutboxRow, insert_parcels
from bowerbird.store.rows.push import drop_endpoint, keep_subscription, subscriptions_of
from bowerbird.store.rows.sessions import get_session
from bowerbird.store.rows.turns import get_turn
from bowerbird.store.store import Store

_FAREWELL_S = 2.0
_ENDS = {"done": "done", "failed": "failed"}  # what a person stopped, they know of


class Push(SessionPart):
    """The browsers of one process's users.

    Args:
        store, live: of the process. outbox: returns its outbox. rules: returns what settings say now.
    """

    def __init__(
        self, store: Store, live: Live, outbox: Callable[[], Outbox], rules: Callable[[], PushRules]
    ) -> None:
        self._store = store
        self._outbox = outbox
        self._rules = rules
        self._tasks = Tasks("push")
        live.relay(self._heard)

    async def start(self, *, drives_all: bool) -> None:
        """Send, where a server runs; a command leaves that to the next one."""
        if drives_all:
            from bowerbird.sessions.push.door import PushDoor

            self._outbox().serve(PushDoor(self._store, self._rules))

    # ------------------------------------------------------------ subscriptions

    async def key(self) -> str:
        """Return the key that browsers subscribe with, made at the first question.

        Raises:
            InvalidArgument: push is turned off. ExtraMissing: its library is not installed.
        """
        self._require()
        return public_key(await self._store.write(own_key))

    async def subscribe(self, owner: str, credential: str, endpoint: str, p256dh: str, auth: str) -> None:
        """Tell a browser from now on.

        Raises:
            InvalidArgument: the keys are none, or the address is none that may be sent to.
            ExtraMissing: the library of push is not installed.
        """
        self._require()
        check_keys(p256dh, auth)
        check_endpoint(endpoint, self._rules())
        await self._store.write(lambda c: keep_subscription(c, owner, credential, endpoint, p256dh, auth))

    async def unsubscribe(self, owner: str, endpoint: str) -> bool:
        """Tell a browser no longer; whether it was told so far."""
        return await self._store.write(lambda c: drop_endpoint(c, owner, endpoint))

    def _require(self) -> None:
        if not self._rules().enabled:
            raise InvalidArgument("web push is turned off here (push.enabled)")
        require("push", WHAT)

    # ------------------------------------------------------------ what happens

    def _heard(self, published: Published) -> None:
        """Take what this process tells viewers; returns at once."""
        event, thread = published.event, published.thread_id
        if published.turn_id is None or not self._rules().enabled:
            return
        if isinstance(event, ApprovalRequest):
            self._tasks.spawn(self._tell(root_of(thread), published.turn_id, "answer", event.id))
        elif isinstance(event, TurnMark) and event.state in _ENDS and root_of(thread) == thread:
            self._tasks.spawn(self._tell(thread, published.turn_id, _ENDS[event.state], ""))

    async def _tell(self, thread: str, turn: str, kind: str, request: str) -> None:
        after_s = self._rules().after_s

        def add(connection: Connection) -> int:
            try:
                owner = get_session(connection, thread).owner or ""
                is_short = kind != "answer" and _seconds(connection, turn) < after_s
            except UnknownSession:
                return 0  # deleted meanwhile
            rows = () if is_short else subscriptions_of(connection, owner)
            addresses = [row.id for row in rows]
            return insert_parcels(connection, _parcels(thread, turn, kind, request, addresses))

        if await self._store.write(add):
            self._outbox().look()

    async def aclose(self) -> None:
        """Write down what is to be told; sending it is the outbox's."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_FAREWELL_S):
                await self._tasks.finish()
        await self._tasks.cancel()


def _seconds(connection: Connection, turn_id: str) -> float:
    turn = get_turn(connection, turn_id)
    if turn.started_at is None:
        return 0.0
    end = from_iso(turn.ended_at) if turn.ended_at is not None else datetime.now(UTC)
    return (end - from_iso(turn.started_at)).total_seconds()


def _parcels(
    thread: str, turn: str, kind: str, request: str, addresses: Sequence[str]
) -> tuple[OutboxRow, ...]:
    body = msgspec.json.encode(Parcel(DOOR, {"kind": kind, "conversation": thread}, now_iso())).decode()
    return tuple(
        OutboxRow(
            id=row_id, thread_id=thread, turn_id=turn, door=DOOR, address=address, part=0, body=body,
            dedupe_key=f"{turn}:{kind}:{request}:{address}",
        )
        for row_id, address in zip(ordered_ids(len(addresses)), addresses, strict=True)
    )  # fmt: skip
