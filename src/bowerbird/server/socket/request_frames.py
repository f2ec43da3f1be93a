"""Questions to people, their ends, and errors, as they stand on the wire (SV-41). Pure.

Not here: which of them are open (`translate.py`), answering them (`actions.py`).
"""

from typing import Any

from bowerbird.core.events import ApprovalRequest
from bowerbird.server.common.safe_text import said

Body = dict[str, Any]

DECISIONS = {"approve": "approved", "deny": "denied", "auto_approve": "auto_approved"}


def request_bodies(event: ApprovalRequest) -> list[Body]:
    """Return the events that ask a question."""
    if event.kind == "plan":
        return [{"type": "plan_ready", "plan": event.text, "request_id": event.id}]
    if event.kind == "budget":
        # No approval to plain clients: one that approves everything must not spend more money.
        shown: Body = {"type": "budget_exceeded", "message": event.text, "request_id": event.id}
        return [error_body(event.text or "a budget is spent", "budget_exceeded"), shown]
    body: Body = {
        "type": "tool_approval_request",
        "tools": [dict(tool) for tool in event.tools],
        "request_id": event.id,
        "expires_at": event.expires_at,
    }
    return [body if event.kind == "approval" else {**body, "kind": event.kind, "text": event.text}]


def decided(request: ApprovalRequest | None, request_id: str, decision: str) -> Body:
    """Return the event that says what became of a question."""
    tools = [dict(tool) for tool in request.tools] if request is not None else []
    return {"type": "tool_approval_result", "decision": decision, "tools": tools, "request_id": request_id}


def error_body(message: str, code: str, *, retryable: bool = False) -> Body:
    """Return an error as viewers are told it."""
    return {"type": "error", "message": said(message), "code": code, "retryable": retryable}
