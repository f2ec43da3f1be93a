"""The calls of one answer: judged, run in their order, reported as they finish.

Here: the order of intents, starts and outcomes; what a person's answer starts; stopping. Not here: the
decision (`permissions`), argument checks (`arguments`), one call's run (`tool_call`), what a finished
batch means for the turn (`loop`).

Neighbours that only read run together, and so do neighbours that work on forks or in the background; every
other call waits for all before it, a person's word on them included. The intents of calls that run together
are yielded before the first of them starts, so whoever commits each event before asking for the next has the
effect ledger right. What people switch while the turn runs is looked up before each start.
"""

from collections.abc import Iterator, Sequence

import msgspec

from bowerbird.agent.always import DECISIONS
from bowerbird.agent.context.history import EFFECT_UNKNOWN, NOT_EXECUTED
from bowerbird.agent.permissions import Decision, decide
from bowerbird.agent.stop import Stopped
from bowerbird.agent.turn_loop.arguments import Prepared, edited, prepare, resolve
from bowerbird.agent.turn_loop.asking import (
    APPROVE,
    NOBODY,
    Answered,
    Questions,
    Wanted,
    answered,
    approval,
    denial,
    is_declined,
    options_of,
    question,
    rules_of,
    unanswered,
    with_edit,
)
from bowerbird.agent.turn_loop.controls import apply_control
from bowerbird.agent.turn_loop.flow import Flow
from bowerbird.agent.turn_loop.state import Turn
from bowerbird.agent.turn_loop.stuck import round_of
from bowerbird.agent.turn_loop.tool_call import Finished, Runner
from bowerbird.core.events import (
    ApprovalAnswer,
    ApprovalRequest,
    OutcomeStatus,
    RunEvent,
    SubagentEnd,
    SubagentStart,
    ToolOutcome,
    ToolProgress,
    UsageStep,
)
from bowerbird.core.messages import ToolUseBlock
from bowerbird.tools.control import AskUser
from bowerbird.tools.names import SAFE_TOOLS
from bowerbird.tools.plan import NO_ANSWERER

ON_FORKS = frozenset(("task", "spawn_subagents", "execute_agent", "run_tournament", "background_run"))
"""Tools that work on a fork of their own, or only start something."""


async def run_batch(turn: Turn, calls: Sequence[ToolUseBlock]) -> Flow:
    """Run `calls`, yielding intents, progress, requests and outcomes.

    Raises:
        Stopped: the run was stopped; every call has its outcome, the running ones `interrupted`.
    """
    batch = _Batch(turn, calls)
    try:
        await turn.stop.guard(batch.prepare())
        for event in batch.judge():
            yield event
        while True:
            while calls_now := batch.next_calls():
                yield _begin(batch, calls_now)
            if unasked := batch.to_be_asked():
                yield (request := await turn.stop.guard(approval(unasked, turn.run.branch)))
                batch.questions.ask(request)
            if not batch.unfinished:
                break
            news = await turn.stop.guard(batch.runner.next_event())
            for event in batch.on(news):
                yield event
            await batch.runner.settle()
        turn.add_round(round_of(calls, batch.outcomes, reads=batch.reads))
    except Stopped:
        for event in await batch.interrupted():
            yield event
        raise
    finally:
        batch.questions.close()
        await batch.runner.close()


async def _begin(batch: "_Batch", calls: Sequence[Prepared]) -> Flow:
    """Start calls that may run now, unless what people switched meanwhile says otherwise."""
    turn = batch.turn
    await turn.stop.guard(turn.look())
    for event in batch.judge_again(calls):
        yield event
    await batch.runner.take_mark(batch.ready)
    for event in batch.begin():
        yield event
    turn.stop.check()
    batch.start()


