"""Where output goes: answers to standard output, all else to standard error (UI-58).

Here: what the two streams can do, colours, a status line on standard error. Not here: what
is written, the interactive prompt.
"""

import os
import shutil
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any, TextIO

import msgspec

from bowerbird.cli.terminal.text import cut, duration, harmless, how_far, json_text, width_of, wrapped
from bowerbird.core.events import LandingProgress

_STYLES = {
    "bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36", "magenta": "35",
}  # fmt: skip
FRAME_S = 0.1
MOST_AT_ONCE = 500
"""So many files land at once: no bar is shown for them."""
_FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_ERASE_LINE = "\r\x1b[2K"


class Ability(msgspec.Struct, frozen=True):
    """What a stream can show."""

    is_terminal: bool
    colour: bool
    cursor: bool


def ability_of(stream: TextIO, environment: Mapping[str, str], *, no_color: bool = False) -> Ability:
    """Return what `stream` can show: NO_COLOR and TERM=dumb are honoured."""
    terminal = stream.isatty()
    dumb = environment.get("TERM", "dumb") in ("dumb", "")
    colour = terminal and not dumb and not no_color and not environment.get("NO_COLOR")
    return Ability(terminal, colour, terminal and not dumb)


class Terminal:
    """The two output streams of one command.

    Args:
        quiet: notes are left out; errors are not.
    """

    def __init__(
        self,
        out: TextIO | None = None,
        err: TextIO | None = None,
        *,
        no_color: bool = False,
        quiet: bool = False,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        environment = os.environ if environment is None else environment
        self._out = out or sys.stdout
        self._err = err or sys.stderr
        for stream in (self._out, self._err):
            reconfigure = getattr(stream, "reconfigure", None)
            if reconfigure is not None:  # names and output may hold any bytes
                reconfigure(errors="backslashreplace")
        self.out = ability_of(self._out, environment, no_color=no_color)
        self.err = ability_of(self._err, environment, no_color=no_color)
        self.quiet = quiet
        self._status = ""

    @property
    def width(self) -> int:
        """Columns now; a pipe has 100."""
        return max(shutil.get_terminal_size((100, 24)).columns, 10)

    def write(self, text: str) -> None:
        """Write `text` to standard output as it is."""
        self.clear_status()
        self._out.write(text)
        self._out.flush()

    def write_exact(self, text: str) -> None:
        """Write `text` for a program to read: as the bytes it stands for, whatever the locale.

        Args:
            text: as `os.fsdecode` makes it of bytes that are not UTF-8.
        """
        raw = getattr(self._out, "buffer", None)
        if raw is None:  # a caller's own stream, which takes text only
            self.write(text)
            return
        self.clear_status()
        self._out.flush()
        raw.write(text.encode("utf-8", "surrogateescape"))
        raw.flush()

    def json(self, data: Any, indent: int | None = 2) -> None:
        """Write data as JSON to standard output."""
        self.write(json_text(data, indent) + "\n")

    def line(self, text: str = "", style: str = "") -> None:
        """Write a line of ours to standard output."""
        self.write(self._drawn(text, style, self.out))

    def note(self, text: str, style: str = "") -> None:
        """Write a line to standard error, unless quiet."""
        if not self.quiet:
            self.warn(text, style)

    def warn(self, text: str, style: str = "") -> None:
        """Write a line to standard error, quiet or not."""
        self.clear_status()
        self._tell(self._drawn(text, style, self.err))

    def _drawn(self, text: str, style: str, ability: Ability) -> str:
        """Return `text` as harmless lines: broken between words for a terminal, as they are for a pipe."""
        lines = harmless(text).split("\n")
        if ability.is_terminal:
            lines = [piece for line in lines for piece in wrapped(line, self.width)]
        return "".join(self.styled(line, style, ability) + "\n" for line in lines)

    @staticmethod
    def styled(text: str, style: str, ability: Ability) -> str:
        """Return `text` in a style, where the stream shows colours."""
        codes = ";".join(_STYLES[name] for name in style.split() if name in _STYLES)
        return f"\x1b[{codes}m{text}\x1b[0m" if codes and ability.colour else text

    def status(self, text: str) -> None:
        """Show `text` on the last line of standard error until something else is written."""
        if not self.err.cursor or self.quiet:
            return
        shown = cut(text, self.width - 1)
        if shown == self._status:
            return
        self._tell(_ERASE_LINE + self.styled(shown, "dim", self.err))
        self._status = shown

    def clear_status(self) -> None:
        """Take the status line away."""
        if self._status:
            self._tell(_ERASE_LINE)
            self._status = ""

    def _tell(self, text: str) -> None:
        """Write to standard error; a full disk below a log is no reason to end a turn."""
        try:
            self._err.write(text)
            self._err.flush()
        except BrokenPipeError:
            raise
        except OSError:
            pass


class Spinner(msgspec.Struct):
    """What is being done and for how long; `frame()` is the line to show now."""

    action: str
    started: float

    @classmethod
    def of(cls, action: str) -> "Spinner":
        """Start at this moment."""
        return cls(action, time.monotonic())

    def frame(self, now: float | None = None, *, width: int | None = None) -> str:
        """Return the present line, for example `⠙ thinking 4s`; in `width` columns its end is the time."""
        moment = time.monotonic() if now is None else now
        elapsed = moment - self.started
        took = duration(elapsed)
        action = self.action if width is None else cut(self.action, max(width - len(took) - 3, 1))
        return f"{_FRAMES[int(moment * 10) % len(_FRAMES)]} {action} {took}"


class LandingBar:
    """How far a landing of many files is, as a bar with rate and remaining time.

    Args:
        show: takes the bar, not more often than ten times a second. width: cells.
    """

    def __init__(self, show: Callable[[str], None], *, width: int) -> None:
        self._show, self._width = show, width
        self._phase = ""
        self._began = self._shown = 0.0

    def __call__(self, progress: LandingProgress) -> None:
        """Show it, unless it is over at once or was shown just now; of any thread."""
        now = time.monotonic()
        if progress.phase != self._phase:  # each phase counts its files from 0, at a speed of its own
            self._phase, self._began = progress.phase, now
        if progress.total <= MOST_AT_ONCE or now - self._shown < FRAME_S:
            return
        self._shown = now
        done, total = progress.done, progress.total
        rate = done / (now - self._began) if now > self._began else 0.0
        unit = f"{how_far(progress)}, {rate:,.0f}/s"
        self._show(progress_bar(done, total, width=self._width, rate=rate, unit=unit))


def progress_bar(done: int, total: int, *, width: int, rate: float, unit: str) -> str:
    """Return a bar with rate and remaining time in `width` cells.

    Args:
        done, total: steps. rate: steps per second. unit: shown text of `done` of `total`.

    Example:
        >>> progress_bar(1, 2, width=60, rate=0.5, unit="1 of 2 files")
        '██████████░░░░░░░░░░  50% 1 of 2 files, 2s left'
    """
    fraction = min(done / total, 1.0) if total else 1.0
    left = f", {duration((total - done) / rate)} left" if rate > 0 and done < total else ""
    text = f" {fraction * 100:3.0f}% {unit}{left}"
    cells = max(min(20, width - width_of(text) - 1), 0)
    full = round(cells * fraction)
    return cut("█" * full + "░" * (cells - full) + text, width)
