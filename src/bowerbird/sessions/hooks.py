"""Hooks: commands of the user that are told what agents do, and may forbid it (UI-77).

Here: when they run, what they are told, what their answer means. Not here: settings (`config`), the sandbox.

A hook runs outside of the sandbox, as the user, so that it comes from the user's own settings alone.
"""

import asyncio
import logging
import os
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from bowerbird.core.errors import LandingRefused, ToolError
from bowerbird.core.events import ApprovalRequest
from bowerbird.core.forms import decode
from bowerbird.core.processes.host_programs import HostProcess, neutral_directory, popen, users_environment
from bowerbird.core.tasks import Tasks
from bowerbird.core.threads import to_thread
from bowerbird.sessions.live.hub import Live, Published, TurnMark
from bowerbird.sessions.parts import SessionPart
from bowerbird.sessions.thread_ids import root_of
from bowerbird.tools.result import ToolResult, to_result
from bowerbird.tools.toolset import Toolset

if TYPE_CHECKING:
    from bowerbird.agent.turn import TurnRun
    from bowerbird.sessions.turn_maker import TurnContext
    from bowerbird.store.rows.sessions import SessionRow
    from bowerbird.tools.context import ToolContext
    from bowerbird.tools.tool import Arguments, Tool

EventName = Literal["before_tool", "after_tool", "turn_end", "before_land", "notification"]
BLOCKS = 2
NOT_RUN = (126, 127)
"""How the shell ends that could not run a command: it is not there, or no program."""
GUARDS = ("before_tool", "before_land")
MOST_DIRECTORIES = 10_000
REASON_CHARS = 2_000
OUTPUT_BYTES = 64 * 1024
RESULT_CHARS = 20_000
_LOOK_S = 0.05
_FAREWELL_S = 2.0

_log = logging.getLogger(__name__)


class Hook(msgspec.Struct, frozen=True):
    """One command.

    Attributes:
        tools: names or patterns it is about, empty = all. timeout_s: after this it is killed.
        cwd: the directory that a person named for it, None = an empty one.
        env: variables besides those that every program of the host gets.
    """

    event: EventName
    command: str
    tools: tuple[str, ...] = ()
    timeout_s: float = 30.0
    cwd: str | None = None
    env: Mapping[str, str] = {}

    def concerns(self, tool: str) -> bool:
        """Whether it is about a tool."""
        return not self.tools or any(fnmatchcase(tool, pattern) for pattern in self.tools)


class Ended(msgspec.Struct, frozen=True):
    """How a hook ended; `code` None = it was killed for taking too long, negative = by a signal."""

    code: int | None
    out: str = ""
    err: str = ""

    @property
    def is_cut(self) -> bool:
        """Whether it printed more than is kept."""
        return len(self.out) >= OUTPUT_BYTES


def denial(hook: Hook, ended: Ended) -> str | None:
    """Return why a hook forbids, None when it does not. Pure.

    Exit code 2, or `{"decision": "deny", "reason": …}` on standard output, forbids. So does a guard that gave
    no answer, since that is no permission: it took too long, could not be run, was killed, or printed more
    than is read. Any other failure is the hook's own and forbids nothing.

    Example:
        >>> denial(Hook("before_tool", "x"), Ended(2, "", "not on Fridays\n"))
        'not on Fridays'
    """
    said = ended.err.strip()
    if ended.code is None:
        return f"the hook {hook.command!r} did not answer within {hook.timeout_s:g} s"
    if ended.code in NOT_RUN or ended.code < 0:
        why = "could not be run" if ended.code in NOT_RUN else f"was killed by signal {-ended.code}"
        return f"the hook {hook.command!r} {why}: {said}"[:REASON_CHARS].rstrip(": ")
    if ended.code == 0:
        if ended.is_cut:
            return f"the hook {hook.command!r} printed more than {OUTPUT_BYTES // 1024} KiB"
        try:
            answer = decode(ended.out, dict[str, Any])
        except msgspec.DecodeError:
            return None
        if answer.get("decision") != "deny":
            return None
        said = str(answer.get("reason") or "").strip()
    elif ended.code != BLOCKS:
        return None
    return said[:REASON_CHARS] or f"the hook {hook.command!r} forbids it"


