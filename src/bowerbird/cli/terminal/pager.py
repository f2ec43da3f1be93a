"""Long output at a terminal goes through a pager, as `git diff` does.

Here: whether and which. Not here: what is shown.
"""

import os
import shlex
import shutil
import subprocess

from bowerbird.cli.terminal.terminal import Terminal
from bowerbird.cli.terminal.text import width_of
from bowerbird.core.processes.host_programs import find_program, plain_environment, popen


def show_paged(terminal: Terminal, drawn: str, plain: str) -> None:
    """Write `drawn` at a terminal, paged when it is longer than the screen; else `plain`."""
    if not terminal.out.is_terminal:
        terminal.write_exact(plain)
        return
    size = shutil.get_terminal_size((100, 24))
    command = _pager() if terminal.out.cursor and rows_of(plain, size.columns) >= size.lines else None
    if command is None or not _paged(command, drawn):
        terminal.write(drawn)


def rows_of(text: str, columns: int) -> int:
    """Return how many rows of a screen `text` takes, long lines as many as they need.

    Example:
        >>> rows_of("ab\\nabcd\\n", 3)
        3
    """
    return sum(max(1, -(-width_of(line) // columns)) for line in text.splitlines())


def _pager() -> list[str] | None:
    named = os.environ.get("PAGER", "less")
    words = shlex.split(named) if named else []
    return words if words and find_program(words[0]) else None


def _paged(command: list[str], drawn: str) -> bool:
    """Run the pager; False when it could not be started."""
    environment = plain_environment(begin=("LESS", "PAGER", "MANPAGER")) | {
        "LESS": os.environ.get("LESS", "FRX"),
        "LV": "-c",
    }
    try:
        child = popen(command, stdin=subprocess.PIPE, env=environment)
    except OSError:
        return False
    with child:
        try:
            child.communicate(drawn.encode("utf-8", "backslashreplace"))
        except KeyboardInterrupt:
            child.wait()
    return True
