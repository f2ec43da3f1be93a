"""How many connections may stand at the door, and how long each may take to say what it wants (D-11). No I/O.

Here: the limits, who is counted against which, and which connection goes when there is no room. Not here:
the connections themselves (`http/connections.py`), credentials and rates (`access/`).

A connection *waits* until the head of its first request is complete: nothing is known of it, so it is the
first to go when its address or the whole server is full. Whoever says at once what they want gets in, however
many others only stand there.
"""

import ipaddress
from collections import Counter
from collections.abc import Callable, Container
from dataclasses import dataclass
from functools import lru_cache

SPARE_FILES = 200  # descriptors that are kept for the database, files and sandboxes
ONE_ADDRESS = 0.75  # of all places at most, so that one address never takes them all
KIB = 1 << 10


@dataclass(frozen=True, slots=True)
class DoorLimits:
    """What a connection may take before anything is known of it.

    Attributes:
        head_bytes: of a request's line and headers together. head_s: until they are complete.
        body_s: until a body is complete; each `body_rate` bytes that came give one second more.
        stall_s: for how long a peer may take nothing of what is sent to it.
        most: connections in all. most_of_one: of one address; an IPv6 /64 counts as one.
        busiest: addresses that speak for many people, say proxies; only `most` binds them.
    """

    head_bytes: int = 32 * KIB
    head_s: float = 10.0
    body_s: float = 30.0
    body_rate: int = 500
    stall_s: float = 60.0
    most: int = 4096
    most_of_one: int = 1536
    busiest: Container[str] = ()

    def within(self, open_files: int) -> "DoorLimits":
        """Return limits that a process of so many descriptors can keep.

        Example:
            >>> DoorLimits(most=4096, most_of_one=1536).within(1024).most
            824
        """
        most = max(8, min(self.most, open_files - SPARE_FILES))
        return DoorLimits(
            self.head_bytes,
            self.head_s,
            self.body_s,
            self.body_rate,
            self.stall_s,
            most,
            min(self.most_of_one, max(1, int(most * ONE_ADDRESS))),
            self.busiest,
        )


@dataclass(slots=True, eq=False)
class Place:
    """One connection at the door.

    Attributes:
        group: whom it is counted with, "" where only the whole counts. leave: ends the connection.
    """

    group: str
    leave: Callable[[], None]


class Doorstep:
    """Counts the connections of one server; owned by its event loop."""

    def __init__(self, limits: DoorLimits) -> None:
        self.limits = limits
        self.turned_away = 0
        self._open = 0
        self._of: Counter[str] = Counter()
        self._waiting: dict[str, dict[Place, None]] = {}  # by group, oldest first

    @property
    def open(self) -> int:
        """Return how many connections there are."""
        return self._open

    def come(self, address: str, leave: Callable[[], None]) -> Place | None:
        """Give a new connection a place, if need be that of one that only waits; None when there is none."""
        group = "" if address in self.limits.busiest else group_of(address)
        if group and self._of[group] >= self.limits.most_of_one and not self._evict(group):
            self.turned_away += 1
            return None
        if self._open >= self.limits.most and not self._evict(self._fullest()):
            self.turned_away += 1
            return None
        place = Place(group, leave)
        self._open += 1
        self._of[group] += 1
        self._waiting.setdefault(group, {})[place] = None
        return place

    def known(self, place: Place) -> None:
        """Its first request has a complete head: it keeps its place."""
        waiting = self._waiting.get(place.group)
        if waiting is not None and place in waiting:
            del waiting[place]
            if not waiting:
                del self._waiting[place.group]

    def left(self, place: Place) -> None:
        """The connection is gone."""
        self.known(place)
        self._open -= 1
        self._of[place.group] -= 1
        if not self._of[place.group]:
            del self._of[place.group]

    def _fullest(self) -> str | None:
        return max(self._waiting, key=lambda group: len(self._waiting[group]), default=None)

    def _evict(self, group: str | None) -> bool:
        """End the connection of a group that has waited longest; it calls `left` by itself, now or later."""
        waiting = self._waiting.get(group) if group is not None else None
        if not waiting:
            return False
        oldest = next(iter(waiting))
        self.known(oldest)
        self.turned_away += 1
        oldest.leave()
        return True


@lru_cache(maxsize=4096)
def group_of(address: str) -> str:
    """Return whom an address is counted with: itself, or its /64, which is what one host has.

    Example:
        >>> group_of("::ffff:10.0.0.7"), group_of("2001:db8:1:2:3::9")
        ('10.0.0.7', '2001:db8:1:2::/64')
    """
    try:
        ip = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address or "?"
    if isinstance(ip, ipaddress.IPv6Address):
        if ip.ipv4_mapped is not None:
            return str(ip.ipv4_mapped)
        if not ip.is_loopback:
            return str(ipaddress.ip_network((int(ip) >> 64 << 64, 64)))
    return str(ip)
