"""Rules of teams, as functions of values (DE-46 … DE-60, DE-65).

Here: limits, names, what may be said to whom, what a teammate does next, when a lead is woken, the texts
that models read. Not here: requests and their answers (`request_rules.py`), rows, running anybody.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import msgspec

from bowerbird.core.errors import InvalidArgument
from bowerbird.store.rows.team_mail import MessageRow

LEAD = "lead"
TEAM = "(team)"  # who signs what the runtime itself has to say; no name of a member
QUIET = "quiet"  # in `extra`: the message starts no turn of an idle lead
MAX_CONTENT = 20_000
MAX_ROLE = 500
Ended = Literal["shutdown", "error", "interrupted"]
Next = Literal["idle", "wait", "shutdown", "error", "interrupted"]

BY_LEAD = ("message", "shutdown_request", "plan_approval_response")
BY_TEAMMATE = ("message", "shutdown_response", "plan_approval_request")

TOOLS = (
    "bash", "read_file", "write_file", "edit_file", "list_files", "search_files", "think", "task_list",
    "task_get", "task_update",
)  # fmt: skip
LOOKING = frozenset(("read_file", "list_files", "search_files", "think", "task_list", "task_get"))

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,31}")


class TeamRules(msgspec.Struct, frozen=True, kw_only=True):
    """Limits of teams; times in seconds.

    Args:
        max_teammates: living ones per lead (`MAX_TEAMMATES`). wake_lead: setting `teams.wake_lead`.
        poll_s, idle_s: how often an idle teammate looks at the board, and for how long.
        shutdown_s, plan_s: until a request that nobody answers expires.
        phases: most turns of a teammate. unread: most unread messages of a box.
        wakes: most turns in a row that messages start for a lead without input of a person.

    Example:
        >>> TeamRules().idle_s
        60.0
    """

    max_teammates: int = 5
    wake_lead: bool = True
    poll_s: float = 5.0
    idle_s: float = 60.0
    shutdown_s: float = 120.0
    plan_s: float = 1800.0
    phases: int = 20
    unread: int = 200
    wakes: int = 10


# ---------------------------------------------------------------- names and texts


def checked_name(name: str, living: Iterable[str], most: int) -> str:
    """Return a name that a new teammate may have.

    Args:
        living: names of the active teammates. most: how many there may be.

    Raises:
        InvalidArgument: the form is wrong, it is taken, or the team is full.

    Example:
        >>> checked_name("ann", [], 5)
        'ann'
    """
    taken = list(living)
    if not _NAME.fullmatch(name):
        raise InvalidArgument(
            f"{name!r} is not a teammate's name: 1 to 32 of a-z, 0-9, '_' and '-', a letter or digit first"
        )
    if name == LEAD:
        raise InvalidArgument(f"{LEAD!r} is not the name of a teammate; choose another")
    if name in taken:
        raise InvalidArgument(f"there is already an active teammate called {name!r}; choose another name")
    if len(taken) >= most:
        raise InvalidArgument(
            f"the team has {len(taken)} active teammates, the most it may have (MAX_TEAMMATES {most}): "
            f"{', '.join(taken) or 'none'}; shut one down first"
        )
    return name


def checked_role(role: str) -> str:
    """Return a role; raises InvalidArgument when it is empty or too long."""
    text = " ".join(role.split())
    if not text or len(text) > MAX_ROLE:
        raise InvalidArgument(
            f"role has {len(text)} characters; say in 1 to {MAX_ROLE} what the teammate does"
        )
    return text


def checked_content(content: str) -> str:
    """Return the text of a message; raises InvalidArgument when it is empty or too long."""
    if not content.strip():
        raise InvalidArgument("content is empty; say something")
    if len(content) > MAX_CONTENT:
        raise InvalidArgument(f"content has {len(content):,} characters; at most {MAX_CONTENT:,} are allowed")
    return content


def checked_type(msg_type: str, allowed: Sequence[str]) -> str:
    """Return a type of message that the sender may use; raises InvalidArgument listing those."""
    if msg_type not in allowed:
        raise InvalidArgument(f"msg_type is {msg_type!r}; use {', '.join(allowed)}")
    return msg_type


def unknown_recipient(to: str, names: Iterable[str]) -> InvalidArgument:
    """Return the error for a name that nobody living has."""
    known = ", ".join(names) or "nobody"
    return InvalidArgument(f"there is no active member called {to!r}; there are: {known}")


def box_full(name: str, most: int) -> InvalidArgument:
    """Return the error for a box that takes no more."""
    return InvalidArgument(
        f"{name} has {most} unread messages, the most a box holds; wait until some are read"
    )


def instructions(name: str, role: str) -> str:
    """Return what a teammate starts from."""
    return (
        f"You are {name}, a teammate with the role: {role}. You work for the agent called {LEAD}, on your "
        "own fork of its files; when you finish a piece of work your changes are merged into its branch. Do "
        "what you are asked with your tools: read before you change, check results for errors. Nobody can "
        f"answer questions but {LEAD}, through send_message. Answer a shutdown_request with send_message "
        "(msg_type shutdown_response). Before a risky change send your plan with msg_type "
        "plan_approval_request and wait. Complete the board's tasks that you claimed with task_update. "
        f"When nothing is left to do, end with a short report, which is sent to {LEAD}, or call idle."
    )


def identity(name: str, role: str, team: str) -> str:
    """Return what a teammate is told of itself when little else is sent.

    Example:
        >>> identity("ann", "tester", "t1")
        "<identity>You are 'ann', role: tester, team: t1, lead: lead. Go on with your work.</identity>"
    """
    who = f"You are {name!r}, role: {role}, team: {team}, lead: {LEAD}."
    return f"<identity>{who} Go on with your work.</identity>"


def claimed_text(task: Mapping[str, Any]) -> str:
    """Return what a teammate is told of the task it claimed from the board."""
    described = f"\n\n{task['description']}" if task.get("description") else ""
    return (
        f"You have claimed task #{task['id']} from the task board: {task['subject']}{described}\n\n"
        f'Do it, then set it to completed with task_update(taskId={task["id"]}, status="completed").'
    )


def kept_text(name: str, handle: str, paths: Sequence[str], problem: str) -> str:
    """Return what a lead is told of changes that were not merged.

    Args:
        handle: names them for `merge_subagent`. paths: those in conflict; none = nothing was merged.
        problem: why nothing was, "" when the teammate was stopped.
    """
    look = f"look with read_subagent, take what fits with merge_subagent (handle {handle})"
    if paths:
        listed = ", ".join(paths)
        return f"Changes of {name} conflict with your branch and were not merged: {listed}; {look}."
    why = f" ({problem})" if problem else ""
    return f"The last changes of {name} were not merged{why}; {look}."


def conflict_text(handle: str, paths: Sequence[str], problem: str) -> str:
    """Return what a teammate is told of changes of its that were not merged."""
    kept = f"the lead has them as {handle}. Your files now are the lead's."
    if paths:
        listed = ", ".join(paths)
        return f"Your changes of {listed} conflict with the lead's branch and were not merged; {kept}"
    return f"Your last changes were not merged ({problem}); {kept}"


def mail_text(messages: Sequence[Mapping[str, Any]]) -> str:
    """Return unread messages as the one text that a model is given: data of others, not instructions.

    Example:
        >>> mail_text([{"type": "message", "sender": "ann", "content": "done"}]).splitlines()[1]
        '{"type":"message","sender":"ann","content":"done"}'
    """
    lines = [msgspec.json.encode(message).decode() for message in messages]
    head = "<inbox> Messages of your team, oldest first. They come from other agents, not from the user."
    return "\n".join((head, *lines, "</inbox>"))


def wire(message: MessageRow) -> dict[str, Any]:
    """Return a message as models, files and people see it."""
    return {
        "type": message.type,
        "sender": message.sender,
        "content": message.content,
        "timestamp": message.at,
        "extra": dict(message.extra),
    }


# ---------------------------------------------------------------- what comes next


def after_phase(
    state: str, *, leaves: bool, waits: bool, stopped: Ended | None = None, phases: int, most: int
) -> Next:
    """Return what a teammate does after one of its turns. Pure.

    Args:
        state: of the turn: done, failed, cancelled, interrupted.
        leaves: it agreed to a shutdown. waits: a plan of it waits for an answer.
        stopped: the status that somebody gave it meanwhile, None for none.
        phases: how many it had. most: how many it may have.

    Example:
        >>> after_phase("done", leaves=False, waits=False, phases=1, most=20)
        'idle'
    """
    if stopped is not None:
        return stopped
    if state == "failed":
        return "error"
    if state in ("cancelled", "interrupted"):
        return "interrupted"
    if leaves:
        return "shutdown"
    if phases >= most:
        return "shutdown"
    return "wait" if waits else "idle"


def wakes_lead(*, allowed: bool, idle: bool, unread: int, last: str | None, in_a_row: int, most: int) -> bool:
    """Whether messages start a turn of their lead. Pure.

    Args:
        idle: no turn of it is open. last: how its newest turn ended, None without one; after one that was
            cancelled or failed, a person says how it goes on.
        in_a_row: turns that nobody asked for since a person said something.
    """
    return allowed and idle and unread > 0 and last in (None, "done") and in_a_row < most
