"""A part: one feature of sessions, as the service and the turns of its sessions see it (R2).

Here: what a part can do, each of it optional. Not here: any part (`app/parts.py` lists them), the order of
a turn (`turn/attempt.py`), who calls what (`service.py`).

A service is given its parts when it is made and goes through them in their order; what ends goes through them
in reverse. So a part may build on what those before it gave a turn, and outlives those behind it.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection

from bowerbird.agent.turn import TurnRun
from bowerbird.core.usage import Usage
from bowerbird.sessions.turn_maker import TurnContext, TurnMaker
from bowerbird.store.rows.sessions import SessionRow
from bowerbird.store.rows.turns import TurnRow

if TYPE_CHECKING:
    from bowerbird.sessions.turn.end_transaction import Ending
    from bowerbird.tools import Tool

NOTHING = Usage()
Delete = Callable[[str], Awaitable[None]]  # tombstones a session and puts its branch into the trash


class SessionPart:
    """One feature of sessions; every hook does nothing until a part says what.

    Example:
        class Greeting(SessionPart):
            async def join(self, run, context):
                return replace(run, system=(*run.system, "Greet people by name."))

        SessionService(store, maker, parts=lambda service: (Greeting(),))
    """

    # ------------------------------------------------------------ what it gives

    def tools(self, session: SessionRow | None) -> "Sequence[Tool]":
        """Return the tools that it adds to a session's turns, for lists; None = a session like most."""
        del session
        return ()

    async def prepare(self, context: TurnContext) -> TurnContext:
        """Return what a turn's run is made of, as it is to be for this turn alone; raises like `join`."""
        return context

    async def join(self, run: TurnRun, context: TurnContext) -> TurnRun:
        """Return a turn's run with what this part adds: tools, prompt, notices, limits.

        Raises:
            BowerbirdError: the turn fails with that message and can be resumed.
        """
        del context
        return run

    # ------------------------------------------------------------ what a turn's total counts

    async def used_before(self, turn: TurnRow) -> Usage:
        """Return what others used for a turn in an attempt of it that a dead process made."""
        del turn
        return NOTHING

    def turn_ending(self, connection: Connection, turn: TurnRow) -> Usage | None:
        """Return what others used since the session's last turn; a part of the end's transaction."""
        del connection, turn

    def ended(self, connection: Connection, session: SessionRow, turn: TurnRow, ending: "Ending") -> None:
        """Record what a turn's end means for this part; a part of the end's transaction."""

    # ------------------------------------------------------------ life of the process

    async def start(self, *, drives_all: bool) -> None:
        """Begin what runs beside turns; turns may begin already.

        Args:
            drives_all: this process runs the turns of every session, as a server does.
        """

    async def adopt(self) -> None:
        """Go on with what is this process's to run since it drives one more session."""

    async def stop(self, grace_s: float) -> None:
        """Begin nothing more, and bring what runs to a good place within the grace; may be called again."""

    async def aclose(self) -> None:
        """Close what it holds; no turn runs any more."""

    # ------------------------------------------------------------ what happens to sessions

    async def turn_ended(self, branch_id: str) -> None:
        """Keep, or end, what a turn had on its branch; what cannot be kept raises nothing."""

    async def rolled_back(self, branch_id: str) -> None:
        """Forget what was known of a state that the branch was taken back from."""

    async def landing(self, session: SessionRow, paths: Sequence[str]) -> None:
        """Hear which changes of a session are about to land; raises LandingRefused to forbid it."""

    async def commit_message(self, session: SessionRow, patch: Callable[[], str]) -> str:
        """Return a message for the commit of a patch, for a person who gave none; empty = no proposal.

        Args:
            patch: gives it; it blocks.
        """
        del session, patch
        return ""

    async def cancel(self, thread_id: str) -> bool:
        """End what runs for a session beside its turn, because a person cancelled; whether there was any."""
        del thread_id
        return False

    async def changing(self, thread_id: str, changes: Mapping[str, Any]) -> None:
        """Act on changed settings of a session, before anybody is told of them."""

    async def deleting(self, session: SessionRow) -> None:
        """End what runs for a session that is about to be deleted."""

    async def bury(self, thread_id: str, delete: Delete) -> None:
        """Delete what belongs to a deleted session, other sessions by `delete`."""


async def run_of(maker: TurnMaker, parts: Sequence[SessionPart], context: TurnContext) -> TurnRun:
    """Return a turn's run with what every part makes of it; raises BowerbirdError, see `SessionPart.join`."""
    for part in parts:
        context = await part.prepare(context)
    run = await maker.make(context)
    for part in parts:
        run = await part.join(run, context)
    return run
