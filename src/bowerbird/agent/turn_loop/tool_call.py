"""Running calls as tasks: limits, context, and what a failing tool tells the model.

Here: sequence by serial key, the parallel limit, progress at most ten times a
second, killing on stop. Not here: judging (`tool_batch`), the tools.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from bowerbird.agent.delegates import Caller, free
from bowerbird.agent.turn_loop.arguments import Prepared
from bowerbird.agent.turn_loop.asking import Answered, Wanted, wanted
from bowerbird.agent.turn_loop.sampling import sample
from bowerbird.agent.turn_loop.state import Turn
from bowerbird.core.events import (
    OutcomeStatus,
    SubagentEnd,
    SubagentStart,
    ToolIntent,
    ToolOutcome,
    ToolProgress,
    UsageStep,
)
from bowerbird.core.messages import Block, TextBlock
from bowerbird.core.processes import descriptors
from bowerbird.core.threads import in_thread, to_thread
from bowerbird.tools.context import ToolContext
from bowerbird.tools.control import Control
from bowerbird.tools.result import ToolResult

if TYPE_CHECKING:
    from bowerbird.tools import Tool
    from bowerbird.workspace import Branch

STOP_GRACE_S = 0.08  # of the 100 ms in which a stop must show (AG-45)
PROGRESS_EVERY_S = 0.1


class Finished(msgspec.Struct, frozen=True):
    """A call that ended by itself; `control` is what its tool asks of the loop."""

    outcome: ToolOutcome
    control: Control | None = None


Event = Finished | ToolProgress | Answered | Wanted | UsageStep | SubagentStart | SubagentEnd


class Runner:
    """The tasks of one batch. `close` must be awaited whatever happens."""

    def __init__(self, turn: Turn) -> None:
        self._turn = turn
        self._events: asyncio.Queue[Event] = asyncio.Queue()
        self.intents: dict[str, str] = {}  # call id → tool, of the calls whose intent was yielded
        self._branches: dict[str, Branch] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._earlier: dict[str, list[asyncio.Task[None]]] = {}
        self._last_of_key: dict[str, asyncio.Task[None]] = {}
        self._reporting: set[str] = set()
        self._marked: set[str] = set()
        self._over: list[tuple[Branch, str]] = []  # their outcomes are committed
        self._slots = asyncio.Semaphore(turn.run.limits.max_parallel_tools)
        self._cancel = asyncio.Event()
        self._mark: str | None = None
        self._offered = frozenset(s.name for s in turn.specs())

    @property
    def running(self) -> bool:
        """Whether an end of a started call has not been taken from `events` yet."""
        return bool(self._reporting)

    def intent(self, prepared: Prepared) -> ToolIntent:
        """Return the record that must be committed before the call starts."""
        tool, run, call = _tool(prepared), self._turn.run, prepared.call.id
        mark = None
        if run.branch is not None:
            bound = run.branch.bound(turn=run.who.turn or None, call=call)
            self._branches[call] = bound
            if tool.recorded == "branch" and tool.process:
                mark = self._mark
            elif tool.recorded == "branch":
                mark = bound.call_mark()
                self._marked.add(call)
        self.intents[call] = tool.name
        return ToolIntent(
            call=call,
            tool=tool.name,
            input=dict(prepared.arguments or {}),
            effect=tool.recorded,
            mark=mark,
            key=f"{run.who.turn}:{call}" if tool.keyed else None,
        )

    async def take_mark(self, calls: Iterable[Prepared]) -> None:
        """Take the mark that calls of processes go back to after a crash; before their intents.

        There is none while other processes write the branch: such a call is then not repeated.
        """
        run = self._turn.run
        needed = any(_tool(p).process and _tool(p).recorded == "branch" for p in calls)
        if needed and run.branch is not None:
            bound = run.branch.bound(turn=run.who.turn or None)
            self._mark = await to_thread(bound.process_mark)

    def start(self, calls: Iterable[Prepared]) -> None:
        """Start `calls` in their order; calls that share a serial key run one after another."""
        for prepared in calls:
            keys = _tool(prepared).serial_keys(prepared.arguments or {})
            before = {self._last_of_key[k] for k in keys if k in self._last_of_key}
            task = asyncio.create_task(self._run(prepared, before), name=f"tool {prepared.name}")
            earlier = [*self._tasks.values()]
            self._earlier[prepared.call.id] = earlier
            self._tasks[prepared.call.id] = task
            self._reporting.add(prepared.call.id)
            self._last_of_key.update(dict.fromkeys(keys, task))

    def report(self, event: Event) -> None:
        """Put `event` among the reports."""
        self._events.put_nowait(event)

    async def next_event(self) -> Event:
        """Return the next report or question of a call, or the answer of a person."""
        event = await self._events.get()
        if isinstance(event, Finished):
            self._reporting.discard(event.outcome.call)
        return event

    def committed(self, call: str) -> None:
        """Note that the outcome of `call` is committed."""
        branch = self._branches.pop(call, None)
        if branch is not None and call in self._marked:
            self._over.append((branch, call))

    async def settle(self) -> None:
        """Drop what was kept to take committed calls back; who writes the branch is waited for apart."""
        while self._over:
            branch, call = self._over.pop()
            await in_thread(branch.settle, call)

    async def stop(self) -> list[Event]:
        """Cancel what runs, wait for it within the grace, and return what was reported and not taken."""
        await self.close()
        return _drain(self._events)

    async def close(self) -> None:
        """Cancel what still runs. A tool that ignores it is left behind and its result dropped."""
        self._cancel.set()
        left = [task for task in self._tasks.values() if not task.done()]
        for task in left:
            task.cancel()
        if left:
            await asyncio.wait(left, timeout=STOP_GRACE_S)

    async def _run(self, prepared: Prepared, before: set[asyncio.Task[None]]) -> None:
        if before:
            await asyncio.wait(before)
        async with self._slots:
            started = time.perf_counter()
            result, status = await self._result(prepared)
            outcome = ToolOutcome(
                call=prepared.call.id,
                tool=prepared.name,
                status=status,
                content=_encodable(result.content),
                data=result.data,
                truncated=result.truncated,
                tainted=result.tainted,
                ms=int((time.perf_counter() - started) * 1000),
                blob=result.blob,
            )
        self.report(Finished(outcome, result.control))

    async def _result(self, prepared: Prepared) -> tuple[ToolResult, OutcomeStatus]:
        try:
            result = await _tool(prepared).call(prepared.arguments or {}, self._context(prepared))
        except asyncio.CancelledError:
            if self._cancel.is_set():
                raise
            result = ToolResult.error("CancelledError: the tool cancelled itself")
        except (KeyboardInterrupt, GeneratorExit):  # of the process, not of the tool
            raise
        except BaseException as error:  # noqa: BLE001 - whatever a tool raises is the model's message: sys.exit() must not end the process, nor pytest.fail() leave the turn waiting
            lack = descriptors.ran_out(error)
            text = f"{type(error).__name__}: {_said(error)}" if lack is None else descriptors.words(lack)
            result = ToolResult.error(text)
        if result.is_error and self._cancel.is_set():
            return result, "interrupted"  # it says how far it came
        return result, "error" if result.is_error else "ok"

    def _context(self, prepared: Prepared) -> ToolContext:
        run, call = self._turn.run, prepared.call.id
        optional: dict[str, Any] = {}
        if run.approver is not None:
            optional["ask"] = self._asker(prepared)
        if run.changes is not None:
            optional["change"] = partial(run.changes.run, call, prepared.name)
        if run.delegate is not None and (branch := self._branches.get(call)) is not None:
            optional["subagents"] = run.delegate.calls(self._caller(call, branch))
        return ToolContext(
            branch=self._branches.get(call),
            session=run.who.session,
            turn=run.who.turn,
            call=call,
            agent=run.who.agent,
            cancel=self._cancel,
            progress=self._progress(call),
            spill=run.storage.spill,
            store_blob=run.storage.store_blob,
            config=run.who.configurable,
            reads=self._turn.reads,
            result_chars=run.limits.tool_result_chars,
            offered=self._offered,
            sample=lambda request: sample(self._turn, request, self.report),
            **optional,
        )

    async def _ended_before(self, call: str) -> None:
        """Wait until the calls that were started before `call` have ended."""
        if earlier := [task for task in self._earlier.get(call, ()) if not task.done()]:
            await asyncio.wait(earlier)

    def _caller(self, call: str, branch: "Branch") -> Caller:
        turn, run = self._turn, self._turn.run
        return Caller(
            branch=branch,
            session=run.who.session,
            turn=run.who.turn,
            call=call,
            agent=run.who.agent,
            mode=turn.mode,
            policy=turn.policy,
            limits=run.limits,
            spent=turn.usage,
            stop=turn.stop,
            approver=run.approver,
            price=turn.price() if run.limits.max_cost is not None else free,
            emit=self.report,
            earlier=partial(self._ended_before, call),
        )

    def _asker(self, prepared: Prepared) -> "Callable[[str, tuple[str, ...]], Awaitable[str | None]]":
        async def ask(text: str, options: tuple[str, ...] = ()) -> str | None:
            said: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()
            self.report(Wanted(wanted(prepared.call.id, prepared.name, text, options), said))
            return await said

        return ask

    def _progress(self, call: str) -> "_Progress":
        return _Progress(call, self._events)


class _Progress:
    """Passes at most ten reports a second on; the others are lost, the work is not slowed."""

    __slots__ = ("_call", "_events", "_last")

    def __init__(self, call: str, events: "asyncio.Queue[Any]") -> None:
        self._call, self._events, self._last = call, events, float("-inf")

    def __call__(self, text: str) -> None:
        now = time.monotonic()
        if now - self._last >= PROGRESS_EVERY_S:
            self._last = now
            self._events.put_nowait(ToolProgress(self._call, text))


def _tool(prepared: Prepared) -> "Tool":
    assert prepared.tool is not None, "only calls of known tools are run"
    return prepared.tool


def _said(error: BaseException) -> str:
    """The message of an exception of anybody's code."""
    try:
        return str(error)
    except Exception as broken:  # noqa: BLE001 - its own text may raise anything; the call must end all the same
        return f"(its message cannot be read: {type(broken).__name__})"


def _encodable(content: str | list[Block]) -> str | list[Block]:
    """Half a surrogate pair has no bytes; written as `?`, the rest of the result is kept."""
    if isinstance(content, str):
        return content.encode("utf-8", "replace").decode()
    return [
        replace(block, text=block.text.encode("utf-8", "replace").decode())
        if isinstance(block, TextBlock)
        else block
        for block in content
    ]


def _drain(queue: "asyncio.Queue[Any]") -> list[Any]:
    items: list[Any] = []
    while not queue.empty():
        items.append(queue.get_nowait())
    return items
