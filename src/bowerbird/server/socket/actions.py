"""What a client's command does (SV-37 … SV-39, SV-47 … SV-48).

Here: commands to calls of the session service, and what is answered. Not here: their form
(`core/wire/commands.py`), connections, what viewers are shown of it (events come back through the room).
"""

from typing import TYPE_CHECKING, cast

from msgspec import UNSET

from bowerbird.core import wire
from bowerbird.core.errors import BowerbirdError, NoPendingRequest, QueueFull, SessionError
from bowerbird.core.threads import to_thread
from bowerbird.core.wire.commands import (
    Background,
    Cancel,
    CancelBackground,
    Interrupt,
    Ping,
    PlanApproval,
    Resume,
    Say,
    Steer,
    Toggle,
    ToolApprovalResponse,
)
from bowerbird.server.common.errors import problem_of
from bowerbird.server.socket.frames import placed
from bowerbird.server.socket.request_frames import error as error_frame

if TYPE_CHECKING:
    from bowerbird.core.wire import ClientFrame, ServerFrame
    from bowerbird.core.wire.rows import BackgroundRun
    from bowerbird.server.access.overload import Overload
    from bowerbird.server.common.context import ServerContext
    from bowerbird.server.socket.hub import Seat
    from bowerbird.server.socket.viewer import Viewer

DOOR = "web"

Answer = ToolApprovalResponse | PlanApproval


