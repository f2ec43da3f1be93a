"""Calls on one path run in call order (WS-7).

Here: which calls a new one waits for. Not here: threads, locks between processes.

A call enters, in the event loop and before its first await, with the paths it concerns. It
waits for every earlier call that concerns the same path, one above or one below, when one
of the two writes. Looking at whole trees waits for earlier writes but keeps nobody waiting.
"""

from collections.abc import Collection
from concurrent.futures import Future

import msgspec


class Ticket(msgspec.Struct, eq=False):
    """One call's place in the order.

    Attributes:
        before: futures of the calls to wait for.
        done: set when this call has ended.
    """

    paths: tuple[str, ...]
    writes: bool
    before: list[Future[None]]
    done: Future[None] = msgspec.field(default_factory=Future[None])


class PathOrder:
    """The calls under way on one branch; used from event loop threads."""

    def __init__(self) -> None:
        self._under_way: list[Ticket] = []

    def enter(self, paths: Collection[str], *, writes: bool, tree: bool = False) -> Ticket:
        """Take a place. Paths are lexical (`/a/b`); give the ticket back with `leave`.

        Args:
            writes: the call changes something.
            tree: the call reads everything below its paths and may take long.
        """
        before = [
            other.done
            for other in list(self._under_way)
            if (writes or other.writes) and _meet(paths, other.paths)
        ]
        ticket = Ticket(tuple(paths), writes, before)
        if not tree:
            self._under_way.append(ticket)
        return ticket

    def leave(self, ticket: Ticket) -> None:
        """End a call; called once, from any thread."""
        if ticket in self._under_way:
            self._under_way.remove(ticket)
        if not ticket.done.done():
            ticket.done.set_result(None)


def _meet(paths: Collection[str], others: Collection[str]) -> bool:
    return any(_related(path, other) for path in paths for other in others)


def _related(path: str, other: str) -> bool:
    above, below = sorted((path, other), key=len)
    return above in ("/", below) or below.startswith(above + "/")
