"""Schedules as a part of a process's sessions: what doors ask for, what turns are given (AS-29 … AS-40).

Here: that part. Not here: when something is due (`clock.py`), the changes (`changes.py`), tools' texts
(`tools.py`).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from sqlalchemy import Connection

from bowerbird.core.threads import to_thread
from bowerbird.scheduler.changes import Sees, add_task, cancel_task, change_task, get_task
from bowerbird.scheduler.clock import Clock
from bowerbird.scheduler.endings import NO_REPLY, settle
from bowerbird.scheduler.firing import KIND, fire_now
from bowerbird.scheduler.shown import run_data, shown_task
from bowerbird.scheduler.task_rules import OFF, NewTask, ScheduleRules, utc_now
from bowerbird.scheduler.tools import NAMES, Asker, schedule_tools
from bowerbird.sessions.live.hub import Published, TurnMark
from bowerbird.sessions.parts import SessionPart
from bowerbird.sessions.thread_ids import root_of
from bowerbird.store.rows.schedules import list_tasks, run_of_turn, runs_of
from bowerbird.tools.plan import NO_ANSWERER
from bowerbird.tools.toolset import Toolset

if TYPE_CHECKING:
    from bowerbird.agent.turn import TurnRun
    from bowerbird.sessions.service import SessionService
    from bowerbird.sessions.turn.end_transaction import Ending
    from bowerbird.sessions.turn_maker import TurnContext
    from bowerbird.store.rows.sessions import SessionRow
    from bowerbird.store.rows.turns import TurnRow
    from bowerbird.tools import Tool

Row = dict[str, Any]
_PREFIX = "scheduler_"
_ABOUT = (
    "This turn is a run of the scheduled task {id}: nobody is watching and nobody can be asked; what would "
    "need an approval is denied. Your final answer is delivered by itself. When there is nothing to tell, "
    f"answer exactly {NO_REPLY}, and nothing is sent."
)


def everybody(_: object) -> bool:
    """See every task, as the one user of a machine or an admin does."""
    return True


class Schedules(SessionPart):
    """The scheduled tasks of one store.

    Args:
        service: of the process. rules: what settings say now. data_file: imported once, None for none.
        now: the present, given by tests of wrong clocks.

    Example:
        made = await sessions.part(Schedules).add(NewTask(prompt="Look", type="interval", value="3600"))
    """

    def __init__(
        self,
        service: "SessionService",
        rules: Callable[[], ScheduleRules],
        data_file: Path | None = None,
        now: Callable[[], datetime] = utc_now,
    ) -> None:
        self._service = service
        self._store = service.store
        self._rules = rules
        self._data_file = data_file
        self._now = now
        self.clock = Clock(service, rules, now)

    # ------------------------------------------------------------ for doors

    async def list(self, sees: Sees = everybody, *, every: bool = False) -> list[Row]:
        """Return tasks in the order of their making.

        Args:
            every: those that are over, too.
        """
        rows = await self._store.read(lambda c: list_tasks(c, active=not every))
        # Three times of a cron line cost a millisecond: of a thousand tasks, nobody waits for them.
        return await to_thread(lambda: [shown_task(task) for task in rows if sees(task)])

    async def get(self, task_id: str, sees: Sees = everybody) -> Row:
        """Return a task; raises NotFound."""
        return shown_task(await self._store.read(lambda c: get_task(c, task_id, sees)))

    async def add(self, new: NewTask) -> Row:
        """Make a task; raises InvalidTask."""
        self._store.require_space()
        rules = self._rules()
        task = await self._store.write(lambda c: add_task(c, new, rules, self._now()))
        self.clock.look_soon()
        return shown_task(task)

    async def change(self, task_id: str, changes: Mapping[str, Any], sees: Sees = everybody) -> Row:
        """Change a task, pause or resume it; raises NotFound, InvalidTask."""
        rules = self._rules()
        task = await self._store.write(lambda c: change_task(c, task_id, changes, rules, self._now(), sees))
        self.clock.look_soon()
        return shown_task(task)

    async def call_off(self, task_id: str, sees: Sees = everybody) -> Row:
        """Take a task out for good; one that is over stays as it is. Raises NotFound."""
        await self._store.write(lambda c: cancel_task(c, task_id, sees))
        return await self.get(task_id, sees)

    async def runs(self, task_id: str, sees: Sees = everybody) -> "Sequence[Row]":
        """Return the last 100 runs, newest first; raises NotFound."""

        def read(connection: Connection) -> Sequence[Row]:
            task = get_task(connection, task_id, sees)
            return [run_data(run) for run in runs_of(connection, task.id)]

        return await self._store.read(read)

    async def run_now(self, task_id: str, sees: Sees = everybody) -> Row:
        """Begin a run now, beside the times of the task; return it.

        Raises:
            NotFound, SessionError: it is over or runs already, or too many runs are at work.
        """
        task = await self._store.read(lambda c: get_task(c, task_id, sees))
        self._store.require_space()
        if task.active:
            await self.clock.open_session(task)
        limits = self._service.settings
        fired = await self._store.write(lambda c: fire_now(c, task_id, self._now(), limits))
        await self.clock.go_on(fired)
        return run_data(fired.run)

    # ------------------------------------------------------------ for turns

    def tools(self, session: "SessionRow | None") -> "Sequence[Tool]":
        """Return the tools, while the scheduler is on."""
        del session
        return schedule_tools(None, self._rules, Asker(), lambda: None) if self._rules().enabled else ()

    async def prepare(self, context: "TurnContext") -> "TurnContext":
        """Give a scheduled run its task's tier; no other turn of the session has it."""
        if context.turn.kind != KIND:
            return context
        task = await self._task_of(context.turn.turn_id)
        if task is None or task["model_tier"] is None:
            return context
        flags = {**context.session.flags, "model": f"tier:{task['model_tier']}"}
        return msgspec.structs.replace(context, session=msgspec.structs.replace(context.session, flags=flags))

    async def join(self, run: "TurnRun", context: "TurnContext") -> "TurnRun":
        """Give a turn the tools; tell a scheduled one what it is, and let it ask nobody."""
        rules = self._rules()
        if context.turn.kind == KIND:
            run = _unwatched(run, context.session.thread_id.removeprefix(_PREFIX), rules)
        if context.session.kind == "teammate":
            return run  # its tools are fixed
        if not rules.enabled:
            absent = {**run.tools.absent, **dict.fromkeys(NAMES, OFF)}
            return msgspec.structs.replace(run, tools=Toolset(run.tools, absent=absent))
        tools = schedule_tools(
            self._store, self._rules, asker_of(context), self.clock.look_soon, now=self._now
        )
        return msgspec.structs.replace(run, tools=run.tools.with_(*tools))

    async def _task_of(self, turn_id: str) -> Row | None:
        run = await self._store.read(lambda c: run_of_turn(c, turn_id))
        return None if run is None else await self.get(run.task_id)

    def ended(self, connection: Connection, session: "SessionRow", turn: "TurnRow", ending: "Ending") -> None:
        """Settle a run in the transaction that ends its turn."""
        del session
        run = run_of_turn(connection, turn.turn_id) if turn.kind == KIND else None
        if run is not None:
            settle(connection, run, turn, ending, self.clock.around)

    # ------------------------------------------------------------ life

    async def start(self, *, drives_all: bool) -> None:
        """Begin to look, in a server whose settings say so."""
        if not drives_all or not self._rules().enabled:
            return
        if self._data_file is not None:
            from bowerbird.scheduler.data_file import import_file

            await import_file(self._store, self._data_file)
        self._service.live.relay(self._heard)
        self.clock.start()

    async def stop(self, grace_s: float) -> None:
        """Begin nothing more."""
        del grace_s
        await self.clock.stop()

    async def aclose(self) -> None:
        """See `stop`."""
        await self.clock.stop()

    async def deleting(self, session: "SessionRow") -> None:
        """Cancel the task whose session is deleted: its runs would have no place."""
        if session.kind == "scheduler" and root_of(session.thread_id) == session.thread_id:
            task_id = session.thread_id.removeprefix(_PREFIX)
            why = "cancelled: its conversation was deleted"
            await self._store.write(lambda c: cancel_task(c, task_id, everybody, why))

    def _heard(self, published: Published) -> None:
        """A run that ends makes room for others."""
        is_ours = published.thread_id.startswith(_PREFIX)
        if is_ours and isinstance(published.event, TurnMark) and published.event.has_stopped:
            self._service.outbox.look()
            self.clock.look_soon()


def asker_of(context: "TurnContext") -> Asker:
    """Return whose tasks a turn makes and sees."""
    session, sender = context.session, context.sender
    is_chat = session.channel is not None and session.chat_id is not None
    is_run = context.turn.kind == KIND
    said = sender.get("id")
    owner = session.owner if not is_chat or is_run or said is None else str(said)
    return Asker(
        channel=session.channel if is_chat else None,
        chat_id=session.chat_id if is_chat else None,
        owner=owner,
        is_guest=sender.get("role") == "guest",
        made_by=context.turn.turn_id if is_run else None,
        workspace=session.workspace,
    )


def _unwatched(run: "TurnRun", task_id: str, rules: ScheduleRules) -> "TurnRun":
    system: tuple[str, ...] = run.system() if callable(run.system) else run.system
    told = {**run.tools.absent, "ask_user": NO_ANSWERER}
    tools = Toolset((tool for tool in run.tools if tool.name != "ask_user"), absent=told)
    return msgspec.structs.replace(
        run,
        tools=tools,
        system=(*system, _ABOUT.format(id=task_id)),
        policy=replace(run.policy, unattended=True),
        history_turns=rules.history_turns,
    )
