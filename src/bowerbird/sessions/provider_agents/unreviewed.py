"""What a run without review changed, landed at its end (PR-21).

It works on a branch like every run: so its changes arrive checked, whole or not at all, on record, and one
command takes them back. What a person must accept by name, what conflicts and what git did stays on the
branch. Here: that landing. Not here: whether such a run is allowed (the registry), `sessions/review`.
"""

from typing import TYPE_CHECKING, Any

from bowerbird.core.threads import in_thread, to_thread
from bowerbird.sessions.live.landing_watch import watched
from bowerbird.sessions.review import outcome_of
from bowerbird.store.journal.outcomes import settle
from bowerbird.store.rows.sessions import get_session

if TYPE_CHECKING:
    from bowerbird.sessions.branches.branches import Branches
    from bowerbird.sessions.service import SessionService

DOOR = "agents"
MOST_NAMED = 200


async def land_unreviewed(
    service: "SessionService", branches: "Branches", thread_id: str, *, actor: str
) -> dict[str, Any]:
    """Land a session's changes as far as they need nobody's word.

    Returns:
        `landing`: its id, None where nothing landed. `paths`: what landed. `stayed`: what did not, each with
        `path` and `reason`; at most 200 of each.

    Raises:
        BowerbirdError, OSError: nothing landed; the message says why.
    """
    branch = await service.branch(thread_id)
    await branches.require_quiet(branch.id)
    row = await service.store.read(lambda c: get_session(c, thread_id))
    changed = await to_thread(lambda: branch.changes(ignored=False).paths)
    if not changed:
        return {"landing": None, "paths": [], "stayed": []}
    for part in service.parts:
        await part.landing(row, changed)
    async with watched(service.live, thread_id) as told:
        landing = await in_thread(
            lambda: branch.land(
                partial=True, automatic=True, commits="never", session=thread_id, actor=actor, door=DOOR,
                told=told,
            )
        )  # fmt: skip
    refused = {entry.path: entry.reason for entry in landing.refused}
    left = await to_thread(lambda: branch.changes(ignored=False).paths)
    await service.store.write(lambda c: settle(c, thread_id, outcome_of("land", left, landing)))
    held = "it needs a person's word"
    return {
        "landing": landing.id if landing.entries else None,
        "paths": [entry.path.lstrip("/") for entry in landing.entries[:MOST_NAMED]],
        "stayed": [
            {"path": path.lstrip("/"), "reason": refused.get(path, held)} for path in left[:MOST_NAMED]
        ],
    }