def run_hook(hook: Hook, event: Mapping[str, Any], stop: threading.Event | None = None) -> Ended:
    """Run a hook with an event on its standard input; nothing that it started outlives it. Blocks.

    Of a thread: pipes of uvloop lose what a process prints that ends without reading its input.

    Args:
        stop: ends it at once when it is set.

    Raises:
        OSError: it could not be started.
    """
    with popen(
        ["/bin/sh", "-c", hook.command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=hook.cwd or neutral_directory(),
        env=users_environment() | dict(hook.env),
        start_new_session=True,
    ) as process:
        try:
            until = time.monotonic() + hook.timeout_s
            said = _talked(process, msgspec.json.encode(event) + b"\n", until, stop or threading.Event())
        finally:
            code = process.poll()
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    return Ended(code, *said) if code is not None else Ended(None)


def _talked(process: HostProcess, told: bytes, until: float, stop: threading.Event) -> list[str]:
    """Write to a process and read its two streams until it has ended, its time has, or it is to stop.

    What it prints beyond `OUTPUT_BYTES` is read and dropped.
    """
    assert process.stdin and process.stdout and process.stderr, "all are pipes"
    kept = {process.stdout.fileno(): bytearray(), process.stderr.fileno(): bytearray()}
    left = memoryview(told)
    os.set_blocking(process.stdin.fileno(), False)
    with selectors.DefaultSelector() as streams:
        streams.register(process.stdin, selectors.EVENT_WRITE)
        for number in kept:
            streams.register(number, selectors.EVENT_READ)
        while time.monotonic() < until and not stop.is_set():
            ready = streams.select(min(_LOOK_S, until - time.monotonic())) if streams.get_map() else []
            if not ready and process.poll() is not None:
                # What it left in the background may hold its streams open; what it said itself is in them.
                for number, data in kept.items():
                    _drain(number, data)
                break
            if not ready and not streams.get_map():
                time.sleep(_LOOK_S)
            for stream, _ in ready:
                if stream.fd in kept:
                    if not _take(stream.fd, kept[stream.fd]):
                        streams.unregister(stream.fd)
                    continue
                try:
                    left = left[os.write(stream.fd, left) :]
                except BrokenPipeError:
                    left = left[:0]  # it does not want to know
                if not left:
                    streams.unregister(process.stdin)
                    process.stdin.close()
    return [bytes(data).decode("utf-8", "replace") for data in kept.values()]


def _take(number: int, into: bytearray) -> bool:
    """Read what there is, once; returns whether there may be more."""
    data = os.read(number, OUTPUT_BYTES)
    into += data[: OUTPUT_BYTES - len(into)]
    return bool(data)


def _drain(number: int, into: bytearray) -> None:
    """Read what a pipe still holds; of what is printed without end, no more than is kept."""
    os.set_blocking(number, False)
    with suppress(BlockingIOError):
        while len(into) < OUTPUT_BYTES and _take(number, into):
            pass


class Hooks(SessionPart):
    """The hooks of one process.

    Args:
        given: returns those of the settings, as they are now. live: tells of ends and questions.
    """

    def __init__(self, given: Callable[[], Sequence[Hook]], live: Live) -> None:
        self._given = given
        self._tasks = Tasks("hooks")
        self._directories: dict[str, str | None] = {}
        live.relay(self._heard)

    async def join(self, run: "TurnRun", context: "TurnContext") -> "TurnRun":
        """Have each tool of a turn told before and after its calls."""
        session = context.session
        self._directories[root_of(session.thread_id)] = session.workspace
        if len(self._directories) > MOST_DIRECTORIES:
            self._directories.pop(next(iter(self._directories)))
        if not any(hook.event in ("before_tool", "after_tool") for hook in self._given()):
            return run
        tools = (self._told(tool, session) for tool in run.tools)
        return msgspec.structs.replace(run, tools=Toolset(tools, absent=run.tools.absent))

    def _told(self, tool: "Tool", session: "SessionRow") -> "Tool":
        async def run(arguments: "Arguments", context: "ToolContext") -> object:
            about = {
                "session": session.thread_id, "turn": context.turn, "call": context.call, "tool": tool.name,
                "input": arguments,
            }  # fmt: skip
            reason = await self._ask("before_tool", about, session.workspace, tool.name)
            if reason is not None:
                raise ToolError(f"forbidden by a hook of the user: {reason}")
            result = to_result(await tool.run(arguments, context))
            await self._after(about, result, session.workspace)
            return result

        return tool.with_options(run=run)

    async def _after(self, about: dict[str, Any], result: ToolResult, directory: str | None) -> None:
        told = about | {"result": result.text[:RESULT_CHARS], "is_error": result.is_error}
        await self._ask("after_tool", told, directory, str(about["tool"]))

    async def landing(self, session: "SessionRow", paths: Sequence[str]) -> None:
        """Ask before changes land; raises LandingRefused."""
        about = {"session": session.thread_id, "paths": list(paths)}
        reason = await self._ask("before_land", about, session.workspace)
        if reason is not None:
            refused = [{"path": path, "reason": f"forbidden by a hook: {reason}"} for path in paths]
            raise LandingRefused(f"forbidden by a hook of the user: {reason}", refused)

    async def aclose(self) -> None:
        """End those that still run after a moment: nobody waits for their answers."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_FAREWELL_S):
                await self._tasks.finish()
        await self._tasks.cancel()

    def _heard(self, published: Published) -> None:
        """Take what this process tells viewers; returns at once."""
        event, thread = published.event, published.thread_id
        if isinstance(event, ApprovalRequest):
            about = {
                "kind": event.kind,
                "text": event.text,
                "tools": [tool.get("name") for tool in event.tools],
            }
            self._later("notification", root_of(thread), published.turn_id, about)
        elif isinstance(event, TurnMark) and event.has_stopped and root_of(thread) == thread:
            about = {"state": event.state, "stop_reason": event.stop_reason, "text": event.text}
            self._later("turn_end", thread, published.turn_id, about)

    def _later(self, name: EventName, thread: str, turn: str | None, about: dict[str, Any]) -> None:
        if any(hook.event == name for hook in self._given()):
            told = {"session": thread, "turn": turn, **about}
            self._tasks.spawn(self._tell(name, told, self._directories.get(thread)))

    async def _tell(self, name: EventName, about: dict[str, Any], directory: str | None) -> None:
        await self._ask(name, about, directory)

    async def _ask(
        self, name: EventName, about: dict[str, Any], directory: str | None, tool: str = ""
    ) -> str | None:
        """Run the hooks of an event in their order; return the first denial."""
        event = {"event": name, "workspace": directory, **about}
        for hook in self._given():
            if hook.event != name or (tool and not hook.concerns(tool)):
                continue
            ended = await _ended(hook, event)
            if ended.code not in (0, BLOCKS):
                _log.warning("hook %r failed (%s): %s", hook.command, ended.code, ended.err.strip()[:500])
            reason = denial(hook, ended) if name in GUARDS else None
            if reason is not None:
                return reason
        return None


async def _ended(hook: Hook, event: Mapping[str, Any]) -> Ended:
    """Run a hook; whoever is cancelled meanwhile ends it."""
    stop = threading.Event()
    try:
        return await to_thread(run_hook, hook, event, stop)
    except OSError as error:
        return Ended(NOT_RUN[0], "", str(error))
    finally:
        stop.set()
