"""What the prompt of the interactive session reads from: the terminal as it is set, and the lines of before.

Here: also the keys that need none of the prompt's state. Not here: what the others do (`prompt_screen.py`).
"""

import os
import signal
import sys
import termios
import time
from collections.abc import Callable, Coroutine, Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

from prompt_toolkit.application import Application
from prompt_toolkit.application.current import set_app
from prompt_toolkit.filters import Condition, emacs_mode, has_completions, is_searching
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.input.ansi_escape_sequences import ANSI_SEQUENCES
from prompt_toolkit.input.vt100 import Vt100Input
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.key_binding.key_processor import KeyPressEvent
from prompt_toolkit.keys import Keys
from prompt_toolkit.layout.processors import TabsProcessor
from prompt_toolkit.search import stop_search

from bowerbird.cli.run.completer import takes_choice
from bowerbird.cli.terminal.notifying import GAINED, LOST

# What a terminal says of its focus, as keys that nobody has.
FOCUSED, ELSEWHERE = Keys.F23, Keys.F24
_STOPPING_S = (
    0.1  # another thread may take the signal: the terminal must not be raw again before it is stopped
)
ESC_S = 0.5  # Esc alone is a key after this time; before it, Esc and Enter are Alt+Enter
ESCAPED_S = 0.1  # what a terminal sends for one key comes together
TABS = TabsProcessor(char1=" ", char2=" ")  # a tab is shown as the space that it takes
# Where the line is written; while the history is searched, Enter, Esc and Ctrl+C end the search.
WRITING = ~is_searching
ANSI_SEQUENCES.update({GAINED: FOCUSED, LOST: ELSEWHERE})


class Keyboard(Vt100Input):
    """A terminal that stays raw while something is printed above the prompt.

    prompt_toolkit gives the terminal back to its line editor for each write; keys typed in that moment
    change: Alt+Enter sends, Ctrl+D is lost.
    """

    def cooked_mode(self) -> AbstractContextManager[None]:
        return nullcontext()


@contextmanager
def as_given(before: list[Any] | None) -> Generator[None]:
    """Set the terminal, for a while, as it was before the conversation; None = there is none."""
    if before is None:
        yield
        return
    now = termios.tcgetattr(sys.stdin)
    termios.tcsetattr(sys.stdin, termios.TCSANOW, before)
    try:
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSANOW, now)


def bind_lines(keys: KeyBindings) -> None:
    """Have Enter send, Alt+Enter begin a line, Ctrl+D leave an empty one, Esc close a menu."""

    @keys.add("enter", filter=WRITING)
    def accept(event: KeyPressEvent) -> None:  # pyright: ignore[reportUnusedFunction] - registered
        if not takes_choice(event.current_buffer):
            event.current_buffer.validate_and_handle()

    @keys.add("escape", "enter", filter=WRITING)
    def newline(event: KeyPressEvent) -> None:  # pyright: ignore[reportUnusedFunction] - registered
        event.current_buffer.insert_text("\n")

    @keys.add("escape", filter=has_completions & emacs_mode)
    def close(event: KeyPressEvent) -> None:  # pyright: ignore[reportUnusedFunction] - registered
        event.current_buffer.cancel_completion()

    @keys.add("c-d")
    def leave(event: KeyPressEvent) -> None:  # pyright: ignore[reportUnusedFunction] - registered
        if not event.current_buffer.text:
            event.app.exit(exception=EOFError)


def bind_suspending(
    keys: KeyBindings, lend: Callable[[Callable[[], None]], Coroutine[Any, Any, None]]
) -> None:
    """Have Ctrl+Z stop this job of the shell; `fg` brings it back as it was.

    Args:
        lend: gives the terminal away, as the shell knows it, while a function runs.
    """

    def stop() -> None:
        os.kill(0, signal.SIGTSTP)  # the whole job: whoever is piped to it stops as well
        time.sleep(_STOPPING_S)

    @keys.add("c-z")
    def suspend(event: KeyPressEvent) -> None:  # pyright: ignore[reportUnusedFunction] - registered
        event.app.create_background_task(lend(stop))


def bind_stopping(keys: KeyBindings, runs: Callable[[], bool], stop: Callable[[], None]) -> None:
    """Have Esc stop what runs, too; with vi's keys it changes the mode, and in a menu it closes that."""

    @keys.add("escape", filter=Condition(runs) & emacs_mode & ~is_searching & ~has_completions)
    def escape(_event: KeyPressEvent) -> None:  # pyright: ignore[reportUnusedFunction] - registered
        stop()


def end_search(app: Application[Any]) -> None:
    """Go on with the line, if the history is being searched."""
    with set_app(app):
        if app.layout.is_searching:
            stop_search()


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