class Actions:
    """Carries out the commands of one viewer.

    Args:
        context: the services. seat: the conversation. viewer: whose commands they are.
        overload: says when there is no room for new work.
    """

    def __init__(
        self, context: "ServerContext", seat: "Seat", viewer: "Viewer", overload: "Overload"
    ) -> None:
        self._context = context
        self._seat = seat
        self._viewer = viewer
        self._overload = overload
        self._thread = seat.room.thread_id

    async def carry_out(self, command: "ClientFrame") -> None:
        """Do it; what goes wrong is said to this viewer, and nothing else changes."""
        if not isinstance(command, Ping) and not self._viewer.caller.may("user"):
            self.refuse("this needs the role user", "forbidden")
            return
        reason = self._overload.reason() if isinstance(command, Say | Resume) else None
        if reason is not None:
            self.refuse(f"{reason}; try again", "overloaded", retryable=True)
            return
        try:
            if isinstance(command, Say):
                await self._submit(command)
            else:
                await self._once(command)
        except QueueFull as error:
            self.refuse(str(error), "overloaded", retryable=True)
        except BowerbirdError as error:
            self._explain(error)

    def refuse(self, message: str, code: str, *, retryable: bool = False) -> None:
        """Tell this viewer that something was not done."""
        self._put(error_frame(message, code, retryable=retryable))

    # ------------------------------------------------------------ kinds of commands

    async def _submit(self, command: Say) -> None:
        caller, steers = self._viewer.caller, isinstance(command, Steer)
        sender = {"id": caller.user_id or None, "name": caller.name or None, "door": DOOR}
        receipt = await self._context.sessions.submit(
            self._thread,
            {"content": command.content},
            door=DOOR,
            sender=sender,
            dedupe_key=f"{self._thread}:{command.id}" if command.id else None,
            kind="interrupt" if isinstance(command, Interrupt) else "steer" if steers else "message",
        )
        if not receipt.duplicate:
            self._context.metrics.turns.labels("socket").inc()
            kept = self._viewer.on_disconnect == "continue"
            self._seat.attendance.submitted(receipt.turn_id, receipt.position, kept=kept, steers=steers)
        if command.id:
            behind = UNSET if receipt.open_request is None else receipt.open_request
            accepted = wire.Accepted(command.id, receipt.position, receipt.duplicate, behind)
            self._put(accepted, receipt.turn_id)

    async def _once(self, command: "ClientFrame") -> None:
        """Carry out a command that is no input; its id makes a repeat do nothing."""
        seen, known = self._seat.seen, command.id
        if known is not None and known in seen:
            self._put(wire.Accepted(known, 0, True), seen[known])
            return
        turn_id = await self._do(command)
        if known is not None:
            self._seat.remember(known, turn_id)
            self._put(wire.Accepted(known, 0, False), turn_id)

    async def _do(self, command: "ClientFrame") -> str | None:
        sessions, room = self._context.sessions, self._seat.room
        match command:
            case Ping():
                if self._viewer.v2:
                    self._put(wire.Pong())
                return None
            case Cancel():
                return await self._cancel()
            case Resume():
                turn = await sessions.resume(thread_id=self._thread)
                kept = self._viewer.on_disconnect == "continue"
                self._seat.attendance.submitted(turn.turn_id, 0, kept=kept)
                return turn.turn_id
            case Background() | CancelBackground():
                await self._background(command)
            case Toggle():
                await sessions.set_flags(self._thread, {command.flag: command.enabled})
            case ToolApprovalResponse() | PlanApproval():
                running = room.translator.running
                await self._answer(command)
                return running
            case _:
                raise AssertionError(f"nothing does what {command!r} asks")
        return room.translator.running

    async def _background(self, command: Background | CancelBackground) -> None:
        """Cancel a background command, if one is named, and tell this viewer of all of them."""
        context = self._context
        branch = (await context.sessions.row(self._thread)).branch_id
        if branch is not None and isinstance(command, CancelBackground):
            await context.sandboxes.cancel_background(branch, command.task_id)
        runs = [] if branch is None else await to_thread(context.sandboxes.background_runs, branch)
        self._put(wire.BackgroundRuns(cast("list[BackgroundRun]", runs)))

    async def _answer(self, command: Answer) -> None:
        translator, attendance = self._seat.room.translator, self._seat.attendance
        request_id = command.request_id or self._oldest_below(command)
        asked = translator.requests.get(request_id) if request_id else None
        if asked is None and request_id is None and len(translator.requests) == 1:
            asked = next(iter(translator.requests.values()))
        if asked is not None and (asked.kind == "plan") != isinstance(command, PlanApproval):
            # Approving a tool approves no plan.
            raise NoPendingRequest("no such question is pending; nothing was changed")
        below = translator.asked_by.get(request_id) if request_id else None
        caller = self._viewer.caller
        await self._context.sessions.answer(
            request_id,
            command.decision,
            thread_id=below or self._thread,
            feedback=command.feedback,
            calls=command.calls if isinstance(command, ToolApprovalResponse) else {},
            by=caller.name or caller.user_id or "user",
            door=DOOR,
            authority=caller.authority,
        )
        if below is not None and request_id is not None:
            self._seat.answered.add(request_id)
        elif attendance.running is None:
            attendance.continued()

    def _oldest_below(self, command: Answer) -> str | None:
        """Return which question an answer without `request_id` means when subagents ask, else None.

        Several may ask at once; a client that knows no ids answers them in the order it was asked.
        """
        translator, answered = self._seat.room.translator, self._seat.answered
        answered &= translator.requests.keys()
        if isinstance(command, PlanApproval) or len(translator.requests) > len(translator.asked_by):
            return None  # the conversation's own question comes first
        return next((request_id for request_id in translator.asked_by if request_id not in answered), None)

    async def _cancel(self) -> str | None:
        try:
            return await self._context.sessions.cancel(self._thread)
        except SessionError as error:
            raise NotRunning(str(error)) from error

    # ------------------------------------------------------------ answers

    def _explain(self, error: BowerbirdError) -> None:
        found = problem_of(error)
        if isinstance(error, NotRunning) or found is None:
            self.refuse(str(error), error.code)
            return
        if found.status_code == 422:
            self.refuse(str(error), "bad_request")
            return
        retryable = found.status_code in (503, 507)
        self.refuse(str(found.detail), found.code, retryable=retryable)

    def _put(self, frame: "ServerFrame", turn_id: str | None = None) -> None:
        self._viewer.put(placed(frame, self._viewer.sent, turn_id))


class NotRunning(SessionError):
    """Nothing runs that could be stopped."""
