"""What receiving needs of the store: who may poll, what is set aside, how it fares (AS-13, AS-14).

Here: those three, over rows. Not here: receiving (each channel's own), the router's own count of failures.
"""

import hashlib

import msgspec
from sqlalchemy import Connection

from bowerbird.core.forms import decode
from bowerbird.core.tasks import Tasks
from bowerbird.core.timestamps import now_iso
from bowerbird.store.channels.named_leases import release_named_lease, take_named_lease
from bowerbird.store.journal.quarantine import put_aside
from bowerbird.store.rows.meta import get_meta, set_meta
from bowerbird.store.store import Store

LEASE_S = 15


class ChannelState(msgspec.Struct, frozen=True):
    """How a channel fares: `receives` or `failed`, and why."""

    state: str
    why: str = ""
    at: str = ""


def note_state(connection: Connection, name: str, state: str, why: str = "") -> None:
    """Keep how a channel fares, for commands of other processes."""
    said = ChannelState(state, why, now_iso())
    set_meta(connection, f"channel:{name}", msgspec.json.encode(said).decode())


def state_of(connection: Connection, name: str) -> ChannelState | None:
    """Return how a channel fared last, None when it was never started."""
    said = get_meta(connection, f"channel:{name}")
    return None if said is None else decode(said, ChannelState)


class PollerLease:
    """One process at a time receives with a token; the token itself is kept nowhere."""

    def __init__(self, store: Store, channel: str, token: str, holder: str) -> None:
        self._store = store
        self._name = f"{channel}:{hashlib.sha256(token.encode()).hexdigest()}"
        self._holder = holder

    async def acquire(self) -> bool:
        """Take the lease; False while another process holds it."""
        name, holder = self._name, self._holder
        return await self._store.write(lambda c: take_named_lease(c, name, holder, LEASE_S), flush=False)

    async def renew(self) -> bool:
        """Keep it; False when it was lost."""
        return await self.acquire()

    async def release(self) -> None:
        """Give it back."""
        await self._store.write(lambda c: release_named_lease(c, self._name, self._holder), flush=False)


class Quarantine:
    """Keeps what cannot be received, as it came."""

    def __init__(self, store: Store, channel: str) -> None:
        self._store = store
        self._channel = channel

    async def __call__(self, key: str, raw: str, reason: str) -> None:
        """Keep one update."""
        await self._store.write(
            lambda c: put_aside(c, source=self._channel, key=key, reason=reason, raw=raw, at=now_iso())
        )


class StateReport:
    """Keeps what a channel says of its receiving: "" when it is well."""

    def __init__(self, store: Store, channel: str) -> None:
        self._store = store
        self._channel = channel
        self._tasks = Tasks(f"state of {channel}")

    def __call__(self, why: str) -> None:
        """Take what is wrong; returns at once."""
        state = "failed" if why else "receives"
        self._tasks.spawn(self._store.write(lambda c: note_state(c, self._channel, state, why), flush=False))
