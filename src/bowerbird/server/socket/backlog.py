"""What one viewer has not been sent yet: bounded, without loss as far as it goes (SV-51). Pure.

Here: the queue and its limits. Not here: sending, timing, what happens to a viewer that lost frames.

When it fills, adjacent deltas of one message are joined. When that does not help, it takes nothing more
until it is empty: the viewer reads the missing part from the journal then, so nothing is lost and the
memory of a stalled viewer stays bounded.
"""

from collections import deque

from bowerbird.server.socket.frames import Frame, joined

MAX_EVENTS = 1000
MAX_BYTES = 1 << 20


class Backlog:
    """Frames in order.

    Args:
        max_events, max_bytes: limits; a single larger frame is taken when the queue is empty.

    Example:
        >>> backlog = Backlog(max_events=1)
        >>> backlog.put(Frame(Pong())), backlog.put(Frame(Pong())), backlog.is_lossy
        (True, False, True)
    """

    __slots__ = ("_bytes", "_frames", "_max_bytes", "_max_events", "is_lossy")

    def __init__(self, max_events: int = MAX_EVENTS, max_bytes: int = MAX_BYTES) -> None:
        self._frames: deque[Frame] | None = None  # made when needed: an idle viewer has none
        self._bytes = 0
        self._max_events = max_events
        self._max_bytes = max_bytes
        self.is_lossy = False

    def __len__(self) -> int:
        return len(self._frames or ())

    @property
    def size(self) -> int:
        """Characters queued."""
        return self._bytes

    def put(self, frame: Frame) -> bool:
        """Queue a frame; False when it, and all that follow until `restart`, are not taken."""
        if self.is_lossy:
            return False
        size = len(frame.text)
        if not self._fits(size):
            self._shrink()
            if not self._fits(size):
                self.is_lossy = True
                return False
        if self._frames is None:
            self._frames = deque()
        self._frames.append(frame)
        self._bytes += size
        return True

    def take(self) -> Frame | None:
        """Return the next frame, None when there is none."""
        if not self._frames:
            self._frames = None
            return None
        frame = self._frames.popleft()
        self._bytes -= len(frame.text)
        return frame

    def restart(self) -> None:
        """Take frames again; what is queued is dropped."""
        self._frames = None
        self._bytes = 0
        self.is_lossy = False

    def _fits(self, size: int) -> bool:
        if not self._frames:
            return True
        return len(self._frames) < self._max_events and self._bytes + size <= self._max_bytes

    def _shrink(self) -> None:
        frames = joined(self._frames or ())
        self._frames = deque(frames)
        self._bytes = sum(len(frame.text) for frame in frames)
