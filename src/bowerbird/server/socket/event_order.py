"""One total order of a session's events, each exactly once (SV-44 … SV-46, SE-33). Pure.

Here: committed events by their number, live ones between them, gaps and waits. Not here: reading what is
missing (`room.py`), frames.
"""

from bowerbird.sessions.live.hub import Published


class Order:
    """What was let through, and what waits.

    Attributes:
        head: number of the newest committed event let through.

    Example:
        >>> order = Order(4)
        >>> order.arrive(Published("t", None, 6, event)), order.gap
        ([], (4, 5))
        >>> [p.seq for p in order.filled([Published("t", None, 5, event)], 5)]
        [5, 6]
    """

    __slots__ = ("_held", "_waiting", "head")

    def __init__(self, head: int) -> None:
        self.head = head
        self._waiting: list[Published] = []  # nearly always empty; a list costs nothing then
        self._held = False

    @property
    def is_waiting(self) -> bool:
        """Whether events queue up behind a gap or a hold."""
        return self._held or bool(self._waiting)

    @property
    def is_held(self) -> bool:
        """Whether somebody asked for a wait."""
        return self._held

    @property
    def gap(self) -> tuple[int, int] | None:
        """What must be read before anything else: records `after` < seq ≤ `upto`."""
        first = self._waiting[0] if self._waiting and not self._held else None
        if first is None or first.seq is None or first.seq <= self.head + 1:
            return None
        return self.head, first.seq - 1

    def arrive(self, published: Published) -> list[Published]:
        """Return what may be shown now that this event came."""
        self._waiting.append(published)
        return self._ready()

    def filled(self, found: list[Published], upto: int) -> list[Published]:
        """Return what may be shown now that the journal was read up to record `upto`.

        Args:
            found: what of it is shown; records without an event are left out.
        """
        fresh = [p for p in found if p.seq is not None and p.seq > self.head]
        self.head = max(self.head, upto)
        return [*fresh, *self._ready()]

    def hold(self) -> None:
        """Let nothing through until `release`."""
        self._held = True

    def release(self) -> list[Published]:
        """Return what came meanwhile."""
        self._held = False
        return self._ready()

    def _ready(self) -> list[Published]:
        shown: list[Published] = []
        passed = 0
        for published in () if self._held else self._waiting:
            seq = published.seq
            if seq is None or seq == self.head + 1:
                shown.append(published)
                self.head = seq or self.head
            elif seq > self.head:
                break
            passed += 1  # what is known already is passed over
        del self._waiting[:passed]
        return shown
