"""The tools of teams: those of the lead and those of teammates (DE-47 … DE-55, TO-38).

Here: what a model asks for and sees, and the protocol of whoever does it. Not here: teams themselves
(`bowerbird.subagents`, `bowerbird.sessions`), permission.
"""

from collections.abc import Awaitable, Callable
from typing import Any, Literal, Protocol

from bowerbird.core.errors import ToolError
from bowerbird.tools.context import ToolContext
from bowerbird.tools.control import EndTurn
from bowerbird.tools.result import ToolResult, to_result
from bowerbird.tools.tool import Tool

Body = dict[str, Any]
_SERIAL = "team"  # calls of one answer take effect in their order


class Team(Protocol):
    """The teams of a process; each call is on behalf of its session's lead or teammate.

    Refusals are InvalidArgument and change nothing.
    """

    async def spawn(self, name: str, role: str, prompt: str, call: ToolContext) -> Body:
        """Start a teammate."""
        ...

    async def members(self, call: ToolContext) -> list[Body]:
        """Return the team's members: name, role, status, current task, unread."""
        ...

    async def send(
        self, to: str, content: str, msg_type: str, request_id: str, approve: bool | None, reason: str,
        call: ToolContext,
    ) -> Body:  # fmt: skip
        """Send a message, or open or answer a request; `ends` says that the sender's turn is over."""
        ...

    async def read(self, call: ToolContext) -> list[Body]:
        """Take the caller's unread messages."""
        ...

    async def broadcast(self, content: str, call: ToolContext) -> Body:
        """Send a message to every living teammate but the caller."""
        ...

    async def shutdown(self, teammate: str, force: bool, call: ToolContext) -> Body:
        """Ask a teammate to stop, or stop it."""
        ...

    async def requests(self, request_id: str, call: ToolContext) -> list[Body]:
        """Return one request, or all open ones."""
        ...

    async def review(self, request_id: str, approve: bool, feedback: str, call: ToolContext) -> Body:
        """Answer a plan."""
        ...


def lead_tools(team: Team | None) -> list[Tool]:
    """Return the tools of a session that may have teammates; without a team they can only be listed."""
    session: dict[str, Any] = {"effect": "session", "serial": _SERIAL}
    return [
        Tool(_spawn_teammate(team), **session),
        Tool(_list_teammates(team), effect="read"),
        Tool(_send_message(team), **session),
        Tool(_read_inbox(team), **session),
        Tool(_broadcast(team), **session),
        Tool(_shutdown_request(team), **session),
        Tool(_check_protocol(team), effect="read"),
        Tool(_plan_review(team), **session),
    ]


def teammate_tools(team: Team) -> list[Tool]:
    """Return what a teammate has beside files, commands and the board.

    Its mail stays in the session whose person watches it, so approvals do not ask for it.
    """
    own: dict[str, Any] = {"effect": "session", "serial": _SERIAL, "needs_approval": False}
    return [Tool(_answer_message(team), **own), Tool(_read_inbox(team), **own), Tool(idle, **own)]


async def idle() -> ToolResult:
    """Say that nothing is left to do: you rest until a message or a task of the board comes."""
    return ToolResult("You are idle until something comes.", control=EndTurn())


def _there(team: Team | None) -> Team:
    if team is None:
        raise ToolError("no team is kept here")
    return team


# ---------------------------------------------------------------- the lead's


def _spawn_teammate(team: Team | None) -> Callable[..., Awaitable[ToolResult]]:
    async def spawn_teammate(name: str, role: str, prompt: str, context: ToolContext) -> ToolResult:
        """Start a teammate: an agent that works beside you on its own fork of your branch, and stays.

        When it finishes a piece of work, its changes are merged into your branch and its report comes as a
        message. Afterwards it waits for messages and for tasks of the board, then it shuts down. It sees the
        files, not this conversation.

        Args:
            name: Short name: a-z, 0-9, '_' and '-'.
            role: What it does, such as tester.
            prompt: Its first piece of work, with everything it needs to know.
        """
        return to_result(await _there(team).spawn(name, role, prompt, context))

    return spawn_teammate


def _list_teammates(team: Team | None) -> Callable[..., Awaitable[ToolResult]]:
    async def list_teammates(context: ToolContext) -> ToolResult:
        """List your teammates: name, role, status, current task, unread messages."""
        found = await _there(team).members(context)
        return ToolResult(
            "\n".join(_line(row) for row in found) or "no teammates", data={"teammates": found}
        )  # fmt: skip

    return list_teammates


