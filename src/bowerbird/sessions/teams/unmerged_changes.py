"""Changes of a teammate that were not merged, under a handle for `merge_subagent` (DE-56).

Here: the record that makes a phase's fork a subagent's. Not here: when that is due (`teammate.py`).
"""

import msgspec
from sqlalchemy import Connection

from bowerbird.core.forms import decode
from bowerbird.core.timestamps import now_iso
from bowerbird.sessions.subagents.records import KIND, row_of
from bowerbird.store.rows.sessions import get_session, insert_session
from bowerbird.store.rows.subagents import insert_subagents, next_subagent, subagents_of
from bowerbird.store.rows.teams import MemberRow, PhaseRow
from bowerbird.subagents.records import Child


def keep_apart(connection: Connection, row: MemberRow, phase: PhaseRow) -> str:
    """Make a phase's fork a subagent of the lead, which has ended; return its handle.

    A phase that has one already keeps it.
    """
    for known in subagents_of(connection, row.lead):
        child = decode(known.body, Child)
        if child.turn == phase.turn_id:
            return child.handle
    lead = get_session(connection, row.lead)
    number = next_subagent(connection, row.lead)
    now = now_iso()
    child = Child(
        parent=row.lead,
        number=number,
        session=f"{row.lead}.sub{number}",
        root=row.lead,
        root_turn=phase.turn_id,
        turn=phase.turn_id,
        call="",
        index=0,
        name=row.name,
        parent_branch=lead.branch_id or "",
        fork=phase.fork,
        snapshot="",
        task=f"changes of the teammate {row.name} ({row.role})",
        agent_type="general",
        depth=1,
        created=now,
        state="finished",
        result="",
        ended=now,
    )
    insert_session(
        connection,
        msgspec.structs.replace(
            lead,
            thread_id=child.session,
            kind=KIND,
            counter=0,
            title=child.task[:100],
            flags={},
            auto_approve=False,
            branch_id=phase.fork,
            status="finished",
            last_seq=0,
            parent_thread_id=None,
            parent_seq=None,
            created_at=now,
            updated_at=now,
            changed_files=0,
            messages=0,
            bytes=0,
        ),
    )
    insert_subagents(connection, [row_of(child)])
    return child.handle
