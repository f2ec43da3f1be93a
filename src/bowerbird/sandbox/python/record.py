"""What a run of a snippet gives, and how its errors are told (SB-43, SB-47).

Here: pure values and text. Not here: any interpreter.
"""

import builtins
import re
import sys
from collections.abc import Sequence
from typing import Any, Literal

import msgspec

RESULT_CHARS = 2_000
_TRACE_FRAMES = 20

State = Literal["kept", "lost"]
Engine = Literal["monty", "cpython"]


class PythonRecord(msgspec.Struct, frozen=True):
    """The record of `run_python_code` and `run_python_file`.

    Attributes:
        ok: the snippet ended without an error.
        stdout, stderr: what it printed, cut in the middle over the limit.
        result: repr of the last expression, at most 2,000 characters; None when it is None.
        error: `Type: message`, or None.
        line: line of the snippet where the error is, counted from 1.
        traceback: the snippet's own frames with source lines and carets, or None.
        truncated: something printed was left out.
        duration_ms: wall time of the call.
        state: `lost` when variables of earlier calls are gone, else `kept`.
        engine: what ran it.
        spill: the raw output (at most 8 MiB) when `truncated`; not part of `to_data`.
    """

    ok: bool
    stdout: str = ""
    stderr: str = ""
    result: str | None = None
    error: str | None = None
    line: int | None = None
    traceback: str | None = None
    truncated: bool = False
    duration_ms: int = 0
    state: State = "kept"
    engine: Engine = "monty"
    spill: str | None = None

    def to_data(self) -> dict[str, Any]:
        """Return the record's keys in the order of SB-43."""
        keys = (
            "ok", "stdout", "stderr", "result", "error", "line", "traceback", "truncated",
            "duration_ms", "state", "engine",
        )  # fmt: skip
        return {key: getattr(self, key) for key in keys}


class Frame(msgspec.Struct, frozen=True):
    """One frame of the snippet: positions from 1, columns in characters.

    Attributes:
        where: `""` for the running snippet, else how its source is called.
        function: name of the function, `<module>` or empty at the top.
    """

    where: str
    line: int
    column: int
    end_line: int
    end_column: int
    function: str
    source: str


class Failure(msgspec.Struct, frozen=True):
    """An exception that ended a snippet."""

    kind: str
    message: str
    frames: tuple[Frame, ...] = ()

    @property
    def text(self) -> str:
        """`Type: message`, as Python ends a traceback."""
        return f"{self.kind}: {self.message}" if self.message else self.kind

    @property
    def line(self) -> int | None:
        """Line of the innermost frame that lies in the running snippet."""
        own = [frame.line for frame in self.frames if not frame.where]
        return own[-1] if own else None


_UNSUPPORTED = ("The monty syntax parser does not yet support ", "The monty compiler does not yet support ")
_INTERNAL = "Internal error in monty: "
_NOT_YET = re.compile(r"not (yet )?supported|cannot convert 'range' object to bytes|cannot create 'object'")
_NO_NAME = re.compile(r"name '(\w+)' is not defined")
_NO_ATTRIBUTE = re.compile(r"(?:type object )?'(\w+)'(?: object)? has no attribute '(\w+)'")
_NO_MEMBER = re.compile(r"module '(\w+)' has no attribute '(\w+)'")
_NO_ENVIRONMENT = ("os.getenv", "os.environ")
_NOT_HERE = "is not supported in this environment"


def explained(failure: Failure) -> Failure:
    """Return `failure` saying that it is this interpreter which lacks something."""
    message = failure.message
    for start in _UNSUPPORTED:
        if failure.kind == "NotImplementedError" and message.startswith(start):
            lacking = message.removeprefix(start)
            return msgspec.structs.replace(failure, message=f"this interpreter does not support {lacking}")
    if failure.kind == "ModuleNotFoundError":
        why = "this interpreter has its own modules only, no third-party packages and no files of the branch"
        return msgspec.structs.replace(failure, message=f"{message}; {why}")
    if message.startswith(_INTERNAL):
        what = message.removeprefix(_INTERNAL)
        return msgspec.structs.replace(
            failure, kind="NotImplementedError", message=f"this interpreter cannot do this: {what}"
        )
    if failure.kind in ("PermissionError", "RuntimeError") and any(n in message for n in _NO_ENVIRONMENT):
        return msgspec.structs.replace(failure, message="this interpreter has no environment variables")
    if _is_lacking(failure):
        return msgspec.structs.replace(failure, message=f"{message}; this interpreter lacks it")
    return failure


def _is_lacking(failure: Failure) -> bool:
    """Whether Python itself would have had what this interpreter did not."""
    kind, message = failure.kind, failure.message
    if kind in ("TypeError", "ValueError", "NotImplementedError", "ImportError"):
        return kind == "ImportError" or _NOT_YET.search(message) is not None
    if kind == "RuntimeError":
        return message.endswith(_NOT_HERE)
    if kind == "NameError":
        name = _NO_NAME.match(message)
        return name is not None and (hasattr(builtins, name[1]) or name[1] in ("exit", "quit"))
    if kind == "AttributeError":
        member = _NO_MEMBER.match(message)
        if member is not None:  # only modules that are loaded here anyway
            return hasattr(sys.modules.get(member[1]), member[2])
        found = _NO_ATTRIBUTE.match(message)
        return found is not None and hasattr(getattr(builtins, found[1], None), found[2])
    return False


def format_traceback(failure: Failure) -> str | None:
    """Return the frames as Python prints them, with carets; None without frames."""
    if not failure.frames:
        return None
    lines = ["Traceback (most recent call last):"]
    shown: Sequence[Frame] = failure.frames
    if len(shown) > _TRACE_FRAMES:
        half = _TRACE_FRAMES // 2
        lines.extend(line for frame in shown[:half] for line in _frame_lines(frame))
        lines.append(f"  [… {len(shown) - 2 * half} more frames …]")
        shown = shown[-half:]
    lines.extend(line for frame in shown for line in _frame_lines(frame))
    return "\n".join([*lines, failure.text])


def _frame_lines(frame: Frame) -> list[str]:
    place = f"{frame.where}, " if frame.where else ""
    inside = f", in {frame.function}" if frame.function and frame.function != "<module>" else ""
    head = f"  {place}line {frame.line}, column {frame.column}{inside}"
    if not frame.source.strip():
        return [head]
    indent = len(frame.source) - len(frame.source.lstrip())
    start = max(0, frame.column - 1 - indent)
    stop = frame.end_column - 1 - indent if frame.end_line == frame.line else len(frame.source) - indent
    carets = "^" * max(1, min(stop, len(frame.source) - indent) - start)
    return [head, f"    {frame.source.strip()}", f"    {' ' * start}{carets}"]
