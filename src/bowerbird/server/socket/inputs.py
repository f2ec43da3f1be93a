"""Which inputs the viewers of a conversation were told of: each is told once, none is lost (SV-47).

Here: inputs between their acceptance, which is live and in no record, and the record of their turn. Not here:
frames (`simple_frames.py`), the queue as it lies in the database.

A viewer that comes in between was not there when an input was accepted, and its record is not there yet:
it is given what waits. An input that nobody here was told of is told when its record comes.
"""

from bowerbird.core.events import UserStep
from bowerbird.sessions.live.hub import InputMark


class Inputs:
    """What was told and has not begun, and how many inputs of the running turn were told.

    Example:
        >>> inputs = Inputs()
        >>> inputs.told(InputMark("i_1", "t_1", text="hi"), None)
        >>> [mark.text for mark in inputs.waiting]
        ['hi']
        >>> inputs.begun("t_1")
        >>> inputs.waiting
        []
    """

    __slots__ = ("_told", "_waiting")

    def __init__(self) -> None:
        self._waiting: dict[str, InputMark] = {}
        self._told = 0

    @property
    def waiting(self) -> list[InputMark]:
        """Inputs whose turns have not begun, in order."""
        return list(self._waiting.values())

    def told(self, mark: InputMark, running: str | None) -> None:
        """Viewers were told of an input, or that it was taken back; `running` is the turn at work."""
        if mark.state == "cancelled":
            self._waiting.pop(mark.inbox_id, None)
        elif mark.inbox_id and mark.kind != "steer" and mark.turn_id != running:
            self._waiting[mark.inbox_id] = mark

    def begun(self, turn_id: str | None) -> None:
        """A turn begins: its inputs wait no longer, and their records come now."""
        mine = [inbox for inbox, mark in self._waiting.items() if mark.turn_id == turn_id]
        self._told = len(mine)
        for inbox in mine:
            del self._waiting[inbox]

    def entered(self, turn_id: str | None, step: UserStep) -> InputMark | None:
        """Return what viewers must be told now that an input's record came, None where they were told."""
        if step.steer:
            return None
        if self._told > 0:
            self._told -= 1
            return None
        return InputMark("", turn_id or "", text=step.message.text)
