"""The options of `bowerbird tasks …` (UI-47, AS-39).

Here: names, types and help. Not here: what the commands do (`admin/tasks.py`).
"""

from collections.abc import Callable
from typing import Annotated

import typer
from typer import Argument, Option

Directory = Annotated[
    str | None, Option("-w", "--workspace", metavar="DIR", help="Directory; default: the current one.")
]
Json = Annotated[bool, Option("--json", help="Write JSON.")]
TaskId = Annotated[str, Argument(metavar="ID", help="The task, as `tasks list` names it.")]


def tasks_group(call: Callable[..., int]) -> typer.Typer:
    """Return the group; `call(module, function, **options)` runs a command."""
    group = typer.Typer(
        help="Scheduled tasks: prompts that a server runs at their times.",
        rich_markup_mode=None,
        no_args_is_help=True,
    )
    _add_making(group, call)
    for name, text in (
        ("pause", "Leave a task's times out until it is resumed."),
        ("resume", "Run a paused task again, from its next time on."),
        ("cancel", "Take a task out for good; its conversation stays."),
    ):
        _add_simple(group, call, name, text)

    @group.command("run-now")
    def run_now(task_id: TaskId, json: Json = False) -> int:  # pyright: ignore[reportUnusedFunction] - registered
        """Run a task now, beside its times, and wait for the end."""
        return call("admin.tasks", "run_now", task_id=task_id, json=json)

    @group.command("runs")
    def runs(task_id: TaskId, json: Json = False) -> int:  # pyright: ignore[reportUnusedFunction] - registered
        """List the last 100 runs of a task, newest first."""
        return call("admin.tasks", "runs", task_id=task_id, json=json)

    @group.command("list")
    def list_(  # pyright: ignore[reportUnusedFunction] - registered
        every: Annotated[bool, Option("--all", help="Those that are over, too.")] = False, json: Json = False
    ) -> int:
        """List tasks with their next runs."""
        return call("admin.tasks", "list_tasks", every=every, json=json)

    return group


def _add_making(group: typer.Typer, call: Callable[..., int]) -> None:
    @group.command("add")
    def add(  # pyright: ignore[reportUnusedFunction] - registered
        prompt: Annotated[str, Argument(metavar="PROMPT", help="What is to be done, complete in itself.")],
        cron: Annotated[
            str | None, Option("--cron", metavar="LINE", help='Five fields: "0 8 * * 1-5".')
        ] = None,
        every: Annotated[str | None, Option("--every", metavar="S", help="Seconds between runs.")] = None,
        at: Annotated[str | None, Option("--at", metavar="TIME", help="Once, say 2026-11-20T09:00.")] = None,
        tz: Annotated[
            str | None, Option("--tz", metavar="ZONE", help="Say Europe/Rome; default: scheduler.timezone.")
        ] = None,
        tier: Annotated[str | None, Option("--tier", help="Tier of the model for its runs.")] = None,
        catch_up: Annotated[
            str, Option("--catch-up", help="What was missed while no server ran: one, skip or all.")
        ] = "one",
        notify: Annotated[str, Option("--notify", help="In its chat: silent, loud or never.")] = "silent",
        channel: Annotated[str | None, Option("--channel", help="Where answers go, say telegram.")] = None,
        chat: Annotated[str | None, Option("--chat", metavar="ID", help="Chat of that channel.")] = None,
        workspace: Directory = None,
        json: Json = False,
    ) -> int:
        """Schedule PROMPT by one of --cron, --every and --at."""
        wanted = {
            "prompt": prompt, "tz": tz, "model_tier": tier, "catch_up": catch_up, "notify": notify,
            "channel": channel, "chat_id": chat,
        }  # fmt: skip
        times = {"cron": cron, "interval": every, "once": at}
        return call("admin.tasks", "add", wanted=wanted, times=times, workspace=workspace, json=json)


def _add_simple(group: typer.Typer, call: Callable[..., int], name: str, text: str) -> None:
    @group.command(name, help=text)
    def simple(task_id: TaskId, json: Json = False) -> int:  # pyright: ignore[reportUnusedFunction] - registered
        return call("admin.tasks", name, task_id=task_id, json=json)
