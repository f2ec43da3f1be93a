"""The commands of a chat about its scheduled tasks: `/tasks`, `/cancel ID` (AS-15, AS-40).

Here: those two, for one channel. Not here: when a task runs (`scheduler/`), making one, which is a tool of
the agent.
"""

from collections.abc import Iterable
from zoneinfo import ZoneInfo

from bowerbird.channels.commands import Asked, Command
from bowerbird.core.errors import NotFound
from bowerbird.core.timestamps import from_iso
from bowerbird.scheduler.schedules import Schedules
from bowerbird.scheduler.tools import PROMPT_SHOWN, Asker

MOST_SHOWN = 30


def schedule_commands(channel: str, schedules: Schedules) -> Iterable[Command]:
    """Return the commands of a channel's chats; a guest sees and cancels their own tasks only."""

    def asker(asked: Asked) -> Asker:
        message = asked.message
        return Asker(
            channel=channel,
            chat_id=message.chat_id,
            owner=message.user_id,
            is_guest=asked.role == "guest",
        )

    async def tasks(asked: Asked) -> str:
        rows = await schedules.list(asker(asked).sees)
        if not rows:
            return "No task is scheduled in this chat. Ask me to do something every morning at eight."
        lines = [_line(row) for row in rows[:MOST_SHOWN]]
        if len(rows) > MOST_SHOWN:
            lines.append(f"… and {len(rows) - MOST_SHOWN} more")
        return "\n".join(lines)

    async def cancel(asked: Asked) -> str:
        if not asked.argument:
            return "Say which one: /cancel ID. /tasks lists them."
        try:
            row = await schedules.call_off(asked.argument.strip(), asker(asked).sees)
        except NotFound:
            return "Task ID not found."
        return f"Task {row['id']} is cancelled."

    yield Command("tasks", "the scheduled tasks of this chat", tasks)
    yield Command("cancel", "cancel a scheduled task", cancel, "ID")


def _line(row: "dict[str, object]") -> str:
    prompt = " ".join(str(row["prompt"]).split())
    shown = prompt if len(prompt) <= PROMPT_SHOWN else f"{prompt[: PROMPT_SHOWN - 1]}…"
    when = "paused" if row["paused"] else f"next {_local(row)}" if row["next_run"] else "running"
    return f"- `{row['id']}` {row['type']} `{row['value']}` · {when}\n  {shown}"


def _local(row: "dict[str, object]") -> str:
    """Return when a task runs next, as its time zone's clocks show it."""
    zone = str(row["tz"] or "UTC")
    return f"{from_iso(str(row['next_run'])).astimezone(ZoneInfo(zone)):%a %d %b %Y, %H:%M} {zone}"
