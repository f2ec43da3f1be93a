"""The one mutable object of a running turn: what has happened so far and what follows from it.

Here: counters, the growing history, the present model, mode and policy. Not here: any await; the
steps (`model_step`, `tool_batch`, `summarise`) change it through the few methods below.
"""

import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

import msgspec

from bowerbird.agent.context.compaction import CHARS_PER_TOKEN
from bowerbird.agent.context.history import PARTIAL, History, HistoryBuilder
from bowerbird.agent.limits import KEEP_RESULTS
from bowerbird.agent.permissions import offered
from bowerbird.agent.policy import Mode, Policy
from bowerbird.agent.stop import StopSignal
from bowerbird.agent.turn import Found, TurnRun
from bowerbird.agent.turn_loop.stuck import KEPT_ROUNDS, Round
from bowerbird.core.events import (
    AssistantStep,
    Done,
    RunError,
    RunEvent,
    RunStop,
    SubagentEnd,
    TextLive,
    ThinkingLive,
    ToolIntent,
    ToolOutcome,
    UsageStep,
)
from bowerbird.core.messages import Message
from bowerbird.core.requests import ModelRequest, ToolSpec
from bowerbird.core.usage import Usage
from bowerbird.models.budget import PriceOf
from bowerbird.tools.context import ReadTracker
from bowerbird.tools.toolset import Toolset

if TYPE_CHECKING:
    from bowerbird.models.protocol import Model

HINT_AT = 3  # model calls left when the model is told to finish (AG-41)


class Reply(msgspec.Struct, frozen=True):
    """A complete answer of the model, as the loop goes on with it."""

    message: Message
    stop_reason: str
    invalid_calls: dict[str, str]


