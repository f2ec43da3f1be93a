"""What every command starts from: options given anywhere, streams, settings.

Here: loading settings for a command and saying what they warn of; the frame that runs a
coroutine until its end or a signal. Not here: what any command does.
"""

import asyncio
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Coroutine, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from bowerbird.cli.terminal.command_line import Anywhere
from bowerbird.cli.terminal.databases import of_server, say_other
from bowerbird.cli.terminal.exits import DONE, TERMINATED, USAGE, CliExit
from bowerbird.cli.terminal.terminal import Terminal
from bowerbird.core.text_paths import is_utf_8

if TYPE_CHECKING:
    from bowerbird.app.application import Application
    from bowerbird.config import Loaded

T = TypeVar("T")


class Shell(msgspec.Struct, frozen=True):
    """The command's surroundings."""

    anywhere: Anywhere
    terminal: Terminal

    def load(
        self, workspace: Path | None = None, flags: Mapping[str, Any] | None = None, *, silent: bool = False
    ) -> "Loaded":
        """Load settings as a command that works in `workspace` sees them; warnings go to standard error.

        Args:
            silent: do not say that the server of this directory has another database.

        Raises:
            ConfigError: the settings are wrong.
        """
        from bowerbird.config import load_settings

        loaded = load_settings(
            {**self.anywhere.flags(), **(flags or {})},
            kind="cli",
            config_path=self.anywhere.config,
            env_file=self.anywhere.env_file,
            workspace=workspace,
        )
        for warning in loaded.warnings:
            self.terminal.note(f"warning: {warning}", "yellow")
        if not silent:
            say_other(self.anywhere, self.terminal, loaded)
        return loaded

    def load_server(self, *, begin: bool = False) -> "Loaded":
        """Load settings as the server of this directory reads them, for commands that are about it.

        Args:
            begin: also where no server was set up yet; otherwise the settings of every command hold there.

        Raises:
            ConfigError: the settings are wrong.
        """
        others = self.load(Path.cwd(), silent=True)
        return of_server(self.anywhere, self.terminal, others, begin=begin)

    def json(self, data: Any) -> int:
        """Write data as JSON on standard output; a command that ends with it is done."""
        self.terminal.json(data)
        return DONE


def ask_sure(question: str) -> bool:
    """Ask a yes-or-no question; no where nobody sits."""
    if not sys.stdin.isatty():
        return False
    return typed(f"{question} [y/N] ").strip().lower() in ("y", "yes")


def opened(shell: Shell, workspace: str | None, work: "Callable[[Application, Path], Awaitable[T]]") -> T:
    """Run `work` with an application that drives nothing, in the command's directory."""
    directory = directory_of(workspace)
    loaded = shell.load(directory)

    async def framed() -> T:
        from bowerbird.app import open_application

        async with open_application(loaded, workspace=directory) as application:
            return await work(application, directory)

    return run(framed)


def directory_of(given: str | None) -> Path:
    """Return the directory a command works in: the given one, else the current one.

    Raises:
        CliExit: it is no directory.
    """
    try:
        path = Path(given).expanduser().resolve() if given is not None else Path.cwd()
    except FileNotFoundError:
        raise CliExit(
            USAGE, "the current directory no longer exists; go to another or give --workspace"
        ) from None
    if not path.is_dir():
        what = "does not exist" if not path.exists() else "is not a directory"
        raise CliExit(USAGE, f"workspace {path} {what}")
    if not is_utf_8(path):
        raise CliExit(USAGE, f"the path {path} is not UTF-8, and sessions keep it as text; rename it first")
    return path


class Stopped(CliExit):
    """A signal asked the process to end."""


def run(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run `work()` to its end; SIGTERM and SIGHUP cancel it and end the command with their code.

    The coroutine's own clean-up runs: turns stop, the journal is committed, processes end.
    """

    async def framed() -> T:
        loop = asyncio.get_running_loop()
        task = asyncio.current_task()
        assert task is not None
        received: list[int] = []

        def stop(number: int) -> None:
            received.append(number)
            task.cancel()

        for number in (signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, stop, number)
        try:
            return await work()
        except asyncio.CancelledError:
            if received:
                raise Stopped(128 + received[0] if received[0] != signal.SIGTERM else TERMINATED) from None
            raise
        finally:
            for number in (signal.SIGTERM, signal.SIGHUP):
                loop.remove_signal_handler(number)

    if is_debugging():
        return asyncio.run(framed())
    from bowerbird.cli.terminal.error_text import log_in_lines

    with log_in_lines():
        return asyncio.run(framed())


def typed(question: str) -> str:
    """Return the line that answers; blocks.

    Raises:
        EOFError: the input has ended.
    """
    if sys.stdout.isatty():
        return input(question)  # as its prompt: editing the line keeps it
    # `input` would ask in the file or the pipe that the output goes to, and wait unseen.
    sys.stderr.write(question)
    sys.stderr.flush()
    return input()


@contextmanager
def stoppable() -> Generator[None]:
    """Let SIGTERM and SIGHUP end what runs without an event loop as they end `run`: it cleans up."""

    def stop(number: int, _frame: object) -> None:
        raise Stopped(128 + number if number != signal.SIGTERM else TERMINATED)

    before = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def is_debugging() -> bool:
    """Whether tracebacks are wanted."""
    return os.environ.get("BOWERBIRD_DEBUG", "") not in ("", "0")
