"""Who proposes the messages of commits: the small model of the settings (UI-78).

Here: that binding. Not here: the question and what is taken of the answer (`sessions/commit_words.py`).
"""

from typing import TYPE_CHECKING

from bowerbird.app.model_imports import import_for
from bowerbird.sessions.commit_words import CommitWords

if TYPE_CHECKING:
    from bowerbird.app.ground import Ground
    from bowerbird.models.protocol import Model
    from bowerbird.sessions.service import SessionService


def commit_words(ground: "Ground", service: "SessionService") -> CommitWords:
    """Return the part; it asks `agent.compact_model`, and nobody where that is not set."""
    maker = ground.maker

    async def opens() -> "Model | None":
        name = maker.settings.agent.compact_model
        if not name:
            return None
        await import_for(name, maker.pool.settings)
        return maker.model_named(name)

    return CommitWords(ground.store, service.settings, opens)