@dataclass(slots=True)
class Turn:
    """State of one turn; owned by the task that iterates `run_turn`."""

    run: TurnRun
    model: "Model" = field(init=False)
    tier: str = field(init=False)
    mode: Mode = field(init=False)
    policy: Policy = field(init=False)
    stop: StopSignal = field(init=False)
    history: HistoryBuilder = field(init=False)
    system: tuple[str, ...] = field(init=False)
    usage: Usage = field(init=False)
    iterations: int = field(init=False)
    started_at: float = field(default_factory=time.monotonic)
    steps: int = 0
    tools_started: list[str] = field(default_factory=list[str])
    reply: Reply | None = None
    pieces: list[str] = field(default_factory=list[str])  # text of answers that were continued
    continuations: int = 0
    asked_again: bool = False
    overflows: int = 0
    rounds: list[Round] = field(default_factory=list[Round])
    compact_focus: str | None = None
    compact_by: Literal["user", "tool"] = "user"  # whose wish that is
    plan: str | None = None
    waiting: RunStop | None = None
    ending: bool = False  # a tool asked for the end of the turn
    done: Done | None = None
    request: ModelRequest | None = None  # the next request with room for it
    reservation: str | None = None
    summary: str = ""  # what the summariser wrote last
    raised_usd: float = 0.0
    warned: bool = False
    hinted: bool = False  # it was told that few calls are left
    sent_tokens: int = 0  # of the messages of the newest request, roughly
    refused_at: int | None = None  # tokens of a request that was too long: the real window is smaller
    cached: int = 0  # input tokens that the provider had or has cached since the last call
    last_usage: Usage = field(default_factory=Usage)
    reads: ReadTracker = field(init=False)
    _specs: tuple[ToolSpec, ...] | None = None

    def __post_init__(self) -> None:
        run = self.run
        self.model, self.tier, self.mode, self.policy = run.model, run.tier, run.mode, run.policy
        self.stop = StopSignal(run.stop)
        kept = run.limits.keep_results or (KEEP_RESULTS if run.model.info.checks_history else 0)
        self.history = HistoryBuilder(run.history.within(int(kept * self.window * CHARS_PER_TOKEN)))
        self.system = run.system() if callable(run.system) else run.system
        self.usage = run.used
        self.iterations = run.used.own_calls
        self.hinted = bool(self.iterations) and self.iterations_left < HINT_AT
        self.compact_focus = run.compact
        self.reads = run.reads or ReadTracker()

    def record(self, event: RunEvent) -> None:
        """Fold in an event that the consumer has committed."""
        if isinstance(event, TextLive | ThinkingLive):
            return
        seen = self.seen_tokens
        self.history.add(event)
        match event:
            case AssistantStep():
                self.steps += 1
                self._spend(event.usage.after(seen))
                if event.stop_reason != PARTIAL:
                    self.reply = Reply(event.message, event.stop_reason, event.invalid_calls)
            case UsageStep():
                self._spend(event.usage.after(seen) if event.purpose != "tool" else event.usage)
            case SubagentEnd():
                self.usage += event.usage.as_subagents
            case ToolIntent():
                self.tools_started.append(event.tool)
                self.usage += Usage(tool_calls=1)
            case ToolOutcome():
                self.steps += 1
            case _:
                pass

    async def look(self) -> None:
        """Take over what people switched since the last call."""
        if self.run.switched is None:
            return
        changes = await self.run.switched()
        if "enable_plan_mode" in changes:
            self.mode = "plan" if changes["enable_plan_mode"] else "normal"
        policy = {key: bool(changes[key]) for key in ("enable_approval", "auto_approve") if key in changes}
        if policy:
            self.policy = replace(self.policy, **policy)

    @property
    def rights(self) -> Policy:
        """The policy as it stands now: less while this agent's plan waits for an answer."""
        return replace(self.policy, awaiting=True) if self.run.who.awaiting() else self.policy

    def view(self) -> History:
        """Return the history as it stands."""
        return self.history.build()

    def specs(self) -> tuple[ToolSpec, ...]:
        """Return the tools the model is told of, in registration order.

        They stay as they are until the turn ends: they stand before all messages.
        """
        if self._specs is None:
            run = self.run
            shown = offered(run.tools, run.mode, run.policy, full=run.full)
            self._specs = tuple(tool.spec for tool in shown)
        return self._specs

    def take_tools(self, found: Found) -> tuple[str, ...]:
        """Add what servers offer to this turn's tools; return what a person should be told."""
        tools = self.run.tools
        fresh = [tool for tool in found.tools if not any(n in tools for n in (tool.name, *tool.aliases))]
        joined = Toolset((*tools, *fresh), absent={**tools.absent, **found.absent})
        self.run = msgspec.structs.replace(self.run, tools=joined)
        self._specs = None
        return found.warnings

    @property
    def window(self) -> int:
        """Tokens of context: the least of the setting, the present model's own, and what it refused."""
        planned = min(self.run.limits.context_window, self.model.info.context_window)
        return planned if self.refused_at is None else min(planned, self.refused_at)

    @property
    def iterations_left(self) -> int:
        """Model calls that may still be made, before the final summary."""
        return self.run.limits.max_iterations - self.iterations

    def price(self) -> PriceOf:
        """Return the price function of the present model."""
        from bowerbird.models.prices import pricer_of  # the price table is large, most runs never ask

        return pricer_of(self.model.info)

    def add_round(self, made: Round) -> None:
        """Remember a finished batch for the stuck check."""
        self.rounds.append(made)
        del self.rounds[:-KEPT_ROUNDS]

    def finish(self, stop: RunStop, text: str, error: RunError | None = None, output: object = None) -> None:
        """Decide how the run ends; the loop yields it and stops."""
        self.done = Done(stop, text, self.usage, self.steps, error, output)

    def said(self) -> str:
        """Return the text of the newest answer, or what there is of it, for a run that is cut off."""
        newest = next((m for m in reversed(self.history.messages) if m.role == "assistant"), None)
        ours = newest is not None and all(m.id != newest.id for m in self.run.history.messages)
        last = newest.text if newest is not None and ours else ""
        return self.text_so_far("" if self.pieces and self.pieces[-1] == last else last)

    @property
    def seen_tokens(self) -> int:
        """Tokens of the newest request and its answer: the next one sends them again."""
        known = self.history.last_context
        return known + self.last_usage.output_tokens if known else 0

    def _spend(self, usage: Usage) -> None:
        self.usage += usage
        self.last_usage = usage
        self.cached = usage.cache_read_tokens + usage.cache_write_tokens

    def text_so_far(self, last: str = "") -> str:
        """Return the answer's text: the pieces of continued answers and `last`."""
        return "".join((*self.pieces, last))

    def seconds_left(self) -> float | None:
        """Return the rest of the deadline, None without one."""
        limit = self.run.limits.deadline_s
        return None if limit is None else max(0.0, limit - (time.monotonic() - self.started_at))


def with_totals(done: Done, usage: Usage, steps: int) -> Done:
    """Return `done` with the run's totals at its very end."""
    return Done(done.stop_reason, done.text, usage, steps, done.error, done.output)
