"""A turn as a value: what is stored of it, less what only the store or only a door needs.

Here: the fields that its row, every door and every answer over HTTP have; a new one is added here, to the
table and to a migration. Not here: SQL (`turns.py`): this is imported where no database is.
"""

import msgspec


class Turn(msgspec.Struct, frozen=True, kw_only=True):
    """One turn.

    Attributes:
        n: its number in the session. kind: `user`, or what began it.
        stop_reason: why it ended, or why it waits without a process.
        cost: USD, None = not known. snapshot_id: of the branch at its end.
    """

    turn_id: str
    thread_id: str
    n: int
    kind: str = "user"
    state: str = "queued"
    waiting_for: str | None = None
    attempt: int = 0
    stop_reason: str | None = None
    cost: float | None = None
    snapshot_id: str | None = None
    started_at: str | None = None
    ended_at: str | None = None
