"""The entry point: arguments in, exit code out, every error one readable message (UI-60, UI-63).

Here: dispatch and the last line of defence. Not here: options (`parser.py`), what commands do.
"""

import gc
import os
import sys
from collections.abc import Sequence

from bowerbird.cli.terminal.collector import starting
from bowerbird.cli.terminal.command_line import CommandLine, read_command_line
from bowerbird.cli.terminal.exits import FAILED, INTERRUPTED, PIPE, USAGE, CliExit, code_of_error
from bowerbird.cli.terminal.shell import Shell, is_debugging
from bowerbird.cli.terminal.terminal import Terminal
from bowerbird.core.errors import BowerbirdError
from bowerbird.core.processes.creation_mask import tighten_umask


def main() -> None:
    """Run the command of this process and leave with its exit code."""
    starting()
    tighten_umask()
    # Else pydantic looks for plugins in the metadata of every package that is installed.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    if not os.path.isabs(os.environ.get("HOME", "/")):  # noqa: PTH117 - "" and "~" are none
        del os.environ["HOME"]  # else data would lie at the top of the system, or in somebody's project
    _open_what_is_closed()
    try:
        code = run_command(sys.argv[1:])
    except BrokenPipeError:  # also of what was to be said on standard error
        code = PIPE
    _let_go(code)
    gc.freeze()  # else the interpreter looks through all of it once more
    sys.exit(code)


def _open_what_is_closed() -> None:
    """Give a process that was started without standard streams empty ones.

    Else the next file, a database for one, gets the number, and what is printed goes into it.
    """
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest number that is free: this one
            setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))  # noqa: SIM115 - it stays open
            os.set_inheritable(number, True)


def run_command(arguments: Sequence[str]) -> int:
    """Run one command line; return its exit code. Errors are said on standard error."""
    try:
        line = read_command_line(arguments)
        shell = Shell(line.anywhere, Terminal(no_color=line.anywhere.no_color))
    except CliExit as refused:
        Terminal().warn(f"bowerbird: {refused.message}")
        return refused.code
    try:
        return _run(line, shell)
    except BrokenPipeError:
        return PIPE
    except KeyboardInterrupt:
        shell.terminal.clear_status()
        return INTERRUPTED
    except (CliExit, BowerbirdError, OSError) as error:
        return _failed(error, shell)
    except Exception as error:  # a defect: people get a line and what to do, never a traceback
        if _was_interrupted(error):
            shell.terminal.clear_status()
            return INTERRUPTED
        if is_debugging():
            raise
        if lack := _lack(error):
            shell.terminal.warn(f"bowerbird: {lack}", "red")
            return FAILED
        if isinstance(error, UnicodeEncodeError) and (wrong := _no_text(arguments)) is not None:
            shell.terminal.warn(f"bowerbird: {wrong!r} is to be text, and not all of its bytes are UTF-8")
            return USAGE
        shell.terminal.warn(
            f"bowerbird: internal error: {type(error).__name__}: {error}\n"
            "`bowerbird landings` shows what landed. BOWERBIRD_DEBUG=1 gives a traceback to report.",
            "red",
        )
        return FAILED


def _was_interrupted(error: BaseException) -> bool:
    """Whether Ctrl+C is behind an error: compiled code, such as pydantic's, makes one of its own of it."""
    found: BaseException | None = error
    while found is not None:
        if isinstance(found, KeyboardInterrupt) or "KeyboardInterrupt:" in str(found):
            return True
        found = found.__cause__ or found.__context__
    return False


def _run(line: CommandLine, shell: Shell) -> int:
    if line.arguments in (("--version",), ("-V",)):
        from bowerbird import __version__

        shell.terminal.write(f"bowerbird {__version__}\n")
        return 0
    from bowerbird.cli.parser import parse_and_run

    code = parse_and_run(line.arguments, shell)
    sys.stdout.flush()
    return code


def _failed(error: Exception, shell: Shell) -> int:
    if isinstance(error, CliExit) and error.code == PIPE:
        return PIPE
    if is_debugging() and not isinstance(error, CliExit):
        raise error
    text = error.message if isinstance(error, CliExit) else _sentence(error)
    if text:
        shell.terminal.warn(f"bowerbird: {text}", "red" if code_of_error(error) != USAGE else "")
    return code_of_error(error)


def _sentence(error: Exception) -> str:
    from bowerbird.cli.terminal.error_text import sentence

    return sentence(error)


def _no_text(arguments: Sequence[str]) -> str | None:
    """Return the first argument with bytes that are no text in this locale; file names may have them."""
    return next((word for word in arguments if any("\ud800" <= char <= "\udfff" for char in word)), None)


def _lack(error: Exception) -> str:
    try:
        from bowerbird.cli.terminal.error_text import lack_of_memory

        return lack_of_memory(error)
    except MemoryError:  # not even enough for the words
        return "out of memory (ulimit -v)"


def _let_go(code: int) -> None:
    """Write what is left; the interpreter must not try what cannot be written, and tell of it, once more."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
            is_read = code != PIPE
        except OSError:
            is_read = False
        if not is_read:
            with open(os.devnull, "wb") as nowhere:  # noqa: PTH123 - a descriptor is needed, not a path
                os.dup2(nowhere.fileno(), stream.fileno())


if __name__ == "__main__":
    main()
