"""Rows of `teammates` and `team_phases`: who works for a session, in which turns (DE-47, DE-56).

Here: reading and writing those rows inside a given transaction. Not here: mail and requests
(`team_mail.py`), what may be changed (`teams/rules.py`), teammates' own sessions (`sessions.py`).

Changes of one team begin with `threads.lock_session` of its lead, so they run one after another.
"""

from collections.abc import Collection
from typing import Any

import msgspec
from sqlalchemy import BindParameter, Connection, bindparam, select

from bowerbird.store.sql.tables import sessions, turns
from bowerbird.store.sql.team_tables import team_phases, teammates

LIVING = ("working", "idle")
UNSETTLED = ("working", "waiting")  # phases whose changes nobody has merged or put aside yet


class MemberRow(msgspec.Struct, frozen=True, kw_only=True):
    """One teammate.

    Attributes:
        number: counted up per lead, never used again; a name can be.
        thread_id: its own session. holder: the executor that keeps it going.
    """

    lead: str
    number: int
    name: str
    role: str
    thread_id: str
    status: str = "working"
    holder: str | None = None
    created_at: str
    ended_at: str | None = None

    @property
    def lives(self) -> bool:
        """Whether it works or waits for work."""
        return self.status in LIVING


class PhaseRow(msgspec.Struct, frozen=True, kw_only=True):
    """One turn of a teammate.

    Attributes:
        n: counted up per teammate, from 1. fork: the branch it works on.
        state: `working`; `waiting` for the answer to its plan; `merged`; `kept` apart.
        counted_in: the lead's turn whose usage includes it.
    """

    lead: str
    number: int
    n: int
    turn_id: str
    fork: str
    state: str = "working"
    ended_at: str | None = None
    counted_in: str | None = None


# ---------------------------------------------------------------- teammates


def members_of(connection: Connection, lead: str) -> list[MemberRow]:
    """Return the teammates of a session in the order of their numbers, ended ones too."""
    statement = select(teammates).where(teammates.c.lead == lead).order_by(teammates.c.number)
    return [MemberRow(**row) for row in connection.execute(statement).mappings()]


def member_at(connection: Connection, thread_id: str) -> MemberRow | None:
    """Return the teammate whose session this is, None when it is nobody's."""
    row = connection.execute(select(teammates).where(teammates.c.thread_id == thread_id)).mappings().first()
    return None if row is None else MemberRow(**row)


def living_members(connection: Connection) -> list[MemberRow]:
    """Return every living teammate of a session that was not deleted."""
    statement = (
        select(teammates)
        .join(sessions, sessions.c.thread_id == teammates.c.lead)
        .where(teammates.c.status.in_(LIVING), sessions.c.deleted_at.is_(None))
        .order_by(teammates.c.lead, teammates.c.number)
    )
    return [MemberRow(**row) for row in connection.execute(statement).mappings()]


def insert_member(connection: Connection, row: MemberRow) -> None:
    """Add a teammate; its session exists."""
    connection.execute(teammates.insert().values(**msgspec.structs.asdict(row)))


def update_member(connection: Connection, row: MemberRow, **values: Any) -> MemberRow:
    """Set columns of a teammate; return it as it is then."""
    here = (teammates.c.lead == row.lead) & (teammates.c.number == row.number)
    connection.execute(teammates.update().where(here).values(**values))
    return msgspec.structs.replace(row, **values)


def take_member(connection: Connection, row: MemberRow, holder: str, dead: Collection[str]) -> bool:
    """Become who keeps a living teammate going; False when another living process does.

    Args:
        dead: of all holders, those that are gone; a holder may be taken over only then.
    """
    free = teammates.c.holder.is_(None) | (teammates.c.holder == holder)
    here = (teammates.c.lead == row.lead) & (teammates.c.number == row.number)
    here &= teammates.c.status.in_(LIVING) & (free | teammates.c.holder.in_(list(dead)))
    return connection.execute(teammates.update().where(here).values(holder=holder)).rowcount > 0


# ---------------------------------------------------------------- phases


def phases_of(connection: Connection, lead: str, number: int | None = None) -> list[PhaseRow]:
    """Return the phases of a team, or of one teammate, oldest first."""
    statement = select(team_phases).where(team_phases.c.lead == lead)
    if number is not None:
        statement = statement.where(team_phases.c.number == number)
    rows = connection.execute(statement.order_by(team_phases.c.number, team_phases.c.n)).mappings()
    return [PhaseRow(**row) for row in rows]


def insert_phase(connection: Connection, row: PhaseRow) -> None:
    """Add a phase."""
    connection.execute(team_phases.insert().values(**msgspec.structs.asdict(row)))


def update_phase(connection: Connection, row: PhaseRow, **values: Any) -> None:
    """Set columns of a phase."""
    here = (
        (team_phases.c.lead == row.lead) & (team_phases.c.number == row.number) & (team_phases.c.n == row.n)
    )
    connection.execute(team_phases.update().where(here).values(**values))


_LEAD: BindParameter[str] = bindparam("b_lead")
_IS_UNCOUNTED = (
    team_phases.c.lead == _LEAD,
    team_phases.c.counted_in.is_(None),
    team_phases.c.ended_at.is_not(None),
)
_UNCOUNTED = (
    select(turns.c.usage)
    .join(team_phases, team_phases.c.turn_id == turns.c.turn_id)
    .where(*_IS_UNCOUNTED, turns.c.usage.is_not(None))
)


def uncounted_usages(connection: Connection, lead: str) -> list[str]:
    """Return the usage, as JSON text, of ended phases that no turn of the lead includes yet."""
    return list(connection.scalars(_UNCOUNTED, {"b_lead": lead}))


def count_phases(connection: Connection, lead: str, turn_id: str) -> None:
    """Say that a turn of the lead includes what `uncounted_usages` returned."""
    statement = team_phases.update().where(*_IS_UNCOUNTED).values(counted_in=turn_id)
    connection.execute(statement, {"b_lead": lead})
