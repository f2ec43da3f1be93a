"""Whether somebody still works in a session, so that what it holds open must stay open (SV-53).

Here: that question, asked of the database. Not here: when it is asked, what is released.
"""

from sqlalchemy import Connection

from bowerbird.store.rows.leases import lease_is_free
from bowerbird.store.rows.teams import members_of
from bowerbird.store.rows.turns import turns_of


def has_open_work(connection: Connection, thread_id: str) -> bool:
    """Whether a turn is queued or driven, or a teammate lives, whose changes are merged into the branch.

    A turn that waits for a person, held by nobody, is no work.
    """
    if turns_of(connection, thread_id, ("queued", "running")):
        return True
    if any(member.lives for member in members_of(connection, thread_id)):
        return True
    return not lease_is_free(connection, thread_id)