class _Batch:
    """What is where in a running batch; its methods return events, the generator above yields them."""

    def __init__(self, turn: Turn, calls: Sequence[ToolUseBlock]) -> None:
        self.turn, self.calls = turn, calls
        self.runner = Runner(turn)
        self.questions = Questions(turn.run.approver, self.runner.report)
        self.prepared: list[Prepared] = []
        self.ready: list[Prepared] = []  # to be started next
        self.asking: list[Prepared] = []
        self._requested: set[str] = set()  # ids of calls that a person is asked about
        self._groups: list[list[Prepared]] = []  # calls that run together, those that are not started yet
        self._approved: set[str] = set()  # ids of calls that a person allowed
        self.outcomes: list[ToolOutcome] = []
        self._asked: dict[str, ToolOutcome] = {}  # request id → the ask_user call it belongs to
        self._allowed: list[Prepared] = []  # in their order, those among them that a person is asked about
        self._commands: dict[str, str] = {}  # call id → the command that a person made of it
        self._wanted: dict[str, Wanted] = {}  # request id → what a running call waits for

    @property
    def reads(self) -> bool:
        """Whether its calls only look at things."""
        tools = [prepared.tool for prepared in self.prepared]
        return all(tool is not None and (tool.effect == "read" or tool.name in SAFE_TOOLS) for tool in tools)

    @property
    def unfinished(self) -> bool:
        return self.runner.running or bool(self.questions)

    async def prepare(self) -> None:
        """Find each call's tool and fit its arguments, save of those that are denied whatever these are."""
        unreadable = self.turn.reply.invalid_calls if self.turn.reply else {}
        for call in self.calls:
            found = resolve(call, self.turn.run.tools, unreadable.get(call.id))
            denied = found.problem is None and self._decision(found).action == "deny"
            self.prepared.append(found if denied else await prepare(found))

    def judge(self) -> Iterator[RunEvent]:
        """Judge every call; return the outcomes of those not run."""
        limit = self.turn.run.limits.max_tool_calls
        room = limit - self.turn.usage.own_tool_calls
        for prepared in self.prepared:
            if prepared.problem is None and len(self._allowed) >= room:
                text = f"{NOT_EXECUTED}: the limit of {limit} tool calls per run is reached"
                yield self._refused(prepared, "error", text)
            elif prepared.problem is not None:
                yield self._answered_before(prepared) or self._refused(prepared, "error", prepared.problem)
            elif (refusal := self._judged(prepared)) is not None:
                yield self._refused(prepared, "denied", refusal)
        self._groups = _together(self._allowed)

    def next_calls(self) -> list[Prepared]:
        """Return the calls that may start now; those before them have ended, or may run beside them."""
        while self._groups:
            asking = {prepared.call.id for prepared in self.asking}
            now = [prepared for prepared in self._groups[0] if prepared.call.id not in asking]
            if now:
                self._groups[0] = [p for p in self._groups[0] if p.call.id in asking]
                return now
            if self._groups[0] or self.runner.running:
                return []
            self._groups.pop(0)
        return []

    def to_be_asked(self) -> list[Prepared]:
        """Return the calls that a person must be asked about now."""
        unasked = [prepared for prepared in self.asking if prepared.call.id not in self._requested]
        self._requested |= {prepared.call.id for prepared in unasked}
        return unasked

    def judge_again(self, calls: Sequence[Prepared]) -> Iterator[RunEvent]:
        """Set `ready` to those of `calls` that may still run; the others are refused, or asked for."""
        for prepared in calls:
            decision = self._decision(prepared)
            if decision.action == "deny":
                yield self._refused(prepared, "denied", f"denied: {decision.reason}")
            elif decision.action == "allow" or prepared.call.id in self._approved:
                self.ready.append(prepared)
            elif self.turn.run.approver is None:
                yield self._refused(prepared, "denied", NOBODY.format(reason=decision.reason))
            else:
                self.asking.append(prepared)
                self._groups[0].append(prepared)

    def _answered_before(self, prepared: Prepared) -> ToolOutcome | None:
        """Return what a person had answered before the run went on where nobody can be asked."""
        earlier = self.turn.run.answers.get(prepared.call.id)
        if earlier is None or prepared.name != "ask_user":
            return None
        return self._kept(answered(ToolOutcome(prepared.call.id, prepared.name, "ok", ""), (), earlier))

    def begin(self) -> Iterator[RunEvent]:
        """Return the intents of the calls that may run."""
        for prepared in self.ready:
            yield self.runner.intent(prepared)

    def start(self) -> None:
        """Start what may run; called once all its intents are committed."""
        ready, self.ready = self.ready, []
        self.runner.start(ready)

    def on(self, news: object) -> Iterator[RunEvent]:
        """Return what follows from a report of a call or an answer of a person."""
        if isinstance(news, ToolProgress | UsageStep | SubagentStart | SubagentEnd):
            yield news
        elif isinstance(news, Wanted):
            yield news.request
            self._wanted[news.request.id] = news
            self.questions.ask(news.request)
        elif isinstance(news, Finished):
            yield from self._finished(news)
        elif isinstance(news, Answered) and self.questions.closed(news):
            if news.request.id in self._wanted:
                yield from self._was_wanted(news)
            elif news.request.id in self._asked:
                yield from self._user_said(news)
            else:
                yield from self._approval_came(news.request, news.answer)

    async def interrupted(self) -> list[RunEvent]:
        """Stop what runs; return the ends of its children and an outcome for every call that has none."""
        left = await self.runner.stop()
        ended = {
            f.outcome.call: f.outcome for f in left if isinstance(f, Finished) and f.control is None
        }  # fmt: skip
        told = {o.call for o in self.outcomes}
        children: list[RunEvent] = [e for e in left if isinstance(e, SubagentEnd)]
        return children + [
            ended.get(call.id)
            or ToolOutcome(
                call=call.id,
                tool=self.runner.intents.get(call.id, call.name),
                status="interrupted",
                content=EFFECT_UNKNOWN if call.id in self.runner.intents else NOT_EXECUTED,
            )
            for call in self.calls
            if call.id not in told
        ]

    def _judged(self, prepared: Prepared) -> str | None:
        earlier = self.turn.run.answers.get(prepared.call.id)
        prepared = self._edited(prepared, earlier)
        decision = self._decision(prepared)
        if decision.action == "deny":
            return f"denied: {decision.reason}"
        # No rule that came with the answer lets a call run that was denied in it.
        if earlier is not None and earlier.decision == "deny" and prepared.name != "ask_user":
            return denial(earlier)
        if decision.action == "allow" or (earlier is not None and earlier.decision in APPROVE):
            if earlier is not None:
                self._approved.add(prepared.call.id)
            self._allowed.append(prepared)
        elif earlier is not None:
            return denial(earlier)
        elif self.turn.run.approver is None:
            return NOBODY.format(reason=decision.reason)
        else:
            self.asking.append(prepared)
            self._allowed.append(prepared)
        return None

    def _decision(self, prepared: Prepared) -> Decision:
        assert prepared.tool is not None, "a call without a problem has a tool"
        return decide(prepared.tool, prepared.arguments or {}, self.turn.mode, self.turn.rights)

    def _was_wanted(self, news: Answered) -> Iterator[RunEvent]:
        waits = self._wanted.pop(news.request.id)
        answer = news.answer
        yield answer if answer is not None else unanswered(news.request)
        if not waits.said.done():
            said = None
            if answer is not None and not is_declined(options_of(news.request), answer):
                said = answer.feedback or answer.decision
            waits.said.set_result(said)

    def _withdrawn(self, call: str) -> Iterator[RunEvent]:
        """Close what an ended call still asked: nobody is waiting for the answer."""
        for request_id, waits in list(self._wanted.items()):
            if call in waits.request.calls:
                del self._wanted[request_id]
                self.questions.withdraw(request_id)
                yield unanswered(waits.request)

    def _finished(self, news: Finished) -> Iterator[RunEvent]:
        yield from self._withdrawn(news.outcome.call)
        if isinstance(news.control, AskUser):
            yield from self._ask_user(news.outcome, news.control)
            return
        if news.control is not None and (change := apply_control(self.turn, news.control)) is not None:
            yield change
        command = self._commands.get(news.outcome.call)
        yield self._kept(news.outcome if command is None else with_edit(news.outcome, command))
        # The outcome is committed by now: what could have taken the call back is not needed.
        self.runner.committed(news.outcome.call)

    def _ask_user(self, outcome: ToolOutcome, ask: AskUser) -> Iterator[RunEvent]:
        earlier = self.turn.run.answers.get(outcome.call)
        if earlier is not None:
            yield self._kept(answered(outcome, ask.options, earlier))
        elif self.turn.run.approver is None:
            yield self._kept(
                msgspec.structs.replace(
                    outcome, status="error", content=NO_ANSWERER, data={"error": NO_ANSWERER}
                )
            )
        else:
            request = question(outcome, ask)
            self._asked[request.id] = outcome
            yield request
            self.questions.ask(request)

    def _user_said(self, news: Answered) -> Iterator[RunEvent]:
        outcome = self._asked.pop(news.request.id)
        if news.answer is None:
            self._groups.clear()
            self.turn.waiting = "awaiting_user"  # the call stays pending and runs again when resumed
            return
        yield news.answer
        yield self._kept(answered(outcome, options_of(news.request), news.answer))

    def _approval_came(self, request: ApprovalRequest, answer: ApprovalAnswer | None) -> Iterator[RunEvent]:
        asking = [prepared for prepared in self.asking if prepared.call.id in request.calls]
        self.asking = [prepared for prepared in self.asking if prepared.call.id not in request.calls]
        if answer is None:
            self._groups.clear()
            self.turn.waiting = "awaiting_approval"
            return
        yield answer
        if answer.decision == "auto_approve":
            self.turn.policy = self.turn.policy.approved()
        elif answer.decision in DECISIONS:
            # What was said of a call by itself is said of that call, not for good.
            meant = [prepared for prepared in asking if prepared.call.id not in answer.calls]
            self.turn.policy = self.turn.policy.always_allowing(rules_of(meant))
        for prepared in asking:
            group = next(group for group in self._groups if prepared in group)
            at = group.index(prepared)
            said = answer.of(prepared.call.id)
            wanted = self._edited(prepared, said)
            decision = self._decision(wanted)
            if said.decision not in APPROVE:
                del group[at]
                yield self._refused(prepared, "denied", denial(said))
            elif decision.action == "deny":  # what a person put in its place is judged like the model's own
                del group[at]
                yield self._refused(prepared, "denied", f"denied: {decision.reason}")
            else:
                self._approved.add(prepared.call.id)
                group[at] = wanted

    def _edited(self, prepared: Prepared, said: ApprovalAnswer | None) -> Prepared:
        """Return a call with the command that a person put in place of the model's; its outcome says so."""
        changed = edited(prepared, said)
        if changed is not prepared:
            self._commands[prepared.call.id] = str((changed.arguments or {})["command"])
        return changed

    def _refused(self, prepared: Prepared, status: OutcomeStatus, text: str) -> ToolOutcome:
        outcome = ToolOutcome(prepared.call.id, prepared.name, status, text, {"error": text})
        return self._kept(outcome)

    def _kept(self, outcome: ToolOutcome) -> ToolOutcome:
        self.outcomes.append(outcome)
        return outcome


def _together(calls: Sequence[Prepared]) -> list[list[Prepared]]:
    """Return `calls` as groups of neighbours that may run at the same time."""
    groups: list[list[Prepared]] = []
    before: str | None = None
    for prepared in calls:
        kind = _kind(prepared)
        if kind is not None and kind == before:
            groups[-1].append(prepared)
        else:
            groups.append([prepared])
        before = kind
    return groups


def _kind(prepared: Prepared) -> str | None:
    """Return what a call shares with neighbours it may overlap; None where it stands alone."""
    tool = prepared.tool
    assert tool is not None, "a call that may run has a tool"
    if tool.name in ON_FORKS:
        return "forks"
    return "reads" if tool.effect == tool.recorded == "read" and not tool.process else None
