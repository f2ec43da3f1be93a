"""What a chat shows of the rest of the house: models, skills, the schedule.

Here: that protocol. Not here: who answers (`app/features/channels.py`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from bowerbird.store.rows.sessions import SessionRow


@dataclass(frozen=True, slots=True)
class SkillFact:
    """One skill; `hidden` says why the agent does not see it."""

    name: str
    about: str
    hidden: str = ""


class Facts(Protocol):
    """Answers of the process that runs the channel."""

    def model(self, session: SessionRow | None) -> str:
        """Return the model that a session runs on, or a new one would."""
        ...

    def tiers(self) -> Sequence[str]:
        """Return the tiers that there are."""
        ...

    async def skills(self, session: SessionRow | None) -> Sequence[SkillFact]:
        """Return the skills of a session's branch, sorted."""
        ...
