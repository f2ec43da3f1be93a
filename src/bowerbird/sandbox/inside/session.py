"""A Python interpreter that keeps its names from snippet to snippet, as a command of the sandbox (SB-49).

Its source is given to `python3 -c`; snippets come as JSON lines over the socket that is its standard input.
Here: running one and telling how it went. Not here: limits, which are the sandbox's.
"""

import ast
import json
import linecache
import os
import socket
import sys
import tempfile
import traceback

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import IO, Any

RESULT_CHARS = 2_000


def run(code: str, name: str, names: "dict[str, Any]") -> "dict[str, Any]":
    """Run `code` with `names`; return `result`, `error`, `line` and `traceback`."""
    # As Python counts them: other separators end no line, or tracebacks would show the wrong ones.
    lines = [line + "\n" for line in code.replace("\r\n", "\n").replace("\r", "\n").split("\n")]
    linecache.cache[name] = (len(code), None, lines, name)
    answer: dict[str, Any] = {"result": None, "error": None, "line": None, "traceback": None}
    try:
        tree = ast.parse(code, name)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, name, "exec"), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), name, "eval"), names)
            if value is not None:
                text = repr(value)
                answer["result"] = text if len(text) <= RESULT_CHARS else text[: RESULT_CHARS - 1] + "…"
    except SystemExit as error:
        if error.code not in (None, 0):
            answer["error"] = f"SystemExit: {error.code}"
    except BaseException as error:  # noqa: BLE001 - whatever the snippet raises is its caller's to know
        answer.update(told(error))
    return answer


def told(error: BaseException) -> "dict[str, Any]":
    """Return message, line and the snippets' own frames of an error."""
    whole = traceback.TracebackException.from_exception(error)
    frames = [frame for frame in whole.stack if frame.filename.startswith("<python-")]
    whole.stack[:] = frames
    line = frames[-1].lineno if frames else None
    if isinstance(error, SyntaxError) and str(error.filename).startswith("<python-"):
        line = error.lineno
    message = "".join(traceback.format_exception_only(error)).strip().splitlines()[-1]
    return {"error": message, "line": line, "traceback": "".join(whole.format()).rstrip("\n")}


def printed(file: "IO[bytes]", limit: int) -> "dict[str, Any]":
    """Return what went to `file`: all of it, or its beginning and end, and how much it was."""
    total = file.seek(0, os.SEEK_END)
    file.seek(0)
    head = file.read(min(total, limit))
    if total > limit:
        file.seek(total - limit)
    tail = file.read() if total > limit else b""
    return {"total": total, "head": head.decode("latin-1"), "tail": tail.decode("latin-1")}


def main() -> None:
    """Serve snippets until the other end closes."""
    link = socket.socket(fileno=os.dup(0))
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    sys.path.insert(0, "")
    names: dict[str, Any] = {"__name__": "__main__", "__builtins__": __builtins__}
    reader = link.makefile("r", encoding="utf-8")
    for number, line in enumerate(reader, 1):
        asked = json.loads(line)
        files = [tempfile.TemporaryFile() for _ in range(2)]  # noqa: SIM115 - closed below
        kept = [os.dup(1), os.dup(2)]
        for descriptor, file in enumerate(files, 1):
            os.dup2(file.fileno(), descriptor)
        answer = run(asked["code"], f"<python-{number}>", names)
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        for descriptor, old in enumerate(kept, 1):
            os.dup2(old, descriptor)
            os.close(old)
        for key, file in zip(("stdout", "stderr"), files, strict=True):
            with file:
                answer[key] = printed(file, asked["limit"])
        link.sendall(json.dumps({"id": asked["id"], **answer}).encode() + b"\n")


if __name__ == "__main__":
    main()
