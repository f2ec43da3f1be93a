"""The tools that run processes on the branch: `bash`, background runs, `run_python` (TO-23, TO-25 … TO-29).

Here: what a model asks for and sees. Not here: running and isolation (`sandbox/`), permission (`agent/`),
which settings these values come from.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from bowerbird.core.errors import BowerbirdError, SandboxUnavailable, ToolError
from bowerbird.core.events import EffectClass
from bowerbird.sandbox.run.command import CommandResult
from bowerbird.sandbox.run.status import SandboxStatus
from bowerbird.tools.context import ToolContext
from bowerbird.tools.files import reads
from bowerbird.tools.processes.hidden_words import hidden_note
from bowerbird.tools.processes.terminal_text import plain
from bowerbird.tools.result import ToolResult
from bowerbird.tools.tool import Tool

if TYPE_CHECKING:
    from bowerbird.sandbox.branch_sandbox import BranchSandbox
    from bowerbird.sandbox.host import SandboxHost
    from bowerbird.workspace import Branch

PROCESS_TOOLS: tuple[str, ...] = (
    "bash",
    "run_python",
    "background_run",
    "check_background",
    "cancel_background",
)
MAX_OUTPUT_BYTES = 50_000
_NOTE_ROOM = 400
_QUEUE_S = 600.0
_PYTHON_S = 60.0
_PROGRESS_CHARS = 200
T = TypeVar("T")


class ProcessSettings(msgspec.Struct, frozen=True):
    """Times in seconds; `allowed_commands`: names of the only programs that may run, empty = all."""

    bash_timeout_s: float = 120.0
    background_timeout_s: float = 300.0
    allowed_commands: tuple[str, ...] = ()


def processes_unavailable(status: SandboxStatus) -> str | None:
    """Return why commands are refused on this host, None when they run."""
    try:
        status.require()
    except SandboxUnavailable as error:
        return str(error)
    return None


def sandbox_line(
    status: SandboxStatus, network: str = "closed", allow: tuple[str, ...] = (), root: str | None = None
) -> str:
    """Return the line of the system prompt that says what commands run in.

    Args:
        root: the directory where commands really run, for the copy tier.
    """
    reason = processes_unavailable(status)
    if reason is not None:
        return f"Sandbox: none, no commands can run here ({reason})"
    closed = "no network, and only a person can open it (--network, when a session begins)"
    reach = closed if network == "closed" else f"network only to {', '.join(allow)}"
    if root is None:
        return f"Sandbox: commands run in tier {status.tier}, on the branch at the workspace's path; {reach}"
    return (
        f"Sandbox: commands run in tier copy, on a copy of the branch at {root}, where they start. The "
        f"workspace's own path cannot be reached from commands: use relative paths in them; {reach}"
    )


def process_tools(
    host: "SandboxHost", settings: ProcessSettings | None = None, *, network: str = "closed"
) -> list[Tool]:
    """Return the tools that need processes; offer them where `processes_unavailable` is None.

    Args:
        host: gives the branch's sandbox; whoever made it closes it.
        network: of the session. With `allowlist` the ledger counts a command as an effect outside.
    """
    is_open = network == "allowlist"
    family = _Processes(host, settings or ProcessSettings(), is_open=is_open)
    recorded: EffectClass = "outside" if is_open else "branch"
    longest = max(host.settings.max_timeout_s, family.settings.bash_timeout_s) + _QUEUE_S

    def running(
        fn: Callable[..., Awaitable[ToolResult]], *aliases: str, variants: dict[str, str] | None = None
    ) -> Tool:
        return Tool(
            fn, effect="branch", recorded=recorded, process=True, timeout_s=longest,
            aliases=aliases, variants=variants,
        )  # fmt: skip

    background = {"run_in_background": "background_run"}
    return [
        running(family.bash(), "execute", "shell", "run_command", variants=background),
        running(family.run_python()),
        running(family.background_run()),
        Tool(family.check_background(), effect="read", variants={"stop": "cancel_background"}),
        Tool(family.cancel_background(), effect="branch"),
    ]


class _Processes:
    """The five functions, over one host; where the network is open, what a command says is from outside."""

    def __init__(self, host: "SandboxHost", settings: ProcessSettings, *, is_open: bool) -> None:
        self.is_open = is_open
        self.host = host
        self.settings = settings

    def bash(self) -> Callable[..., Awaitable[ToolResult]]:
        """Return `bash`; its default timeout is the configured one."""
        default = self.settings.bash_timeout_s

        async def bash(
            command: str,
            context: ToolContext,
            timeout: float = default,
            run_in_background: bool = False,  # a call with it is background_run's
        ) -> ToolResult:
            """Run a shell command in the sandbox, at the root of the branch; nothing can be typed into it.

            Every process it leaves behind is killed when it ends, unless it runs in the background.

            Args:
                command: The command line.
                timeout: Seconds after which it is killed, at most {most}.
                run_in_background: Whether it goes on beside the conversation, say a server: returns at once,
                    you are told when it ends, and check_background shows its output.
            """
            words = checked_command(self.host, self.settings.allowed_commands, command, context.files)
            sandbox = await self._sandbox(context)
            work = sandbox.run(
                words,
                timeout=timeout,
                configured_timeout=default,
                max_output_bytes=_room(context),
                on_output=_progress(context),
                cancel=context.cancel,
                turn=context.turn or None,
                call=context.call or None,
            )
            result = await _finished(work, context)
            _changed(context, result)
            return shown(result, hidden_note(context.files, command, result), tainted=self.is_open)

        most = max(default, self.host.settings.max_timeout_s)
        bash.__doc__ = (bash.__doc__ or "").format(most=f"{most:g}")
        return bash

    def run_python(self) -> Callable[..., Awaitable[ToolResult]]:
        """Return `run_python`."""

        async def run_python(
            context: ToolContext,
            code: str | None = None,
            path: str | None = None,
            args: list[str] = [],  # noqa: B006 - never changed; the schema shows []
            stdin: str = "",
            timeout: float = _PYTHON_S,
        ) -> ToolResult:
            """Run Python in a new process: full CPython, with the packages of the branch's .venv.

            Give exactly one of code and path. Nothing persists but files; branch files can be imported.

            Args:
                code: Python code.
                path: A Python file, relative to the root.
                args: Command line arguments.
                stdin: What it reads from standard input.
                timeout: Seconds after which it is killed.
            """
            from bowerbird.sandbox.cpython import run_python as run_in_cpython

            sandbox = await self._sandbox(context)
            work = run_in_cpython(
                sandbox,
                code,
                path,
                args,
                stdin,
                timeout,
                max_output_bytes=_room(context),
                on_output=_progress(context),
                cancel=context.cancel,
                turn=context.turn or None,
                call=context.call or None,
            )
            ran = await _finished(work, context)
            _changed(context, ran.command)
            result = shown(ran.command, hidden_note(context.files, code or path or "", ran.command))
            return ToolResult(
                result.content,
                data=ran.to_data(),
                is_error=result.is_error,
                truncated=result.truncated,
                tainted=self.is_open,
            )

        return run_python

    def background_run(self) -> Callable[..., Awaitable[ToolResult]]:
        """Return `background_run`."""
        seconds = self.settings.background_timeout_s

        async def background_run(
            command: str, context: ToolContext, notify: bool = False, timeout: float = seconds
        ) -> ToolResult:
            """Start a shell command that goes on beside the conversation, say a server; returns at once.

            You are told when it ends; look at it with check_background.

            Args:
                command: The command line.
                notify: Whether its end starts a turn when the conversation is idle.
                timeout: Seconds after which it is killed.
            """
            words = checked_command(self.host, self.settings.allowed_commands, command, context.files)
            sandbox = await self._sandbox(context)
            task = await _said(
                sandbox.background.start(
                    words,
                    timeout=timeout,
                    configured_timeout=seconds,
                    notify=notify,
                    turn=context.turn or None,
                )
            )
            note = hidden_note(context.files, command)
            started = f"started as {task}{f' [{note}]' if note else ''}"
            return ToolResult(started, data={"task_id": task}, tainted=self.is_open)

        return background_run

    def check_background(self) -> Callable[..., Awaitable[ToolResult]]:
        """Return `check_background`."""

        async def check_background(
            context: ToolContext,
            task_id: str = "",
            stop: bool = False,  # a call with it is cancel_background's
        ) -> ToolResult:
            """Look at one background command or at all of them: state and output so far.

            Args:
                task_id: Which one; empty for all.
                stop: Whether to end it, with everything it started.
            """
            runs = (await self._sandbox(context)).background
            rows = [runs.poll(task_id)] if task_id else runs.poll_all()
            text = "\n\n".join(_run_text(row, whole=bool(task_id)) for row in rows)
            data = rows[0] if task_id else {"tasks": rows}
            return ToolResult(text or "There are no background commands.", data=data, tainted=self.is_open)

        return check_background

    def cancel_background(self) -> Callable[..., Awaitable[ToolResult]]:
        """Return `cancel_background`."""

        async def cancel_background(task_id: str, context: ToolContext) -> ToolResult:
            """End a background command with everything it started.

            Args:
                task_id: Which one.
            """
            row = await (await self._sandbox(context)).background.stop(task_id)
            return ToolResult(_run_text(row, whole=True), data=row, tainted=self.is_open)

        return cancel_background

    async def _sandbox(self, context: ToolContext) -> "BranchSandbox":
        return await _said(self.host.sandbox(context.files))


def checked_command(
    host: "SandboxHost", allowed: tuple[str, ...], command: str, branch: "Branch"
) -> str | list[str]:
    """Return what to run: the line for a shell, or the words that the list of names lets through.

    Raises:
        ToolError: it is refused, with the reason.
    """
    from bowerbird.sandbox.shell.allowed import Refused, check_allowed
    from bowerbird.sandbox.shell.shell_backend import find_program, same_file
    from bowerbird.tools.processes.destructive import refusal

    reason = refusal(command)
    if reason is not None:
        raise ToolError(f"refused: {reason}")
    if not allowed:
        return command
    root = str(branch.root) if branch.root is not None else None

    def find(name: str) -> str | None:
        return find_program(name, host.facts.own_path, root)

    checked = check_allowed(command, allowed, find, same=same_file)
    if isinstance(checked, Refused):
        raise ToolError(f"refused: {checked.reason} (ALLOWED_COMMANDS)")
    first, *rest = checked.words
    return [find(first.rsplit("/", 1)[-1]) or first, *rest]


def shown(result: CommandResult, hidden: str = "", *, tainted: bool = False) -> ToolResult:
    """Return a finished command as a model reads it; `hidden`: what `hidden_note` says."""
    notes: list[str] = []
    if result.timed_out:
        notes.append("timed out; the whole process tree was killed")
    elif result.cancelled:
        notes.append("cancelled; the whole process tree was killed")
    elif result.reason is not None:
        notes.append(f"killed: the {result.reason} limit was reached")
    if result.exit_code:
        notes.append(f"exit code {result.exit_code}")
    if result.note:
        notes.append(result.note)
    if hidden:
        notes.append(hidden)
    parts = [plain(result.output).rstrip("\n") or "(no output)"]
    parts += [f"[{'; '.join(notes)}]"] if notes else []
    data: dict[str, Any] = {
        "output": result.output,
        "exit_code": result.exit_code,
        "truncated": result.truncated,
        "timed_out": result.timed_out,
        "duration_ms": result.duration_ms,
        "tier": result.tier,
    }
    return ToolResult(
        "\n".join(parts),
        data=data,
        is_error=result.cancelled,
        truncated=result.truncated,
        tainted=tainted,
    )


def _room(context: ToolContext) -> int:
    """Bytes of output that leave room for a note, so that the result is not cut a second time."""
    return max(1, min(MAX_OUTPUT_BYTES, context.result_chars) - _NOTE_ROOM)


async def _finished(work: Awaitable[T], context: ToolContext) -> T:
    """Wait for a command. When the call is stopped, the command is killed and its record still comes."""
    task = asyncio.ensure_future(_said(work))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        if not context.cancel.is_set():
            task.cancel()
            await asyncio.wait([task])
            raise
        return await task


async def _said(work: Awaitable[T]) -> T:
    """Await `work`; a sandbox that cannot be had is told to the model, with what to do."""
    try:
        return await work
    except BowerbirdError as error:
        raise ToolError(str(error)) from error


def _progress(context: ToolContext) -> Callable[[bytes], None]:
    def tell(chunk: bytes) -> None:
        lines = plain(chunk.decode("utf-8", "replace")).strip().splitlines()
        if lines:
            context.progress(lines[-1][-_PROGRESS_CHARS:])

    return tell


def _changed(context: ToolContext, result: CommandResult) -> None:
    """What the agent's own command wrote, nobody else changed behind its back."""
    for path in (*result.written, *result.deleted):
        context.reads.forget(reads.key(context.files, path))


def _run_text(row: dict[str, Any], *, whole: bool) -> str:
    code = "" if row["exit_code"] is None else f", exit code {row['exit_code']}"
    head = f"{row['task_id']}: {row['status']}{code}: {row['command'][:80]}"
    text = plain(str(row["output"] if whole else row["tail"])).rstrip("\n")
    return f"{head}\n{text or '(no output)'}"
