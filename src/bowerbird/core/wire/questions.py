"""Frames of questions to people, and of what became of them.

Not here: answering them (`commands.py`).
"""

from typing import Any, ClassVar, Literal

from msgspec import UNSET, UnsetType

from bowerbird.core.events import CallAnswer
from bowerbird.core.wire.base import ServerFrame
from bowerbird.core.wire.rows import ToolUse


class ToolApprovalRequest(ServerFrame, frozen=True, tag="tool_approval_request"):
    """Calls wait for somebody's decision, or the agent asks something. Answer with `tool_approval_response`.

    Attributes:
        tools: the calls. request_id: names the question in the answer.
        expires_at: until when an answer is waited for, null = as long as it takes.
        kind: `user` = the agent asks a question, `effect` = a crash cut a call short; absent = approval.
        text: the question, where it is not an approval.
        subagent_id: the session of the subagent that asks, when one does.
    Example:
        {"type": "tool_approval_request", "tools": [{"name": "bash", "input": {"command": "make"}, "id": "call_1"}], "request_id": "r_01J", "expires_at": null, "cursor": 5, "turn_id": "t_01J"}
    """

    is_plain: ClassVar[bool] = True

    tools: list[ToolUse]
    request_id: str
    expires_at: str | None
    kind: Literal["user", "effect"] | UnsetType = UNSET
    text: str | UnsetType = UNSET
    subagent_id: str | UnsetType = UNSET


class ToolApprovalResult(ServerFrame, frozen=True, tag="tool_approval_result"):
    """A question has its answer, from whichever door, or its time is over.

    Attributes:
        decision: `approved`, `denied`, `auto_approved`, `always_approved`, `timeout`, or the words of an answer.
        tools: what was asked about. request_id: the question.
        calls: what was decided of single calls, by their ids, where that was.
        subagent_id: the session of the subagent that asked, when one did.
    Example:
        {"type": "tool_approval_result", "decision": "denied", "tools": [], "request_id": "r_01J", "cursor": 6, "turn_id": "t_01J"}
    """

    is_plain: ClassVar[bool] = True

    decision: str
    tools: list[dict[str, Any]]
    request_id: str
    calls: dict[str, CallAnswer] | UnsetType = UNSET
    subagent_id: str | UnsetType = UNSET


class PlanReady(ServerFrame, frozen=True, tag="plan_ready"):
    """The plan waits for a decision; `done` follows. Answer with `plan_approval`.

    Attributes:
        plan: as Markdown. request_id: names the question in the answer.
        subagent_id: the session of the subagent that asks, when one does.
    Example:
        {"type": "plan_ready", "plan": "1. look", "request_id": "r_01J", "cursor": 5, "turn_id": "t_01J"}
    """

    is_plain: ClassVar[bool] = True

    plan: str
    request_id: str
    subagent_id: str | UnsetType = UNSET


class PlanApproved(ServerFrame, frozen=True, tag="plan_approved"):
    """The plan was approved; the turn that carries it out follows.

    Attributes:
        request_id: the question.
    Example:
        {"type": "plan_approved", "request_id": "r_01J", "cursor": 6, "turn_id": "t_01J"}
    """

    is_plain: ClassVar[bool] = True

    request_id: str


class PlanRejected(ServerFrame, frozen=True, tag="plan_rejected"):
    """The plan was rejected; the turn that revises it follows, unless it was cancelled.

    Attributes:
        feedback: what was said about it, null = nothing. request_id: the question.
    Example:
        {"type": "plan_rejected", "feedback": "use sqlite", "request_id": "r_01J", "cursor": 6, "turn_id": "t_01J"}
    """

    is_plain: ClassVar[bool] = True

    feedback: str | None
    request_id: str


class BudgetExceeded(ServerFrame, frozen=True, tag="budget_exceeded"):
    """A limit in money is reached. Answer with `tool_approval_response`, `raise` or `stop`.

    Clients without `v=2` get an `error` `budget_exceeded` only: one that approves everything must not spend more.

    Attributes:
        message: which limit, in words. request_id: names the question in the answer.
        subagent_id: the session of the subagent that asks, when one does.
    Example:
        {"type": "budget_exceeded", "message": "0.5 of 0.5 USD of this run are spent", "request_id": "r_01J", "cursor": 5, "turn_id": "t_01J"}
    """

    message: str
    request_id: str
    subagent_id: str | UnsetType = UNSET
