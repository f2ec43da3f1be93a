"""The tools `run_python_code` and `run_python_file` (TO-24, SB-43 … SB-49).

Here: what a model is told of the interpreter, and how it sees a run. Not here: running
(`sandbox/`).
"""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from bowerbird.core.errors import LimitExceeded, SandboxUnavailable, ToolError
from bowerbird.sandbox.python.engine import MISSING, MODULES, PythonLimits, available
from bowerbird.sandbox.python.sessions import PythonSessions
from bowerbird.tools.context import ToolContext
from bowerbird.tools.files import reads
from bowerbird.tools.result import ToolResult
from bowerbird.tools.tool import Tool

if TYPE_CHECKING:
    from bowerbird.sandbox.host import SandboxHost
    from bowerbird.sandbox.python.record import PythonRecord
    from bowerbird.workspace import Branch

PYTHON_TOOLS: tuple[str, ...] = ("run_python_code", "run_python_file")
MAX_SCRIPT_BYTES = 1024 * 1024
_QUEUE_S = 600.0
_LACKING = "this interpreter"

CODE_DESCRIPTION = f"""Run Python and return what it prints and the value of its last expression.

Names persist from call to call. Files of the branch are opened by relative path, e.g. open("data.csv");
text is UTF-8. There is no network and no environment. The interpreter has these modules:
{", ".join(MODULES)}.
It lacks: {"; ".join(MISSING)}."""
FILE_DESCRIPTION = """Run a Python file of the branch in the same interpreter as run_python_code.

Its names stay available afterwards. What the interpreter has and lacks: see run_python_code."""


def python_tools(sessions: PythonSessions | None = None, timeout_s: float | None = None) -> list[Tool]:
    """Return the two tools, or none where the interpreter cannot run (`python_unavailable`).

    Args:
        sessions: Holds the interpreters; whoever made it closes it. None: one of its own,
            whose workers end with this process.
        timeout_s: Seconds for each snippet; None = the limits of `sessions`.
    """
    if available() is not None:
        return []
    held = sessions or PythonSessions(PythonLimits(timeout_s=timeout_s or 30.0))
    seconds = timeout_s or held.limits.timeout_s

    async def run_python_code(code: str, context: ToolContext) -> ToolResult:
        """Run Python.

        Args:
            code: The Python code.
        """
        return await _run(held, code, context, timeout_s)

    async def run_python_file(path: str, context: ToolContext) -> ToolResult:
        """Run a Python file.

        Args:
            path: The file, relative to the root.
        """
        return await _run(held, await _script(path, context), context, timeout_s)

    # A snippet has its own clock; the tool's only ends a call that waits in the queue for ever.
    most = seconds + held.limits.grace_s + _QUEUE_S
    return [
        Tool(run_python_code, description=CODE_DESCRIPTION, effect="branch", timeout_s=most, serial="python"),
        Tool(run_python_file, description=FILE_DESCRIPTION, effect="branch", timeout_s=most, serial="python"),
    ]


def cpython_tools(host: "SandboxHost", timeout_s: float = 30.0) -> list[Tool]:
    """Return the two tools on one CPython per branch in its sandbox: where Monty is missing.

    Args:
        host: gives the branch's sandbox. timeout_s: seconds for each snippet.
    """

    async def run_python_code(code: str, context: ToolContext) -> ToolResult:
        """Run Python and return what it prints and the value of its last expression.

        Names persist until the end of the turn. Files of the branch are opened by relative path and can be
        imported; there is no network beyond what commands have.

        Args:
            code: The Python code.
        """
        return await _run_cpython(host, code, context, timeout_s)

    async def run_python_file(path: str, context: ToolContext) -> ToolResult:
        """Run a Python file of the branch in the same interpreter as run_python_code.

        Args:
            path: The file, relative to the root.
        """
        return await _run_cpython(host, await _script(path, context), context, timeout_s)

    def made(fn: Callable[..., Awaitable[ToolResult]]) -> Tool:
        return Tool(fn, effect="branch", process=True, timeout_s=timeout_s + _QUEUE_S, serial="python")

    return [made(run_python_code), made(run_python_file)]


async def _run_cpython(host: "SandboxHost", code: str, context: ToolContext, timeout_s: float) -> ToolResult:
    try:
        sandbox = await host.sandbox(context.files)
        record = await sandbox.python.run(
            code, timeout_s=timeout_s, turn=context.turn or None, call=context.call or None
        )
    except SandboxUnavailable as error:
        raise ToolError(str(error)) from error
    return ToolResult(
        shown(record), data=record.to_data(), is_error=not record.ok, truncated=record.truncated
    )


async def _script(path: str, context: ToolContext) -> str:
    data = await context.files.read_bytes(path, 0, MAX_SCRIPT_BYTES + 1)
    if len(data) > MAX_SCRIPT_BYTES:
        raise LimitExceeded(f"{path} is over {MAX_SCRIPT_BYTES // 1024} KiB; too large to run", path)
    return data.decode("utf-8-sig", "replace")


def python_unavailable() -> str | None:
    """Return why the Python tools are not offered here, None when they are."""
    return available()


async def _run(
    sessions: PythonSessions, code: str, context: ToolContext, timeout_s: float | None
) -> ToolResult:
    from bowerbird.sandbox.python.branch_calls import BranchCalls

    branch = context.branch
    calls = None if branch is None else BranchCalls(branch, _forgetting(context, branch))
    name = f"session:{context.session}" if branch is None else branch.id
    source = None if branch is None else branch.repl_of
    record = await sessions.run(name, code, calls, timeout_s=timeout_s, source=source)
    whole = None
    if record.spill is not None and context.spill is not None:
        whole = await context.spill(f"{context.call}-output", record.spill)
    return ToolResult(
        shown(record, whole, "run_python" in context.offered),
        data=record.to_data(),
        is_error=not record.ok,
        truncated=record.truncated,
    )


def _forgetting(context: ToolContext, branch: "Branch") -> Callable[[str], None]:
    def written(path: str) -> None:
        # Its own agent's code wrote the file: nobody else changed it behind the agent's back.
        context.reads.forget(reads.key(branch, path))

    return written


def shown(record: "PythonRecord", whole: str | None = None, has_run_python: bool = False) -> str:
    """Return a record as a model reads it.

    Args:
        whole: Where all of a cut output can be read.
        has_run_python: Whether the tool `run_python` (CPython) is offered in this run.
    """
    parts: list[str] = []
    if record.stdout:
        parts.append(record.stdout.rstrip("\n"))
    if record.stderr:
        parts.append(f"[stderr]\n{record.stderr.rstrip(chr(10))}")
    if whole:
        parts.append(f"[output was cut; all of it, up to 8 MiB: read_file {whole}]")
    if record.result is not None:
        parts.append(f"Result: {record.result}")
    if record.error is not None:
        parts.append(record.traceback or record.error)
        if has_run_python and _LACKING in record.error:
            parts.append("run_python runs full CPython with installed packages; use it for this.")
    if record.state == "lost" and record.error is None:
        parts.append("[the interpreter was restarted: variables of earlier calls are gone]")
    return "\n".join(parts) or "(no output)"
