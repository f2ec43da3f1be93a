"""Turns that a lead's mail starts (DE-65).

Here: that transaction. Not here: the rule (`teams/rules.py`), who drives the turn.
"""

from sqlalchemy import Connection

from bowerbird.core.ids import new_id
from bowerbird.sessions.turn.background_notices import DRIVEN_BY_OTHERS, turns_in_a_row
from bowerbird.store.rows.sessions import find_session, lock_session, update_session
from bowerbird.store.rows.team_mail import unread
from bowerbird.store.rows.turns import ENDED, OPEN, TurnRow, insert_turn, last_turn_number, turns_of
from bowerbird.teams.rules import QUIET, TeamRules, wakes_lead

KIND = "inbox"


def lead_turn(connection: Connection, rules: TeamRules, lead: str) -> TurnRow | None:
    """Queue a turn for a lead's unread messages; None when it is not idle, or may not be woken."""
    session = find_session(connection, lead)
    if session is None or session.kind in DRIVEN_BY_OTHERS or not session.flags.get("enable_teams"):
        return None
    lock_session(connection, lead)
    turns = turns_of(connection, lead)
    ended = [turn for turn in turns if turn.state in ENDED and turn.started_at is not None]
    wakes = wakes_lead(
        allowed=rules.wake_lead,
        idle=not any(turn.state in OPEN for turn in turns),
        unread=sum(not message.extra.get(QUIET) for message in unread(connection, lead)),
        last=ended[-1].state if ended else None,
        in_a_row=turns_in_a_row(connection, turns),
        most=rules.wakes,
    )
    if not wakes:
        return None
    turn = TurnRow(turn_id=new_id("t"), thread_id=lead, n=last_turn_number(connection, lead) + 1, kind=KIND)
    insert_turn(connection, turn)
    update_session(connection, lead, status="queued")
    return turn
