"""The viewers that are in a room, and how a frame reaches all of them (SV-47, SV-51).

Here: the list, and gathering deltas for a crowd. Not here: which frames there are (`room.py`), one viewer's
queue (`viewer.py`).
"""

import asyncio

from bowerbird.server.socket.frames import Frame, joined
from bowerbird.server.socket.viewer import Farewell, Viewer

# With so many viewers, deltas are gathered for a moment: each send costs some 25 µs, and 1,000 viewers
# would keep the loop busy with one word at a time.
CROWD = 50
GATHER_S = 4e-5  # per viewer


class Audience:
    """Viewers in one place of the order: what is shown reaches all of them."""

    def __init__(self) -> None:
        self.viewers: list[Viewer] = []
        self._gathered: list[Frame] = []
        self._flushing: asyncio.TimerHandle | None = None

    @property
    def has_v2(self) -> bool:
        """Whether anybody knows the added types."""
        return any(viewer.v2 for viewer in self.viewers)

    def show(self, frame: Frame) -> None:
        """Queue a frame for everybody who knows its type."""
        if frame.delta is not None and len(self.viewers) >= CROWD:
            self._gathered.append(frame)
            if self._flushing is None:
                delay = len(self.viewers) * GATHER_S
                self._flushing = asyncio.get_running_loop().call_later(delay, self.flush)
            return
        if self._gathered:
            self.flush()
        self._put(frame)

    def flush(self) -> None:
        """Send what was gathered for a crowd, adjacent pieces as one."""
        if self._flushing is not None:
            self._flushing.cancel()
            self._flushing = None
        gathered, self._gathered = self._gathered, []
        for frame in joined(gathered):
            self._put(frame)

    def remove(self, viewer: Viewer) -> None:
        """Take a viewer off the list."""
        if viewer in self.viewers:
            self.viewers.remove(viewer)

    def send_away(self, farewell: Farewell) -> None:
        """Close everybody."""
        for viewer in tuple(self.viewers):
            viewer.close(farewell)

    def _put(self, frame: Frame) -> None:
        if frame.v2:
            for viewer in self.viewers:
                if viewer.v2:
                    viewer.put(frame)
        else:
            for viewer in self.viewers:
                viewer.put(frame)
