"""Running a snippet or a file in a fresh CPython on the branch (SB-50).

Here: which interpreter, how code reaches it, in which line it failed. Not here: how a command runs, Monty.
"""

import asyncio
import contextlib
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import msgspec

from bowerbird.core.errors import InvalidArgument
from bowerbird.core.ids import new_id
from bowerbird.sandbox.run.command import DEFAULT_TIMEOUT_S, CommandResult

if TYPE_CHECKING:
    from bowerbird.sandbox.branch_sandbox import BranchSandbox

_LONGEST_WORD = 100_000
# The branch's own interpreter if it runs here: one made on another host, or for another version, does not.
_CHOOSE = (
    "for p in .venv/bin/python; do [ -x $p ] && $p -c '' >/dev/null 2>&1 && exec $p \"$@\"; done; "
    'exec python3 "$@"'
)
_FROM_FILE = (
    "import sys; p = sys.argv.pop(1); sys.argv[0] = '-c'; "
    "exec(compile(open(p, encoding='utf-8').read(), '<string>', 'exec'))"
)
_FRAME = re.compile(r'^  File "(?P<file>[^"\n]*)", line (?P<line>\d+)', re.MULTILINE)


class PythonResult(msgspec.Struct, frozen=True):
    """How a run ended: the record of its command, and the line of the snippet that failed last."""

    command: CommandResult
    line: int | None = None

    def to_data(self) -> dict[str, object]:
        """Return the record of SB-14 with `line`."""
        return {**msgspec.to_builtins(self.command), "line": self.line}


async def run_python(
    sandbox: "BranchSandbox",
    code: str | None = None,
    path: str | None = None,
    args: Sequence[str] = (),
    stdin: str = "",
    timeout: float = DEFAULT_TIMEOUT_S,
    *,
    max_output_bytes: int = 100_000,
    on_output: Callable[[bytes], None] | None = None,
    cancel: asyncio.Event | None = None,
    turn: str | None = None,
    call: str | None = None,
) -> PythonResult:
    """Run `code`, or the file `path` of the branch, in a new `python3` process.

    Args:
        code, path: exactly one of them.
        args: `sys.argv[1:]`. stdin: what it reads. timeout: seconds.
        on_output, cancel, turn, call: as for `BranchSandbox.run`.

    Raises:
        InvalidArgument: both or none of `code` and `path`. Else as `BranchSandbox.run`.
    """
    if (code is None) == (path is None):
        raise InvalidArgument("give exactly one of code and path")
    with contextlib.ExitStack() as shown_files:
        if path is not None:
            shown = path.lstrip("/") if not path.startswith(sandbox.root + "/") else path
            words = [shown, *args]
        elif len((code or "").encode("utf-8", "surrogateescape")) <= _LONGEST_WORD:
            shown = "<string>"
            words = ["-c", code or "", *args]
        else:
            shown = "<string>"
            place = shown_files.enter_context(sandbox.shown_file(f"{new_id('py')}.py", code or ""))
            words = ["-c", _FROM_FILE, place, *args]
        result = await sandbox.run(
            ["/bin/sh", "-c", _CHOOSE, "sh", *words],
            stdin=stdin.encode("utf-8", "surrogateescape"),
            timeout=timeout,
            max_output_bytes=max_output_bytes,
            separate=True,
            on_output=on_output,
            cancel=cancel,
            turn=turn,
            call=call,
        )
    return PythonResult(result, last_line(result.stderr or "", shown))


def last_line(stderr: str, file: str) -> int | None:
    """Return the line of the last frame of `file` in a traceback, None when there is none.

    >>> last_line('Traceback:\\n  File "<string>", line 3, in f\\n  File "/usr/x.py", line 9\\n', "<string>")
    3
    """
    found = [m for m in _FRAME.finditer(stderr) if m["file"] == file or m["file"].endswith(f"/{file}")]
    return int(found[-1]["line"]) if found else None