def _line(row: Body) -> str:
    task = row["current_task"]
    doing = f", task #{task['id']}: {task['subject']}" if task else ""
    return f"{row['name']} ({row['role']}): {row['status']}{doing}, {row['unread']} unread"


def _send_message(team: Team | None) -> Callable[..., Awaitable[ToolResult]]:
    async def send_message(
        to: str,
        content: str,
        context: ToolContext,
        msg_type: Literal["message", "shutdown_request", "plan_approval_response"] = "message",
        request_id: str = "",
        approve: bool | None = None,
        reason: str = "",
    ) -> ToolResult:
        """Send a message to a teammate; it reads it before its next step.

        Args:
            to: Name of the teammate.
            content: The message.
            msg_type: message; shutdown_request asks it to stop; plan_approval_response answers its plan.
            request_id: Of the plan that is answered; may be left out when only one is open.
            approve: The answer to the plan.
            reason: Why.
        """
        return to_result(await _there(team).send(to, content, msg_type, request_id, approve, reason, context))

    return send_message


def _read_inbox(team: Team | None) -> Callable[..., Awaitable[ToolResult]]:
    async def read_inbox(context: ToolContext) -> ToolResult:
        """Take the messages that nobody gave you yet; usually they are given to you before each step."""
        return to_result({"messages": await _there(team).read(context)})

    return read_inbox


def _broadcast(team: Team | None) -> Callable[..., Awaitable[ToolResult]]:
    async def broadcast(content: str, context: ToolContext) -> ToolResult:
        """Send a message to all living teammates.

        Args:
            content: The message.
        """
        return to_result(await _there(team).broadcast(content, context))

    return broadcast


def _shutdown_request(team: Team | None) -> Callable[..., Awaitable[ToolResult]]:
    async def shutdown_request(teammate: str, context: ToolContext, force: bool = False) -> ToolResult:
        """Ask a teammate to finish and stop; check_protocol shows its answer.

        Args:
            teammate: Name of the teammate.
            force: Stop it in the middle of its work; only after a request that it did not agree to.
        """
        return to_result(await _there(team).shutdown(teammate, force, context))

    return shutdown_request


def _check_protocol(team: Team | None) -> Callable[..., Awaitable[ToolResult]]:
    async def check_protocol(context: ToolContext, request_id: str = "") -> ToolResult:
        """Look what became of a shutdown or plan request.

        Args:
            request_id: Id of the request; empty for all open ones.
        """
        found = await _there(team).requests(request_id, context)
        return to_result(found[0] if request_id.strip() else {"requests": found})

    return check_protocol


def _plan_review(team: Team | None) -> Callable[..., Awaitable[ToolResult]]:
    async def plan_review(
        request_id: str, approve: bool, context: ToolContext, feedback: str = ""
    ) -> ToolResult:
        """Answer a teammate's plan; until then it may only read.

        Args:
            request_id: Id of the plan request.
            approve: True lets it go on, False has it revise the plan.
            feedback: What to change or to keep in mind.
        """
        return to_result(await _there(team).review(request_id, approve, feedback, context))

    return plan_review


# ---------------------------------------------------------------- teammates'


def _answer_message(team: Team) -> Callable[..., Awaitable[ToolResult]]:
    async def send_message(
        to: str,
        content: str,
        context: ToolContext,
        msg_type: Literal["message", "shutdown_response", "plan_approval_request"] = "message",
        request_id: str = "",
        approve: bool | None = None,
        reason: str = "",
    ) -> ToolResult:
        """Send a message to the lead or another teammate.

        Args:
            to: lead, or the name of a teammate.
            content: The message, or the plan.
            msg_type: message; shutdown_response answers a shutdown_request; plan_approval_request asks the
                lead to approve the plan in content, until the answer comes you may only read.
            request_id: Of the request that is answered; may be left out when only one is open.
            approve: The answer to the request; true ends your work.
            reason: Why.
        """
        sent = await team.send(to, content, msg_type, request_id, approve, reason, context)
        result = to_result({key: value for key, value in sent.items() if key != "ends"})
        return ToolResult(result.content, data=result.data, control=EndTurn()) if sent.get("ends") else result

    return send_message
