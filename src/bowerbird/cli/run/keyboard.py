"""What the prompt of the interactive session reads from: the terminal as it is set, and the lines of before.

Not here: what keys do (`prompt_screen.py`).
"""

import os
import signal
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
ANSI_SEQUENCES.update({GAINED: FOCUSED, LOST: ELSEWHERE})


class Keyboard(Vt100Input):
    """A terminal that stays raw while something is printed above the prompt.

    prompt_toolkit gives the terminal back to its line editor for each write; keys typed in that moment
    change: Alt+Enter sends, Ctrl+D is lost.
    """

    def cooked_mode(self) -> AbstractContextManager[None]:
        return nullcontext()


def bind_suspending(keys: KeyBindings, lend: Callable[..., Coroutine[Any, Any, None]]) -> None:
    """Have Ctrl+Z stop the job, as anywhere else: the shell gets the terminal as it gave it."""

    @keys.add("c-z")
    def suspend(event: KeyPressEvent) -> None:  # pyright: ignore[reportUnusedFunction] - registered
        event.app.create_background_task(lend(_stop_job, aside=False))


def _stop_job() -> None:
    """Return when the job is in the front again; for the main thread, the one that stops at once."""
    os.kill(0, signal.SIGTSTP)  # the whole job: what shares a pipe with us stops, too


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
