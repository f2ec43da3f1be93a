"""Telling a person who looks elsewhere that a turn has ended or asks (UI-81).

Here: when, and with which sequences of the terminal. Not here: programs that are told, which are hooks
(`sessions/hooks.py`).

Focus is reported after mode 1004 of xterm's control sequences is set; notifications are OSC 9 (iTerm2) or
OSC 777 (rxvt-unicode), whichever a terminal knows. All know the bell.
"""

import time
from collections.abc import Callable, Mapping
from typing import Literal

from bowerbird.cli.terminal.text import harmless, one_line

How = Literal["auto", "bell", "off"]

WATCHED_S = 10.0  # nobody leaves for a turn that is shorter
GAINED, LOST = "\x1b[I", "\x1b[O"
_ASK, _CEASE, _BELL = "\x1b[?1004h", "\x1b[?1004l", "\a"
_OSC_9 = ("iTerm.app", "WezTerm", "ghostty")
_PLAIN = ("", "dumb", "linux")


class Notifier:
    """Notifications of one terminal.

    Args:
        write: sends to the terminal as it is. how: `auto`, `bell` without a notification, `off`.
        environment: says which terminal it is. clock: seconds.

    Attributes:
        is_focused: whether the person looks at the window; None until the terminal says so.
    """

    def __init__(
        self,
        write: Callable[[str], None],
        how: How,
        environment: Mapping[str, str],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._write = write
        self._how = how
        self._environment = environment
        self._clock = clock
        self._began = clock()
        self.is_focused: bool | None = None

    def watch(self, on: bool) -> None:
        """Have the terminal report its focus, or no more."""
        if self._how != "off" and self._environment.get("TERM", "") not in _PLAIN:
            self._write(_ASK if on else _CEASE)

    def begin(self) -> None:
        """A turn begins, or goes on after an answer."""
        self._began = self._clock()

    def tell(self, text: str) -> None:
        """Tell a person who looks elsewhere, unless the turn was short; who cannot be seen hears the bell."""
        if self._how == "off" or self.is_focused or self._clock() - self._began <= WATCHED_S:
            return
        shown = self._how == "auto" and self.is_focused is False
        self._write((self._notification(one_line(harmless(text), 100)) if shown else "") + _BELL)

    def _notification(self, text: str) -> str:
        text = "".join(letter for letter in text if letter.isprintable())
        is_kitty = "kitty" in self._environment.get("TERM", "")
        if is_kitty or self._environment.get("TERM_PROGRAM") in _OSC_9:
            return f"\x1b]9;Bowerbird: {text}\x1b\\"
        return f"\x1b]777;notify;Bowerbird;{text.replace(';', ',')}\x1b\\"
