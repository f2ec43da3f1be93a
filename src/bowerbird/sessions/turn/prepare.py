"""What an attempt does before the loop: answers given meanwhile, unfinished calls (SE-20 … 26).

Here: from the state the last attempt left to one that the loop can go on with, or to an end; what comes in
place of an answer. A message while a plan waits is the feedback to it, and its turn is the revision (D-12);
calls that were to be approved are denied. Whoever cancels ends the waiting, and no model is called. Not here:
the resume decision (`resume_decision.py`), the commits (given as a function).
"""

from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import msgspec

from bowerbird.core.events import ApprovalAnswer, ApprovalRequest, StepEvent, ToolOutcome
from bowerbird.core.forms import decode
from bowerbird.core.ids import new_id
from bowerbird.core.messages import blocks_from_data, text_of
from bowerbird.core.timestamps import to_iso
from bowerbird.core.usage import Usage
from bowerbird.sessions.journal.history import Loaded, load
from bowerbird.sessions.resume_decision import ABANDONED_TEXT, LedgerCall
from bowerbird.sessions.settings import SessionSettings
from bowerbird.sessions.turn.approver_and_inbox import answer_of
from bowerbird.sessions.turn.begin_transaction import Begun
from bowerbird.sessions.turn.driver_context import DriverContext
from bowerbird.sessions.turn.end_transaction import Ending, Pause
from bowerbird.sessions.turn.recovery import Recovery, recover
from bowerbird.store.journal.journal import NewRecord
from bowerbird.store.rows.turns import InboxRow
from bowerbird.store.rows.usage import TurnUsage, turn_usage

if TYPE_CHECKING:
    from bowerbird.workspace import Branch


Commit = Callable[[StepEvent], Awaitable[None]]

INSTEAD = "User denied this tool call: a new message came instead"
TOO_LATE = "not executed: nobody answered in time, and the user's next message was waiting"
CANCELLED = "not executed: the turn was cancelled"

# What closes a question that no person answered, by its kind.
_CLOSED = {"plan": "reject", "approval": "deny", "budget": "stop"}
_UNANSWERED = "unanswered"


async def unanswered(
    loaded: Loaded, notes: Sequence[InboxRow], behind: InboxRow | None, used: Usage, commit: Commit
) -> Ending:
    """End a turn that waited for a person.

    Args:
        notes: that a message or a cancel came. behind: the message that waits for this turn's end.
        commit: commits one step event.
    """
    bodies = [decode(row.body, dict[str, Any]) for row in notes]
    is_cancelled = any("cancel" in body for body in bodies)
    requests = loaded.turn.open_requests
    for request in requests:
        await commit(_closing(request, None if is_cancelled else behind))
    text = CANCELLED if is_cancelled else INSTEAD if notes else TOO_LATE
    asked_what_happened = {call for r in requests if r.kind == "effect" for call in r.calls}
    for call in loaded.turn.calls:
        if call.outcome_seq is None:
            await commit(_outcome(call, text, is_unclear=call.call in asked_what_happened))
    if is_cancelled:
        return Ending("cancelled", "cancelled", used)
    kinds = {request.kind for request in requests}
    if "plan" in kinds:
        return Ending("done", "plan", used, loaded.turn.plan_text)
    if "budget" in kinds:
        return Ending("done", "budget", used)
    if notes:
        return Ending("interrupted", "interrupted", used)
    return Ending("done", "approval_timeout" if "approval" in kinds else "awaiting_user", used)


def _closing(request: ApprovalRequest, behind: InboxRow | None) -> ApprovalAnswer:
    decision = _CLOSED.get(request.kind, _UNANSWERED)
    if request.kind != "plan" or behind is None:
        return ApprovalAnswer(request.id, decision, "system", None)
    sender = decode(behind.sender, dict[str, Any])
    body = decode(behind.body, dict[str, Any])
    words = text_of(blocks_from_data(body["content"]))
    by = str(sender.get("name") or sender.get("id") or "user")
    return ApprovalAnswer(request.id, decision, by, words or None)


def _outcome(call: LedgerCall, text: str, *, is_unclear: bool) -> ToolOutcome:
    if is_unclear:
        return ToolOutcome(call.call, call.tool, "abandoned", ABANDONED_TEXT, {"error": ABANDONED_TEXT})
    return ToolOutcome(call.call, call.tool, "denied", text, {"error": text})


