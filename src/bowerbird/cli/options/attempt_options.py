"""The options of `bowerbird attempt`, `bowerbird eval` and `bowerbird subagents …` (DE-21).

Here: names, types and help. Not here: what the commands do (`run/attempt.py`, `run/evaluate.py`).
"""

from collections.abc import Callable
from typing import Annotated

import typer
from typer import Argument, Option

_Id = Annotated[str, Argument(metavar="ID", help="Session, or at least 4 characters of its id.")]
_Handle = Annotated[str, Argument(metavar="HANDLE", help="Such as subagent_0; `subagents list ID` has them.")]
_Json = Annotated[bool, Option("--json", help="Write JSON.")]
_Where = Annotated[str | None, Option("-w", "--workspace", help="Directory; default: the current one.")]


def add_attempt(application: typer.Typer, call: Callable[..., int]) -> None:
    """Register the commands; `call(module, function, **options)` runs one."""

    @application.command("attempt")
    def attempt(  # pyright: ignore[reportUnusedFunction] - registered
        task: Annotated[str, Argument(metavar="TASK", help="What each attempt is told.")],
        attempts: Annotated[
            int | None,
            Option("--n", "-n", metavar="N", help="Attempts, 2 to 8; default: one per --with, or 3."),
        ] = None,
        check: Annotated[
            list[str] | None,
            Option("--check", metavar="CMD", help="Shell command that exits with 0 on success; repeatable."),
        ] = None,
        model: Annotated[
            list[str] | None, Option("--model", "-m", help="Models that attempts use in turn; repeatable.")
        ] = None,
        agent: Annotated[
            list[str] | None,
            Option(
                "--with",
                metavar="AGENT",
                help="Who attempts: another vendor's agent, as `agents list` names it, or self; repeatable.",
            ),
        ] = None,
        merge: Annotated[bool, Option("--merge", help="Merge the winner into the session's branch.")] = False,
        json: _Json = False,
        workspace: _Where = None,
    ) -> int:
        """Let several attempts at one task compete. Checks rank them; nothing lands."""
        return call(
            "run.attempt", "attempt", task=task, attempts=attempts, checks=check or [], models=model or [],
            agents=agent or [], merge=merge, json=json, workspace=workspace,
        )  # fmt: skip

    _add_eval(application, call)
    application.add_typer(_subagents(call), name="subagents")


def _add_eval(application: typer.Typer, call: Callable[..., int]) -> None:
    @application.command("eval")
    def evaluate(  # pyright: ignore[reportUnusedFunction] - registered
        suite: Annotated[
            str, Argument(metavar="SUITE", help="Directory of tasks, or a file of SWE-bench-like instances.")
        ],
        model: Annotated[
            list[str] | None, Option("--model", "-m", help="provider:model to be tried; repeatable.")
        ] = None,
        agent: Annotated[
            list[str] | None,
            Option("--agent", metavar="AGENT", help="Another vendor's agent to be tried; repeatable."),
        ] = None,
        task: Annotated[
            list[str] | None, Option("--task", metavar="NAME", help="Only this task; repeatable.")
        ] = None,
        tries: Annotated[int, Option("--n", "-n", metavar="N", help="Tries of each task.")] = 1,
        jobs: Annotated[
            int | None,
            Option("--jobs", "-j", metavar="N", help="Tries at once; default: 4, 1 with the embedded model."),
        ] = None,
        report: Annotated[
            str | None,
            Option("--report", metavar="FILE", help="JSON, its page beside it; default: ./eval-SUITE.json."),
        ] = None,
        again: Annotated[bool, Option("--again", help="Leave out what FILE has: try all again.")] = False,
        json: _Json = False,
    ) -> int:
        """Judge models and agents by tasks with hidden checks."""
        options = {name: value for name, value in locals().items() if name != "call"}
        options |= {name: options[name] or [] for name in ("model", "agent", "task")}
        return call("run.evaluate", "evaluate", **options)


def _subagents(call: Callable[..., int]) -> typer.Typer:
    group = typer.Typer(
        help="Subagents of a session and their forks.", rich_markup_mode=None, no_args_is_help=True
    )

    @group.command("list")
    def list_(  # pyright: ignore[reportUnusedFunction] - registered
        session: Annotated[
            str | None,
            Argument(metavar="[ID]", help="Session, or 4 characters of its id; default: the newest."),
        ] = None,
        json: _Json = False,
    ) -> int:
        """List a session's subagents."""
        return call("run.attempt", "list_subagents", session=session, json=json)

    @group.command("show")
    def show(  # pyright: ignore[reportUnusedFunction] - registered
        session: _Id,
        handle: _Handle,
        path: Annotated[str, Argument(metavar="[PATH]", help="A file of the fork; default: the diff.")] = "",
        json: _Json = False,
    ) -> int:
        """Show what a subagent changed, or its version of a file."""
        return call("run.attempt", "show_subagent", session=session, handle=handle, path=path, json=json)

    @group.command("merge")
    def merge(  # pyright: ignore[reportUnusedFunction] - registered
        session: _Id,
        handle: _Handle,
        paths: Annotated[list[str] | None, Argument(metavar="PATHS…", help="Only these.")] = None,
        force: Annotated[bool, Option("--force", help="Take the subagent's version of conflicts.")] = False,
        json: _Json = False,
    ) -> int:
        """Merge a subagent's changes into the session's branch."""
        return call(
            "run.attempt",
            "merge_subagent",
            session=session,
            handle=handle,
            paths=paths or None,
            force=force,
            json=json,
        )

    @group.command("discard")
    def discard(session: _Id, handle: _Handle) -> int:  # pyright: ignore[reportUnusedFunction] - registered
        """Drop a subagent and its fork."""
        return call("run.attempt", "discard_subagent", session=session, handle=handle)

    return group
