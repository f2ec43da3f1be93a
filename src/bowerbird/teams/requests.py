"""Requests of a team, each change inside a given transaction (DE-62 … DE-64).

Here: asking, answering, expiring, as functions of a connection: an error changes nothing. Not here: which
answer belongs to which request (`request_rules.py`), mail and teammates (`changes.py`).
"""

import os
from datetime import UTC, datetime, timedelta

import msgspec
from sqlalchemy import Connection

from bowerbird.core.errors import InvalidArgument
from bowerbird.core.timestamps import to_iso
from bowerbird.store.rows.sessions import lock_session
from bowerbird.store.rows.team_mail import RequestRow, close_request, insert_request, requests_of
from bowerbird.store.rows.teams import MemberRow, members_of
from bowerbird.teams.changes import Person, post, put, teammate, tell
from bowerbird.teams.request_rules import Kind, answered, decided, may_force
from bowerbird.teams.rules import LEAD, TeamRules, checked_content


def ask_shutdown(
    connection: Connection, rules: TeamRules, lead: Person, name: str, reason: str = ""
) -> RequestRow:
    """Ask a teammate to stop; one that is open already is returned."""
    lock_session(connection, lead.lead)
    row = teammate(connection, lead.lead, name)
    known = requests_of(connection, lead.lead, row.number)
    pending = next((r for r in known if r.kind == "shutdown" and r.status == "pending"), None)
    if pending is not None:
        return pending
    request = _request(connection, row, "shutdown", rules.shutdown_s, reason)
    text = reason or "Please finish what you are doing and shut down. Answer with shutdown_response."
    to = Person(lead.lead, row.name, row.thread_id, row)
    extra = {"request_id": request.request_id}
    put(connection, to, "shutdown_request", lead.name, checked_content(text), extra)  # however full its box
    return request


def force_shutdown(connection: Connection, lead: Person, name: str) -> MemberRow:
    """Return a teammate that may be cancelled now; raises InvalidArgument when it was not asked before."""
    lock_session(connection, lead.lead)
    row = teammate(connection, lead.lead, name)
    may_force(requests_of(connection, lead.lead, row.number), row.name)
    return row


def answer_shutdown(
    connection: Connection, sender: Person, request_id: str, approve: bool, reason: str
) -> RequestRow:
    """Take a teammate's answer to a shutdown request and tell the lead."""
    row = _own(sender)
    request = _decide(connection, sender, "shutdown", request_id, row.number, approve, reason)
    text = reason or ("I shut down." if approve else "I go on working.")
    extra = {"request_id": request.request_id, "approve": approve, "reason": reason}
    put(connection, _lead(sender), "shutdown_response", sender.name, checked_content(text), extra)
    return request


def ask_plan(connection: Connection, rules: TeamRules, sender: Person, plan: str) -> RequestRow:
    """Hand a teammate's plan to the lead."""
    row = _own(sender)
    checked_content(plan)
    lock_session(connection, sender.lead)
    request = _request(connection, row, "plan", rules.plan_s, plan)
    extra = {"request_id": request.request_id}
    post(connection, rules, sender, _lead(sender), "plan_approval_request", plan, extra)
    return request


def review_plan(
    connection: Connection,
    lead: Person,
    request_id: str,
    *,
    approve: bool,
    feedback: str,
    to: str = "",
) -> RequestRow:
    """Answer a teammate's plan and tell it.

    Args:
        to: only a request of this teammate; "" = of anybody.
    """
    number = teammate(connection, lead.lead, to).number if to else None
    request = _decide(connection, lead, "plan", request_id, number, approve, feedback)
    row = next(row for row in members_of(connection, lead.lead) if row.number == request.number)
    verdict = "Your plan is approved: carry it out." if approve else "Your plan is rejected: revise it."
    text = f"{verdict} {feedback}".strip()
    extra = {"request_id": request.request_id, "approve": approve, "feedback": feedback}
    reader = Person(lead.lead, row.name, row.thread_id, row)
    put(connection, reader, "plan_approval_response", lead.name, text, extra)
    return request


def expire(connection: Connection, request: RequestRow) -> bool:
    """Close a request that nobody answered in time and tell those concerned; False when it is decided."""
    lock_session(connection, request.lead)
    if not close_request(connection, request, "expired"):
        return False
    row = next(row for row in members_of(connection, request.lead) if row.number == request.number)
    extra = {"request_id": request.request_id, "status": "expired"}
    lead = Person(request.lead, LEAD, request.lead)
    if request.kind == "shutdown":
        text = f"{row.name} did not answer shutdown request {request.request_id}; force=true cancels it."
        tell(connection, lead, text, extra)
        return True
    tell(connection, lead, f"The plan request {request.request_id} of {row.name} expired unanswered.", extra)
    text = f"Your plan request {request.request_id} expired unanswered; ask again, or go on without it."
    tell(connection, Person(request.lead, row.name, row.thread_id, row), text, extra)
    return True


def waits_for_plan(connection: Connection, row: MemberRow) -> bool:
    """Whether a plan of a teammate waits for an answer."""
    found = requests_of(connection, row.lead, row.number)
    return any(r.kind == "plan" and r.status == "pending" for r in found)


def leaves(connection: Connection, row: MemberRow) -> bool:
    """Whether a teammate has agreed to a shutdown."""
    found = requests_of(connection, row.lead, row.number)
    return any(r.kind == "shutdown" and r.status == "approved" for r in found)


def _request(connection: Connection, row: MemberRow, kind: str, seconds: float, detail: str) -> RequestRow:
    known = {request.request_id for request in requests_of(connection, row.lead)}
    request_id = os.urandom(4).hex()
    while request_id in known:
        request_id = os.urandom(4).hex()
    until = to_iso(datetime.now(UTC) + timedelta(seconds=seconds))
    request = RequestRow(
        lead=row.lead, request_id=request_id, kind=kind, number=row.number, expires_at=until, detail=detail
    )
    insert_request(connection, request)
    return request


def _decide(
    connection: Connection,
    by: Person,
    kind: Kind,
    request_id: str,
    number: int | None,
    approve: bool,
    detail: str,
) -> RequestRow:
    lock_session(connection, by.lead)
    found = answered(requests_of(connection, by.lead, number), kind, request_id)
    status = decided(found.status, approve)
    close_request(connection, found, status, detail or None)
    return msgspec.structs.replace(found, status=status)


def _own(sender: Person) -> MemberRow:
    if sender.member is None:
        raise InvalidArgument("only a teammate sends this")
    return sender.member


def _lead(sender: Person) -> Person:
    return Person(sender.lead, LEAD, sender.lead)
