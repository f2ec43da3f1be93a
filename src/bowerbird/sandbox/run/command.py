"""One command: what may be asked, and the record of how it ended (SB-14, SB-15).

Here: values and pure decisions. Not here: processes.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from bowerbird.core.errors import InvalidArgument
from bowerbird.sandbox.run.doors import Door

LONGEST_ARGUMENT = 131_071  # the kernel's MAX_ARG_STRLEN without the final NUL
DEFAULT_TIMEOUT_S = 60.0
EXIT_TIMEOUT, EXIT_REFUSED, EXIT_NOT_FOUND = 124, 126, 127
SIGKILL = 9


class CommandResult(msgspec.Struct, frozen=True):
    """The record of a finished command.

    Attributes:
        exit_code: the program's; 124 timeout, 126 refused, 127 not found, 128 + n killed by signal n.
        output: stdout and stderr in order of arrival; `stdout`/`stderr` hold them apart when asked for.
        total_bytes: what the command printed; `output` is shorter when `truncated`.
        spill: name of the whole output for file tools and commands, or None.
        reason: why it was ended: "timeout", "cancel", "memory", "pids", "disk", "cpu", or None.
        note: something a person should know, say a clamped timeout.
        written, deleted: virtual paths that the command changed.
    """

    exit_code: int
    signal: int | None
    timed_out: bool
    cancelled: bool
    oom: bool
    output: str
    truncated: bool
    total_bytes: int
    spill: str | None
    duration_ms: int
    cpu_ms: int
    peak_bytes: int
    stragglers_killed: int
    tier: str
    network: str
    written: list[str]
    deleted: list[str]
    stdout: str | None = None
    stderr: str | None = None
    spill_truncated: bool = False
    reason: str | None = None
    note: str | None = None


class CommandRequest(msgspec.Struct, frozen=True):
    """A checked request; `timeout_s` is within the limits."""

    argv: tuple[str, ...]
    cwd: str = "/"
    root: str | None = None  # no link may lead `cwd` out of this directory
    env: Mapping[str, str] = msgspec.field(default_factory=dict[str, str])
    stdin: bytes = b""
    stdin_fd: int | None = None  # in place of `stdin`; whoever asks closes it after the start
    stdout_fd: int | None = None  # likewise; then only stderr is collected
    doors: tuple[Door, ...] = ()
    timeout_s: float = DEFAULT_TIMEOUT_S
    max_output_bytes: int = 100_000
    separate: bool = False
    keep_output: bool = False  # the whole output goes to the spill from its first byte
    note: str | None = None


class Ending(msgspec.Struct, frozen=True):
    """How the process tree ended, before it becomes a record."""

    code: int | None = None
    signal: int | None = None
    cpu_ms: int = 0
    peak_bytes: int = 0
    stragglers: int = 0
    stop: str | None = None  # why we ended it, as in `CommandResult.reason`
    not_renamed: tuple[str, ...] = ()  # directories, each with the reason


def check_timeout(
    value: Any, maximum_s: float, configured_s: float | None = None
) -> tuple[float, str | None]:
    """Return the timeout to use and a note when it was clamped.

    Raises:
        InvalidArgument: zero, negative, NaN, or not a number.
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidArgument(f"timeout is {value!r}; give seconds as a positive number")
    if math.isnan(value) or value <= 0:
        raise InvalidArgument(f"timeout is {value}; it must be more than 0 seconds")
    most = max(maximum_s, configured_s or 0)
    if value > most:
        return most, f"timeout lowered from {value:g} s to {most:g} s (sandbox.max_timeout)"
    return float(value), None


def check_command(command: str | Sequence[str]) -> tuple[str, ...]:
    """Return the argument list: a string goes to bash (sh if absent), a list runs as it is.

    Raises:
        InvalidArgument: empty, NUL inside, or longer than the kernel takes.
    """
    if isinstance(command, str):
        if not command.strip():
            raise InvalidArgument("the command is empty")
        words: tuple[str, ...] = ("/bin/bash", "-c", command)
    else:
        words = tuple(command)
        if not words or not words[0]:
            raise InvalidArgument("the command is empty")
    for word in words:
        size = _size(word, "the command")
        if size > LONGEST_ARGUMENT:
            raise InvalidArgument(
                f"the command has {size} bytes, at most {LONGEST_ARGUMENT}: put it into a file"
            )
    return words


def check_environment(extra: Mapping[str, str]) -> Mapping[str, str]:
    """Return further variables as they are.

    Raises:
        InvalidArgument: a name that no environment can hold, or a value with a NUL character.
    """
    for name, value in extra.items():
        size = _size(name, "the name of a variable") + _size(value, f"the variable {name}")
        if not name or "=" in name:
            raise InvalidArgument(f"{name!r} is not a valid name for a variable")
        if size >= LONGEST_ARGUMENT:
            raise InvalidArgument(f"the variable {name} has {size} bytes, at most {LONGEST_ARGUMENT}")
    return extra


def _size(text: Any, what: str) -> int:
    """Return the bytes of what the kernel gets; raises InvalidArgument for what it cannot get."""
    if not isinstance(text, str):
        raise InvalidArgument(f"{what} holds {text!r}, which is not text")
    if "\0" in text:
        raise InvalidArgument(f"{what} holds a NUL character")
    try:
        return len(text.encode("utf-8", "surrogateescape"))
    except UnicodeEncodeError as error:
        raise InvalidArgument(f"{what} holds half a surrogate pair, which has no bytes") from error


def exit_code(ending: Ending) -> int:
    """Return the exit code of SB-15."""
    if ending.stop == "timeout":
        return EXIT_TIMEOUT
    if ending.code is not None:
        return ending.code
    return 128 + (ending.signal if ending.signal is not None else SIGKILL)
