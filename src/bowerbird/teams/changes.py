"""Changes of a team, each inside a given transaction (DE-47 … DE-66).

Here: making and ending teammates, their phases, mail, usage, as functions of a connection: an error
changes nothing. Not here: requests (`requests.py`), the rules (`rules.py`), forks, running anybody,
the readable copies.

Each begins by locking the lead's session, so that changes of one team run one after another.
"""

from collections.abc import Mapping
from typing import Any

import msgspec
from sqlalchemy import Connection

from bowerbird.core.errors import LeaseLost
from bowerbird.core.forms import decode
from bowerbird.core.ids import new_id
from bowerbird.core.timestamps import now_iso
from bowerbird.core.usage import Usage
from bowerbird.store.rows.sessions import (
    SessionRow,
    find_session,
    insert_session,
    lock_session,
    update_session,
)
from bowerbird.store.rows.team_mail import MessageRow, close_request, put_message, requests_of, unread_counts
from bowerbird.store.rows.teams import (
    UNSETTLED,
    MemberRow,
    PhaseRow,
    count_phases,
    insert_member,
    insert_phase,
    member_at,
    members_of,
    phases_of,
    uncounted_usages,
    update_member,
    update_phase,
)
from bowerbird.store.rows.turns import InboxRow, TurnRow, insert_input, insert_turn, last_turn_number
from bowerbird.teams.rules import (
    LEAD,
    TEAM,
    TeamRules,
    box_full,
    checked_content,
    instructions,
    unknown_recipient,
)

KIND = "teammate"  # of the session and of its turns
_KEPT_FLAGS = (
    "enable_thinking", "enable_tracing", "enable_approval", "memory", "network", "tools", "max_turns",
    "max_cost",
)  # fmt: skip


class NewMember(msgspec.Struct, frozen=True, kw_only=True):
    """A teammate to be made; `thread_id` is its session's, `fork` its first branch."""

    name: str
    role: str
    prompt: str
    thread_id: str
    fork: str
    model: str
    holder: str


class Person(msgspec.Struct, frozen=True):
    """Who writes or is written to; `member` is None for the lead."""

    lead: str
    name: str
    thread: str
    member: MemberRow | None = None


# ---------------------------------------------------------------- who


def person_of(connection: Connection, thread_id: str) -> Person:
    """Return who works in a session: a teammate, or the lead of a team."""
    member = member_at(connection, thread_id)
    if member is None:
        return Person(thread_id, LEAD, thread_id)
    return Person(member.lead, member.name, thread_id, member)


def living(connection: Connection, lead: str) -> list[MemberRow]:
    """Return the living teammates of a session."""
    return [row for row in members_of(connection, lead) if row.lives]


def recipient(connection: Connection, sender: Person, to: str) -> Person:
    """Return who has a name; raises InvalidArgument listing the names when nobody else living has it."""
    people = [Person(sender.lead, LEAD, sender.lead)]
    people += [Person(row.lead, row.name, row.thread_id, row) for row in living(connection, sender.lead)]
    others = [person for person in people if person.thread != sender.thread]
    found = next((person for person in others if person.name == to.strip()), None)
    if found is None:
        raise unknown_recipient(to, [person.name for person in others])
    return found


def teammate(connection: Connection, lead: str, name: str) -> MemberRow:
    """Return the living teammate of a name; raises InvalidArgument listing those there are."""
    rows = living(connection, lead)
    found = next((row for row in rows if row.name == name.strip()), None)
    if found is None:
        raise unknown_recipient(name, [row.name for row in rows])
    return found


# ---------------------------------------------------------------- mail


def post(
    connection: Connection,
    rules: TeamRules,
    sender: Person,
    to: Person,
    kind: str,
    content: str,
    extra: Mapping[str, Any] | None = None,
) -> MessageRow:
    """Put a message into a box.

    Raises:
        InvalidArgument: empty, too long, or the box is full.
    """
    checked_content(content)
    if unread_counts(connection, sender.lead).get(to.thread, 0) >= rules.unread:
        raise box_full(to.name, rules.unread)
    return put(connection, to, kind, sender.name, content, extra)


def tell(
    connection: Connection, to: Person, content: str, extra: Mapping[str, Any] | None = None
) -> MessageRow:
    """Put what the runtime itself has to say into a box, however full it is: there is little of it."""
    return put(connection, to, "message", TEAM, content, extra)


def put(
    connection: Connection, to: Person, kind: str, sender: str, content: str, extra: Mapping[str, Any] | None
) -> MessageRow:
    """Put a message into a box, full or not: an answer is never refused for want of room."""
    return put_message(
        connection, to.lead, box=to.name, reader=to.thread, kind=kind, sender=sender, content=content,
        extra=dict(extra or {}),
    )  # fmt: skip


# ---------------------------------------------------------------- teammates and phases


