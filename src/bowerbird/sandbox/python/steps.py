"""What passes between an interpreter and those who run it: steps, answers.

Here: values. Not here: limits (`engine.py`), the interpreter's package (`monty.py`), running (`run.py`).
"""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Ended:
    """The snippet is through; `value` is that of its last expression."""

    value: object


@dataclass(frozen=True, slots=True)
class HostCall:
    """The snippet called a function of ours, or asks for a file, the clock, a module."""

    id: int
    name: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    is_os: bool


@dataclass(frozen=True, slots=True)
class NameNeeded:
    """The snippet uses a name it has not bound."""

    name: str


@dataclass(frozen=True, slots=True)
class Waiting:
    """Every task of the snippet waits for one of these calls."""

    ids: tuple[int, ...]


Step = Ended | HostCall | NameNeeded | Waiting


@dataclass(frozen=True, slots=True)
class OpenedFile:
    """The answer to `open`: from then on the file is read and written by path."""

    path: str
    mode: str


@dataclass(frozen=True, slots=True)
class FileStat:
    """The answer to `Path.stat`; `mode` holds type and permissions, `mtime` is in seconds."""

    is_dir: bool
    size: int
    mode: int
    mtime: float


@dataclass(frozen=True, slots=True)
class Scanned:
    """One entry of the answer to `Path.scan`; `path` is relative to what was scanned."""

    path: str
    is_dir: bool
    is_file: bool
    is_symlink: bool


@dataclass(frozen=True, slots=True)
class Value:
    """A call's result."""

    value: object


@dataclass(frozen=True, slots=True)
class Raised:
    """A call's exception, by a type the snippet can catch."""

    kind: str
    message: str


@dataclass(frozen=True, slots=True)
class Later:
    """The result follows when the snippet waits for it."""


@dataclass(frozen=True, slots=True)
class Unsupported:
    """The interpreter gives its own refusal."""


Answer = Value | Raised | Later | Unsupported
