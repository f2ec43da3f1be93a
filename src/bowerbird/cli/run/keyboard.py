"""What the prompt of the interactive session reads from: the terminal as it is set, and the lines of before.

Not here: what keys do (`prompt_screen.py`).
"""

import os
import signal
import time
from collections.abc import Callable, Coroutine
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.input.ansi_escape_sequences import ANSI_SEQUENCES
from prompt_toolkit.input.vt100 import Vt100Input
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.key_binding.key_processor import KeyPressEvent
from prompt_toolkit.keys import Keys

from bowerbird.cli.terminal.notifying import GAINED, LOST

# What a terminal says of its focus, as keys that nobody has.
FOCUSED, ELSEWHERE = Keys.F23, Keys.F24
_STOPPING_S = 0.1
ANSI_SEQUENCES.update({GAINED: FOCUSED, LOST: ELSEWHERE})


class Keyboard(Vt100Input):
    """A terminal that stays raw while something is printed above the prompt.

    prompt_toolkit gives the terminal back to its line editor for each write; keys typed in that moment
    change: Alt+Enter sends, Ctrl+D is lost.
    """

    def cooked_mode(self) -> AbstractContextManager[None]:
        return nullcontext()


def bind_suspending(
    keys: KeyBindings, lend: Callable[[Callable[[], None]], Coroutine[Any, Any, None]]
) -> None:
    """Have Ctrl+Z stop this job of the shell; `fg` brings it back as it was.

    Args:
        lend: gives the terminal away, as the shell knows it, while a function runs.
    """

    def stop() -> None:
        os.kill(0, signal.SIGTSTP)  # the whole job: whoever is piped to it stops as well
        time.sleep(_STOPPING_S)  # another thread may take the signal: this one must not make the terminal raw yet

    @keys.add("c-z")
    def suspend(event: KeyPressEvent) -> None:  # pyright: ignore[reportUnusedFunction] - registered
        event.app.create_background_task(lend(stop))


def kept_lines(file: Path | None) -> History:
    """Return the history of typed lines; a file that cannot be kept costs only the memory of it."""
    if file is None:
        return InMemoryHistory()
    try:
        file.touch(mode=0o600, exist_ok=True)
        file.chmod(0o600)
    except OSError:
        return InMemoryHistory()
    return FileHistory(str(file))