class Ready(msgspec.Struct, frozen=True):
    """A turn the loop can go on with; `used` counts every earlier attempt.

    Attributes:
        limits: in USD, by (scope, key), that people set.
    """

    loaded: Loaded
    used: Usage
    sender: dict[str, Any]
    limits: dict[tuple[str, str], float] = msgspec.field(default_factory=dict[tuple[str, str], float])


async def opened(
    context: DriverContext, begun: Begun, loaded: Loaded, branch: "Branch", commit: Commit
) -> Ready | Ending | Pause:
    """Bring a turn to where the loop can go on, or say how it stops.

    Args:
        commit: commits one step event; what it raises is passed on.
    """
    thread, turn = begun.session.thread_id, begun.turn.turn_id
    used = (
        Usage() if begun.is_first else _usage(await context.store.read(lambda c: turn_usage(c, turn)), loaded)
    )
    if begun.notes:
        return await unanswered(loaded, begun.notes, begun.behind, used, commit)
    if begun.answers:
        for row in begun.answers:
            await commit(answer_of(row))
        loaded = load(await context.store.records(thread), turn)
    if begun.behind is not None and loaded.turn.open_requests:
        return await unanswered(loaded, (), begun.behind, used, commit)
    stopped = _answered_end(loaded, used)
    if stopped is not None:
        return stopped
    recovery = await recover(loaded.turn.calls, branch, context.settings.resume_external)
    if recovery.went_back:
        for part in reversed(context.parts):
            await part.rolled_back(branch.id)
    for outcome in recovery.outcomes:
        await commit(outcome)
    if recovery.ask:
        return _ask_what_happened(loaded, recovery, used, turn, context.settings)
    if recovery.outcomes:
        loaded = load(await context.store.records(thread), turn)
    return Ready(loaded, used, begun.sender, begun.limits)


def expires_at(settings: SessionSettings) -> str:
    """Return when a request made now can no longer be answered: never while its turn waits for it."""
    lasts = max(timedelta(days=settings.approval_expiry_days), timedelta(seconds=settings.approval_timeout_s))
    return to_iso(datetime.now(UTC) + lasts)


def _answered_end(loaded: Loaded, used: Usage) -> Ending | Pause | None:
    """Return how a turn stops whose plan or budget question stands at the end of its records."""
    turn = loaded.turn
    if turn.plan_answer is not None:
        return Ending("done", "plan", used, turn.plan_text)
    if turn.budget_answer is not None and turn.budget_answer.decision == "stop":
        return Ending("done", "budget", used)
    for request in turn.open_requests:
        if request.kind == "plan":
            return Pause("plan", "plan", used)
        if request.kind == "effect":
            return Pause("effect", "awaiting_user", used)
    return None


def _ask_what_happened(
    loaded: Loaded, recovery: Recovery, used: Usage, turn: str, settings: SessionSettings
) -> Pause:
    tools = [_shown(loaded, call) for call in recovery.ask]
    body: dict[str, Any] = {
        "id": new_id("r"),
        "kind": "effect",
        "calls": [call.call for call in recovery.ask],
        "expires_at": expires_at(settings),
        "tools": tools,
        "text": "The process stopped while these calls were running. Did they happen?",
    }
    return Pause("effect", "awaiting_user", used, NewRecord("request", body, turn))


def _shown(loaded: Loaded, call: LedgerCall) -> dict[str, Any]:
    from bowerbird.agent.turn_loop.arguments import edited_arguments

    uses = {use.id: use for message in loaded.history.messages for use in message.tool_uses}
    use, said = uses.get(call.call), loaded.turn.answers.get(call.call)
    arguments = {} if use is None else dict(use.input)
    return {"name": call.tool, "input": edited_arguments(call.call, arguments, said), "id": call.call}


def _usage(totals: TurnUsage, loaded: Loaded) -> Usage:
    """Return what the turn used: model calls from their rows, the rest from the records."""
    recorded = loaded.turn.used
    return msgspec.structs.replace(
        recorded,
        input_tokens=totals.input_tokens,
        output_tokens=totals.output_tokens,
        cache_read_tokens=totals.cache_read_tokens,
        cache_write_tokens=totals.cache_write_tokens,
        repeated_tokens=totals.repeated_tokens,
        model_calls=max(totals.calls, recorded.model_calls),
        cost=totals.cost,
        estimated=totals.estimated or recorded.estimated,
    )