def next_number(connection: Connection, lead: str) -> int:
    """Return the number of a session's next teammate."""
    return max((row.number for row in members_of(connection, lead)), default=0) + 1


def spawn(connection: Connection, lead: str, new: NewMember) -> tuple[MemberRow, PhaseRow]:
    """Make a teammate that works on its prompt; its name was checked in the same transaction."""
    parent = lock_session(connection, lead)
    row = MemberRow(
        lead=lead,
        number=next_number(connection, lead),
        name=new.name,
        role=new.role,
        thread_id=new.thread_id,
        holder=new.holder,
        created_at=now_iso(),
    )
    insert_session(
        connection,
        SessionRow(
            thread_id=new.thread_id,
            kind=KIND,
            channel=parent.channel,
            chat_id=parent.chat_id,
            owner=parent.owner,
            title=f"{new.name}: {new.role}"[:100],
            system_prompt=instructions(new.name, new.role),
            flags={"model": new.model},
            workspace=parent.workspace,
            branch_id=new.fork,
            status="queued",
        ),
    )
    insert_member(connection, row)
    return row, start_phase(connection, row, new.fork, new.prompt)


def start_phase(connection: Connection, row: MemberRow, fork: str, text: str = "") -> PhaseRow:
    """Queue a teammate's next turn on a fork; it works from now on.

    Args:
        text: what it is told to begin with; "" when messages wait for it.

    Raises:
        LeaseLost: it has ended, or another process keeps it going.
    """
    parent = lock_session(connection, row.lead)
    present = require_held(connection, row)
    mine = find_session(connection, row.thread_id)
    flags = {} if mine is None else dict(mine.flags)
    # Permissions are those that the lead's session has now.
    flags |= {key: parent.flags.get(key) for key in _KEPT_FLAGS}
    before = phases_of(connection, row.lead, row.number)
    for phase in before:
        if phase.state == "waiting":
            update_phase(connection, phase, state="merged")  # its fork goes on with this one
    number = last_turn_number(connection, row.thread_id) + 1
    turn = TurnRow(turn_id=new_id("t"), thread_id=row.thread_id, n=number, kind=KIND)
    insert_turn(connection, turn)
    if text:
        insert_input(connection, _input(row, turn.turn_id, text))
    phase = PhaseRow(lead=row.lead, number=row.number, n=len(before) + 1, turn_id=turn.turn_id, fork=fork)
    insert_phase(connection, phase)
    update_member(connection, present, status="working")
    update_session(
        connection, row.thread_id, branch_id=fork, status="queued", flags=flags,
        auto_approve=parent.auto_approve, thinking_effort=parent.thinking_effort,
    )  # fmt: skip
    return phase


def _input(row: MemberRow, turn_id: str, text: str) -> InboxRow:
    content = [{"type": "text", "text": text}]
    return InboxRow(
        id=new_id("i"),
        thread_id=row.thread_id,
        door=KIND,
        dedupe_key=turn_id,
        kind="message",
        sender=msgspec.json.encode({"id": None, "name": LEAD, "door": KIND}).decode(),
        body=msgspec.json.encode({"content": content}).decode(),
        turn_id=turn_id,
    )


def require_held(connection: Connection, row: MemberRow) -> MemberRow:
    """Return a teammate as it is now; raises LeaseLost when it is not this process's to go on with."""
    present = member_at(connection, row.thread_id)
    if present is None or not present.lives or present.holder != row.holder:
        raise LeaseLost(f"teammate {row.name} has ended, or another process keeps it going")
    return present


def open_phase(connection: Connection, row: MemberRow) -> PhaseRow | None:
    """Return the phase of a teammate whose changes are neither merged nor kept, None without one."""
    found = [p for p in phases_of(connection, row.lead, row.number) if p.state in UNSETTLED]
    return found[-1] if found else None


def set_status(connection: Connection, row: MemberRow, status: str) -> MemberRow:
    """Say that a teammate is idle, works or has ended; one that ends leaves nothing open.

    A shutdown that was asked for is `approved` by who stops by itself, and `void` for who fails.
    """
    lock_session(connection, row.lead)
    ended = status not in ("working", "idle")
    for request in requests_of(connection, row.lead, row.number) if ended else []:
        agreed = request.kind == "shutdown" and status == "shutdown"
        close_request(connection, request, "approved" if agreed else "void", request.detail or "it has ended")
    update_session(connection, row.thread_id, status="idle" if not ended else status)
    return update_member(connection, row, status=status, **({"ended_at": now_iso()} if ended else {}))


# ---------------------------------------------------------------- usage


def count_usage(connection: Connection, lead: str, turn_id: str) -> Usage | None:
    """Return what ended phases of a lead's teammates used, now part of a turn of it; None for nothing."""
    found = uncounted_usages(connection, lead)
    if not found:
        return None
    count_phases(connection, lead, turn_id)
    total = Usage()
    for text in found:
        total += decode(text, Usage).as_subagents
    return total
