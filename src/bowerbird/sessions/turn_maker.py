"""What the driver asks of the composition root: a turn's model, tools, instructions and limits.

Here: that one protocol. Not here: any implementation (`app`), what features add to a turn (`parts.py`).
"""

from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from bowerbird.agent.turn import TurnRun
from bowerbird.store.rows.sessions import SessionRow
from bowerbird.store.rows.turns import TurnRow

if TYPE_CHECKING:
    from bowerbird.sessions.turn.approver_and_inbox import DoorInbox
    from bowerbird.workspace import Branch


class TurnContext(msgspec.Struct, frozen=True):
    """A turn about to be driven.

    Attributes:
        session, turn: their rows.
        branch: the session's branch, bound to the turn.
        changes: settings changed earlier in this turn (`enable_plan_mode` …); they win over the row's.
        tier: the model tier switched to earlier in this turn, "" for the session's.
        sender: who asked: `id`, `name`, `door`.
        inbox: what people send while the turn runs.
    """

    session: SessionRow
    turn: TurnRow
    branch: "Branch"
    inbox: "DoorInbox"
    changes: dict[str, Any] = msgspec.field(default_factory=dict[str, Any])
    tier: str = ""
    sender: dict[str, Any] = msgspec.field(default_factory=dict[str, Any])

    @property
    def flags(self) -> dict[str, Any]:
        """The session's flags as they are in this turn."""
        return {**self.session.flags, **self.changes}


class TurnMaker(Protocol):
    """Makes a turn's `TurnRun` from settings and files, anew for each attempt."""

    def model_of(self, session: SessionRow) -> str:
        """Return `provider:model` that will answer in `session`, "" when none is known; no I/O."""
        ...

    async def make(self, context: TurnContext) -> TurnRun:
        """Return model, tools, system, limits, policy, mode, transcripts and the like.

        The driver fills in what is the session's: `history`, `used`, `answers`, `approver`,
        `inbox`, `budget` (unless given), `stop`, `session`, `turn`.

        Raises:
            BowerbirdError: say no model is configured; the turn fails with that message and can be
                resumed.
        """
        ...
