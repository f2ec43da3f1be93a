"""How far a landing or an undo is, for who waits for it, and places at which a caller may look, or end it.

Here: counting its files, phase by phase. Not here: what is done in a phase (`landing.py`, `undo.py`,
`apply.py`), how often viewers are told (`sessions/live/landing_watch.py`), drawing.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar

from bowerbird.core.events import LandingPhase, LandingProgress
from bowerbird.workspace.tree.real_directory import Version

if TYPE_CHECKING:
    from bowerbird.workspace.landing.acts import Action
    from bowerbird.workspace.landing.record import Step

T = TypeVar("T")
Told = Callable[[LandingProgress], None]
Checkpoint = Callable[[str], None]


def no_checkpoint(_: str) -> None:
    """The checkpoint of ordinary landings: nothing."""


class Meter:
    """Counts what one landing has done, and tells after each file.

    Args:
        told: called in the thread that lands, after each file of each phase; None = nobody wants to know.
        undoes: the landing that is taken back, None for one that is made.
    """

    def __init__(self, told: Told | None = None, *, undoes: str | None = None) -> None:
        self._told = told
        self._undoes = undoes

    def each(self, phase: LandingPhase, items: Sequence[T]) -> Iterator[T]:
        """Yield items, each of them a file."""
        return self._counted(phase, [(item, True) for item in items])

    def asked(self, phase: LandingPhase, side_of: Callable[[str], T], total: int) -> Callable[[str], T]:
        """Return the same look at a path, which counts."""
        one = self._counter(phase, total)

        def look(path: str) -> T:
            found = side_of(path)
            one()
            return found

        return look

    def _counter(self, phase: LandingPhase, total: int) -> Callable[[], None]:
        done = 0
        self._tell(phase, 0, total)

        def one() -> None:
            nonlocal done
            if done < total:  # some paths are looked at twice
                done += 1
                self._tell(phase, done, total)

        return one

    def actions(
        self, phase: LandingPhase, actions: "Sequence[Action]", steps: "Sequence[Step]"
    ) -> "Iterator[Action]":
        """Yield actions; a path that is cleared and built counts once, directories come with their files."""
        last = {action.index: place for place, action in enumerate(actions)}
        counted = {last[index] for index in _files(list(last), steps)}
        return self._counted(phase, [(action, place in counted) for place, action in enumerate(actions)])

    def steps(self, phase: LandingPhase, steps: "Sequence[Step]") -> "Iterator[Step]":
        """Yield steps; directories come with their files."""
        counted = set(_files(range(len(steps)), steps))
        return self._counted(phase, [(step, index in counted) for index, step in enumerate(steps)])

    def _counted(self, phase: LandingPhase, items: Sequence[tuple[T, bool]]) -> Iterator[T]:
        one = self._counter(phase, sum(counts for _, counts in items))
        for item, counts in items:
            yield item
            if counts:
                one()

    def _tell(self, phase: LandingPhase, done: int, total: int) -> None:
        if self._told is not None and total:
            kind = "land" if self._undoes is None else "undo"
            self._told(LandingProgress(kind, phase, done, total, self._undoes))


def _files(indices: Sequence[int], steps: "Sequence[Step]") -> list[int]:
    """Those of files; of directories where there is nothing else."""
    named = [index for index in indices if not steps[index].implied]
    return [
        index for index in named if any(map(_is_file, (steps[index].before, steps[index].after)))
    ] or named


def _is_file(version: Version | None) -> bool:
    return version is not None and version.kind != "dir"


UNSEEN = Meter()
"""For landings that nobody watches."""
