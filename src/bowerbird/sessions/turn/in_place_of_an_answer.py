"""What comes in place of an answer: a message, a cancel, a queue that must not wait for ever (SE-21, D-12).

Here: how the turn that waited ends. Not here: accepting messages (`inbox/accept.py`), when a turn may wait
(`end_transaction.py`).

What is said while a plan waits is the feedback to it; the turn of that message is the revision. Calls that
were to be approved are denied. Whoever cancels ends the waiting, and no model is called.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import msgspec

from bowerbird.core.events import ApprovalAnswer, ApprovalRequest, StepEvent, ToolOutcome
from bowerbird.core.messages import blocks_from_data, text_of
from bowerbird.core.usage import Usage
from bowerbird.sessions.journal.history import Loaded
from bowerbird.sessions.resume_decision import ABANDONED_TEXT, LedgerCall
from bowerbird.sessions.turn.end_transaction import Ending
from bowerbird.store.rows.turns import InboxRow

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
    bodies = [msgspec.json.decode(row.body, type=dict[str, Any]) for row in notes]
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
    sender = msgspec.json.decode(behind.sender, type=dict[str, Any])
    body = msgspec.json.decode(behind.body, type=dict[str, Any])
    words = text_of(blocks_from_data(body["content"]))
    by = str(sender.get("name") or sender.get("id") or "user")
    return ApprovalAnswer(request.id, decision, by, words or None)


def _outcome(call: LedgerCall, text: str, *, is_unclear: bool) -> ToolOutcome:
    if is_unclear:
        return ToolOutcome(call.call, call.tool, "abandoned", ABANDONED_TEXT, {"error": ABANDONED_TEXT})
    return ToolOutcome(call.call, call.tool, "denied", text, {"error": text})
