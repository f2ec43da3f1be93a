"""What passes between an interpreter and those who run it: steps, answers.

Here: values. Not here: limits (`engine.py`), the interpreter's package (`monty.py`), running (`run.py`).
"""

from typing import Any

import msgspec


class Ended(msgspec.Struct, frozen=True):
    """The snippet is through; `value` is that of its last expression."""

    value: object


class HostCall(msgspec.Struct, frozen=True):
    """The snippet called a function of ours, or asks for a file, the clock, a module."""

    id: int
    name: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    is_os: bool


class NameNeeded(msgspec.Struct, frozen=True):
    """The snippet uses a name it has not bound."""

    name: str


class Waiting(msgspec.Struct, frozen=True):
    """Every task of the snippet waits for one of these calls."""

    ids: tuple[int, ...]


Step = Ended | HostCall | NameNeeded | Waiting


class OpenedFile(msgspec.Struct, frozen=True):
    """The answer to `open`: from then on the file is read and written by path."""

    path: str
    mode: str


class FileStat(msgspec.Struct, frozen=True):
    """The answer to `Path.stat`; `mode` holds type and permissions, `mtime` is in seconds."""

    is_dir: bool
    size: int
    mode: int
    mtime: float


class Scanned(msgspec.Struct, frozen=True):
    """One entry of the answer to `Path.scan`; `path` is relative to what was scanned."""

    path: str
    is_dir: bool
    is_file: bool
    is_symlink: bool


class Value(msgspec.Struct, frozen=True):
    """A call's result."""

    value: object


class Raised(msgspec.Struct, frozen=True):
    """A call's exception, by a type the snippet can catch."""

    kind: str
    message: str


class Later(msgspec.Struct, frozen=True):
    """The result follows when the snippet waits for it."""


class Unsupported(msgspec.Struct, frozen=True):
    """The interpreter gives its own refusal."""


Answer = Value | Raised | Later | Unsupported
