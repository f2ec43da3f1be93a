"""Whose turn it is that a leaving viewer leaves behind (SV-49). Pure.

Here: which turns came over sockets, who asked that they go on, what must be stopped when nobody watches
any more. Not here: viewers themselves, stopping.
"""

from dataclasses import dataclass, field

_OVER = ("done", "failed", "cancelled", "interrupted")


@dataclass(slots=True)
class ViewersRule:
    """The turns of one conversation, as far as leaving concerns them.

    Turns from REST, schedules and channels are not known here and never stop for a viewer. A message that
    was queued behind another turn is not given up either: its turn runs when its time comes.

    Attributes:
        ours: turns that came over a socket. running: the turn under way. expected: accepted as next, not
            begun. kept: somebody who watches, or watched, the present turn asked for `continue`.

    Example:
        >>> watch = ViewersRule()
        >>> watch.submitted("t_1", 0, kept=False)
        >>> watch.marked("t_1", "running", kept=False)
        False
        >>> watch.emptied()
        't_1'
    """

    ours: set[str] = field(default_factory=set[str])
    running: str | None = None
    expected: str | None = None
    kept: bool = False
    _doomed: str | None = None
    _adopts: bool = False

    def submitted(self, turn_id: str, position: int, *, kept: bool, steers: bool = False) -> None:
        """Note a turn that came over a socket.

        Args:
            kept: its sender asked for `continue`.
            steers: the message may have joined a turn that others began.
        """
        if turn_id == self.running:
            if not steers:  # it began before its sender heard of it
                self.ours.add(turn_id)
                self.kept = self.kept or kept
            return
        self.ours.add(turn_id)
        if position == 0 and self.running is None:
            self.expected, self.kept = turn_id, kept

    def continued(self) -> None:
        """Note that the turn which begins next carries out what a socket decided (a plan)."""
        self._adopts = True

    def joined(self, *, kept: bool) -> None:
        """Note a new viewer."""
        self.kept = self.kept or kept
        self._doomed = None

    def marked(self, turn_id: str | None, state: str, *, kept: bool) -> bool:
        """Note a turn's state; True when it must be stopped, for it began after everybody had left.

        Args:
            kept: somebody who watches now asked for `continue`.
        """
        if turn_id is None:
            return False
        if state == "running" and turn_id != self.running:
            if self._adopts and turn_id not in self.ours:
                self.ours.add(turn_id)
            self._adopts = False
            self.kept = (self.kept and turn_id == self.expected) or kept
            self.running, self.expected = turn_id, None
            doomed, self._doomed = self._doomed == turn_id, None
            return doomed
        if state in _OVER:
            self.ours.discard(turn_id)
            self.running = None if self.running == turn_id else self.running
        return False

    def paused(self, turn_id: str | None) -> None:
        """Note that a turn stopped to wait for a person: nothing is left to stop."""
        self.ours.discard(turn_id or "")
        self.running = None

    def emptied(self) -> str | None:
        """Return the turn to stop now that the last viewer has left, None for none."""
        if self.kept:
            return None
        if self.running is not None:
            return self.running if self.running in self.ours else None
        if self.expected is not None:
            self._doomed = self.expected
        return None
