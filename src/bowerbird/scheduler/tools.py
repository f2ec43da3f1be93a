"""The tools of schedules: `schedule_task`, `list_tasks`, `cancel_task` (TO-43 … TO-45, AS-40).

Here: what a model asks for and sees, bound to the turn that it is offered in. Not here: the changes
(`changes.py`), the task board, whose tools are `task_create` and the like.
"""

from collections.abc import Callable
from datetime import datetime
from typing import Any

import msgspec
from sqlalchemy import Connection

from bowerbird.scheduler.changes import add_task, cancel_task, listed_for
from bowerbird.scheduler.task_rules import InvalidTask, NewTask, ScheduleRules, utc_now
from bowerbird.store.rows.schedules import TaskRow
from bowerbird.store.store import Store
from bowerbird.tools.context import ToolContext
from bowerbird.tools.result import ToolResult
from bowerbird.tools.tool import Tool

NAMES = ("schedule_task", "list_tasks", "cancel_task")
PROMPT_SHOWN = 60
_SERIAL = "schedules"  # calls of one answer take effect in their order


class Asker(msgspec.Struct, frozen=True, kw_only=True):
    """Whose tasks a turn makes, sees and cancels.

    Attributes:
        channel, chat_id: of its session, None for the web UI and the CLI. owner: who asked.
        is_guest: only the owner's own tasks of this chat. made_by: the turn, when it is a scheduled run.
        workspace: of its session.
    """

    channel: str | None = None
    chat_id: str | None = None
    owner: str | None = None
    is_guest: bool = False
    made_by: str | None = None
    workspace: str | None = None

    def sees(self, task: TaskRow) -> bool:
        """Whether a task exists for this turn."""
        if (task.channel, task.chat_id) != (self.channel, self.chat_id):
            return False
        is_own = task.owner == self.owner
        return is_own or (self.channel is not None and not self.is_guest)


def schedule_tools(
    store: Store | None,
    rules: Callable[[], ScheduleRules],
    asker: Asker,
    changed: Callable[[], None],
    *,
    now: Callable[[], datetime] = utc_now,
) -> list[Tool]:
    """Return the three tools.

    Args:
        store: None for lists of tools. changed: told after a change, so that the scheduler looks.
        now: the present, by which a first run is planned.
    """
    return [
        Tool(_schedule_task(store, rules, asker, changed, now), effect="session", serial=_SERIAL),
        Tool(_list_tasks(store, asker), effect="read"),
        Tool(_cancel_task(store, asker, changed), effect="session", serial=_SERIAL),
    ]


def _there(store: Store | None) -> Store:
    assert store is not None, "tools of lists are not called"
    return store


async def _change(
    store: Store, context: ToolContext, change: Callable[[Connection], ToolResult]
) -> ToolResult:
    """Run a change as one transaction with the call's outcome, where outcomes are kept."""
    if context.change is not None:
        return await context.change(change)
    return await store.write(change)


def _schedule_task(
    store: Store | None,
    rules: Callable[[], ScheduleRules],
    asker: Asker,
    changed: Callable[[], None],
    now: Callable[[], datetime],
) -> Callable[..., Any]:
    async def schedule_task(
        prompt: str, schedule_type: str, schedule_value: str, context: ToolContext, model_tier: str = ""
    ) -> ToolResult:
        """Have a prompt run later, or again and again, by itself; its answer comes to this chat.

        Args:
            prompt: What is to be done then, complete in itself.
            schedule_type: "cron", "interval" or "once".
            schedule_value: A cron line of five fields ("0 8 * * 1-5"), seconds between runs ("3600"), or an
                ISO time ("2026-11-20T09:00").
            model_tier: Tier of the model for its runs; empty for the usual one.
        """
        new = NewTask(
            prompt=prompt,
            type=schedule_type,
            value=schedule_value,
            model_tier=model_tier or None,
            channel=asker.channel,
            chat_id=asker.chat_id,
            owner=asker.owner,
            workspace=asker.workspace,
            made_by=asker.made_by,
        )

        def change(connection: Connection) -> ToolResult:
            try:
                task = add_task(connection, new, rules(), now())
            except InvalidTask as error:
                return ToolResult.error(str(error))
            text = (
                f"Scheduled task {task.id}: {task.type}={task.value} ({task.tz}); first run {task.next_run}."
            )
            data = {"id": task.id, "type": task.type, "value": task.value, "next_run": task.next_run}
            return ToolResult(text, data=data)

        result = await _change(_there(store), context, change)
        changed()
        return result

    return schedule_task


def _list_tasks(store: Store | None, asker: Asker) -> Callable[..., Any]:
    async def list_tasks() -> ToolResult:
        """List this chat's scheduled tasks with their last and next runs; not the task board (task_list)."""
        found = await _there(store).read(lambda c: listed_for(c, asker.sees))
        lines = [
            f"{task.id}  {task.type}={task.value}  {_cut(task.prompt)}  "
            f"last run: {task.last_run or 'never'}  "
            f"next run: {'paused' if task.paused else task.next_run or 'none'}"
            for task in found
        ]
        return ToolResult("\n".join(lines) or "No scheduled tasks.")

    return list_tasks


def _cut(prompt: str) -> str:
    line = " ".join(prompt.split())
    return line if len(line) <= PROMPT_SHOWN else line[: PROMPT_SHOWN - 1] + "…"


def _cancel_task(store: Store | None, asker: Asker, changed: Callable[[], None]) -> Callable[..., Any]:
    async def cancel_task_(task_id: str, context: ToolContext) -> ToolResult:
        """Cancel a scheduled task of this chat by its id, as list_tasks shows it; not the task board.

        Args:
            task_id: Its id, 8 characters.
        """

        def change(connection: Connection) -> ToolResult:
            done = cancel_task(connection, task_id.strip(), asker.sees)
            if done is None:
                return ToolResult.error(f"Task {task_id[:60]} not found.")
            return ToolResult(f"Task {done.id} is cancelled.")

        result = await _change(_there(store), context, change)
        changed()
        return result

    cancel_task_.__name__ = "cancel_task"
    return cancel_task_
