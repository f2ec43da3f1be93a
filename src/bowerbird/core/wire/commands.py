"""Frames that clients send (SV-37 … SV-40).

Here: their form and limits. Not here: reading text that may be none of them (`server/socket/endpoint.py`),
doing what they ask (`server/socket/actions.py`).
"""

from typing import Annotated, ClassVar, Literal

from msgspec import Meta, field

from bowerbird.core.events import CallAnswer
from bowerbird.core.wire.base import MAX_ID, ClientFrame

Words = Annotated[str, Meta(min_length=1, pattern=r"\S")]


class Say(ClientFrame, frozen=True):
    """What every frame has that brings somebody's words. Not sent itself."""

    content: Words


class Message(Say, frozen=True, tag="message"):
    """Starts a turn, or waits in the queue while one runs. Text that is not JSON is a message too.

    While a plan waits it is the feedback to it, while a question of the agent waits it is the answer; while
    an approval waits it ends that turn.

    Attributes:
        content: the words.
    Example:
        {"type": "message", "content": "Fix the failing test", "id": "m-1"}
    """


class Interrupt(Say, frozen=True, tag="interrupt"):
    """Stops the running turn and starts one with the text, ahead of the queue.

    Attributes:
        content: the words.
    Example:
        {"type": "interrupt", "content": "Stop, do this instead"}
    """


class Steer(Say, frozen=True, tag="steer"):
    """Joins the running turn before its next model call; becomes a turn of its own when that ends first.

    Attributes:
        content: the words.
    Example:
        {"type": "steer", "content": "Mind the Windows build"}
    """


class Cancel(ClientFrame, frozen=True, tag="cancel"):
    """Stops the turn that runs or waits; nothing else is called. What is queued runs next.

    Nothing runs: `error` `not_running`.

    Example:
        {"type": "cancel"}
    """


class Resume(ClientFrame, frozen=True, tag="resume"):
    """Goes on with a turn that failed or was disconnected.

    Example:
        {"type": "resume"}
    """


class ToolApprovalResponse(ClientFrame, frozen=True, tag="tool_approval_response"):
    """Answers a question other than a plan.

    Attributes:
        decision: `approve`, `deny`, `auto_approve` (the rest of this conversation is not asked),
            `always_session`, `always_workspace`, `always_everywhere` (calls that the question's `rules` cover
            are not asked about here, in this directory, anywhere); any text for a question of the agent;
            `happened`, `did_not_happen`, `run_again` for a call that a crash cut short; `raise` with the
            amount as `feedback`, or `stop`, for a budget.
        feedback: what the model is told with it.
        calls: of several calls, those that are decided by themselves, by their ids; with `command` another
            command is run than the one that was asked about. Beside `approve` and `deny` only.
    Example:
        {"type": "tool_approval_response", "decision": "approve", "request_id": "r_01J", "feedback": null}
    """

    decision: Annotated[str, Meta(min_length=1)]
    feedback: str | None = None
    calls: dict[str, CallAnswer] = field(default_factory=dict[str, CallAnswer])


class PlanApproval(ClientFrame, frozen=True, tag="plan_approval"):
    """Answers a plan: `approve` carries it out in a turn of its own, `reject` revises it.

    Attributes:
        decision: either word. feedback: what is wrong with the plan.
    Example:
        {"type": "plan_approval", "decision": "reject", "feedback": "use sqlite"}
    """

    decision: Literal["approve", "reject"]
    feedback: str | None = None


class Toggle(ClientFrame, frozen=True):
    """What every frame has that switches something. Not sent itself.

    Attributes:
        flag: what it switches, as sessions call it.
    """

    flag: ClassVar[str] = ""

    enabled: bool


class TogglePlanMode(Toggle, frozen=True, tag="toggle_plan_mode"):
    """Switches plan mode; stored with the conversation and told to all viewers.

    Attributes:
        enabled: whether it is on from now.
    Example:
        {"type": "toggle_plan_mode", "enabled": true}
    """

    flag: ClassVar[str] = "enable_plan_mode"


class ToggleTeams(Toggle, frozen=True, tag="toggle_teams"):
    """Switches teams; stored with the conversation and told to all viewers.

    Attributes:
        enabled: whether they are on from now.
    Example:
        {"type": "toggle_teams", "enabled": false}
    """

    flag: ClassVar[str] = "enable_teams"


class ToggleApproval(Toggle, frozen=True, tag="toggle_approval"):
    """Switches approval of tools; stored with the conversation and told to all viewers.

    Attributes:
        enabled: whether people are asked from now.
    Example:
        {"type": "toggle_approval", "enabled": true}
    """

    flag: ClassVar[str] = "enable_approval"


class Background(ClientFrame, frozen=True, tag="background"):
    """Asks for the background commands; answered with `background_runs`.

    Example:
        {"type": "background"}
    """


class CancelBackground(ClientFrame, frozen=True, tag="cancel_background"):
    """Ends a background command; answered with `background_runs`.

    Attributes:
        task_id: the command.
    Example:
        {"type": "cancel_background", "task_id": "bg_1"}
    """

    task_id: Annotated[str, Meta(min_length=1, max_length=MAX_ID)]


class Ping(ClientFrame, frozen=True, tag="ping"):
    """Asks whether the server is there; answered with `pong` on `v=2`.

    Example:
        {"type": "ping"}
    """
