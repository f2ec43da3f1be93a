"""Questions to people, their ends, and errors, as frames (SV-41). Pure.

Not here: which of them are open (`translate.py`), answering them (`actions.py`).
"""

from typing import Any, cast

import msgspec

from bowerbird.agent.always import DECISIONS as ALWAYS
from bowerbird.core import wire
from bowerbird.core.events import ApprovalAnswer, ApprovalRequest
from bowerbird.core.wire.rows import ToolUse
from bowerbird.server.common.safe_text import said

DECISIONS = {
    "approve": "approved",
    "deny": "denied",
    "auto_approve": "auto_approved",
    **dict.fromkeys(ALWAYS, "always_approved"),
}


def asked(event: ApprovalRequest) -> list[wire.ServerFrame]:
    """Return the frames that ask a question."""
    if event.kind == "plan":
        return [wire.PlanReady(event.text, event.id)]
    if event.kind == "budget":
        # No approval to plain clients: one that approves everything must not spend more money.
        return [
            error(event.text or "a budget is spent", "budget_exceeded"),
            wire.BudgetExceeded(event.text, event.id),
        ]
    tools = cast("list[ToolUse]", [dict(tool) for tool in event.tools])
    question = wire.ToolApprovalRequest(tools, event.id, event.expires_at)
    if event.kind == "approval":
        return [question]
    return [msgspec.structs.replace(question, kind=event.kind, text=event.text)]


def decided(
    request: ApprovalRequest | None, request_id: str, decision: str, **marks: Any
) -> wire.ToolApprovalResult:
    """Return the frame that says what became of a question; `marks` are members that every frame has."""
    tools = [dict(tool) for tool in request.tools] if request is not None else []
    return wire.ToolApprovalResult(decision, tools, request_id, **marks)


def error(message: str, code: str, *, retryable: bool = False) -> wire.Error:
    """Return an error as viewers are told it."""
    return wire.Error(said(message), code, retryable)


def single(answer: ApprovalAnswer) -> dict[str, Any]:
    """Return the member that says what was decided of single calls, if anything was."""
    return {"calls": answer.calls} if answer.calls else {}
