"""`attempt` and `subagents …`: tournaments and the forks of subagents at a terminal (DE-6 … DE-8, DE-21).

Here: printing of results. Not here: running attempts (`bowerbird.subagents`), picking sessions.
"""

import asyncio
import json as json_text
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bowerbird.cli.exits import DONE, FAILED, PARTLY, USAGE, CliExit
from bowerbird.cli.review_commands import opened
from bowerbird.cli.shell import Shell, directory_of
from bowerbird.cli.shell import run as run_async
from bowerbird.cli.text import harmless, money, one_line, plural, table
from bowerbird.core.events import SubagentEnd, SubagentStart

if TYPE_CHECKING:
    from bowerbird.app.application import Application
    from bowerbird.subagents.calls import Calls

TAIL_LINES = 6


def attempt(
    shell: Shell,
    *,
    task: str,
    attempts: int,
    checks: Sequence[str],
    models: Sequence[str],
    merge: bool,
    json: bool,
    workspace: str | None,
) -> int:
    """Run a tournament on a new session of this directory; exits with 1 when nobody wins."""
    directory = directory_of(workspace)
    loaded = shell.load(directory)

    async def work() -> int:
        from bowerbird.app import choose_model, open_application

        chosen = choose_model(loaded, loaded.settings.cli.model)
        if chosen.note:
            shell.terminal.note(chosen.note, "yellow")
        async with open_application(loaded, workspace=directory, model=chosen.name) as application:
            thread = await _new_session(application, task, directory)
            async with _watched(shell, attempts) as emit:
                calls = await _calls(application, thread, emit)
                result = await calls.tournament(task, attempts, checks, models, "best" if merge else "none")
            if "error" in result:
                raise CliExit(USAGE, result["error"])
            if json:
                _write(shell, {"session": thread, **result})
            else:
                _show_ranking(shell, thread, result)
            return DONE if result["winner"] is not None else FAILED

    return run_async(work)


@asynccontextmanager
async def _watched(
    shell: Shell, attempts: int
) -> AsyncGenerator[Callable[[SubagentStart | SubagentEnd], None]]:
    """Show on standard error how the attempts go; yields what takes their beginnings and ends."""
    from bowerbird.cli.oneshot import OneShotSink
    from bowerbird.cli.painter import TurnPainter
    from bowerbird.cli.story import Story
    from bowerbird.sessions.live.hub import Published

    sink = OneShotSink(shell.terminal)
    painter = TurnPainter(sink, Story(), None, quiet=shell.terminal.quiet)
    sink.doing(f"{attempts} attempts")
    animation = asyncio.create_task(sink.animate())
    try:
        yield lambda event: painter.show(Published("", None, None, event))
    finally:
        animation.cancel()
        await asyncio.gather(animation, return_exceptions=True)
        shell.terminal.clear_status()


async def _new_session(application: "Application", task: str, directory: Path) -> str:
    from bowerbird.sessions.values import NewSession

    settings = application.loaded.settings
    new = NewSession(
        kind="cli", title=one_line(task, 100), workspace=str(directory), hide=settings.workspace.hidden
    )
    made = await application.sessions.create(new)
    await application.drive(made.thread_id)
    return made.thread_id


async def _calls(
    application: "Application", thread: str, emit: Callable[[SubagentStart | SubagentEnd], None] | None = None
) -> "Calls":
    from bowerbird.app.mapping import turn_limits, turn_policy

    children, settings = application.maker.children, application.loaded.settings
    assert children is not None, "an open application has what runs subagents"
    session = await application.sessions.get(thread)
    flags = dict(session.flags)
    policy, limits = turn_policy(settings, flags), turn_limits(settings, flags, "")
    if emit is None:
        return await children.on_behalf(thread, policy, limits)
    return await children.on_behalf(thread, policy, limits, emit=emit)


def _show_ranking(shell: Shell, thread: str, result: dict[str, Any]) -> None:
    terminal = shell.terminal
    rows = [_row(row) for row in result["ranking"]]
    for line in table(rows, width=terminal.width):
        terminal.line(line)
    for row in result["ranking"]:
        for check in row["checks"]:
            if check["exit_code"] != 0:
                before = ", failed before too" if check["baseline_failed"] else ""
                terminal.line(
                    f"{row['handle']}: {one_line(check['command'])} exited with {check['exit_code']}{before}"
                )
                for line in harmless(check["output_tail"]).splitlines()[-TAIL_LINES:]:
                    terminal.line(f"  {line}")
    if "note" in result:
        terminal.note(result["note"], "yellow")
    winner = result["winner"]
    if winner is None:
        terminal.line("no attempt passed all checks")
        terminal.note(f"look at them: bowerbird subagents show {thread} HANDLE")
    elif "merge" in result:
        terminal.line(f"winner: {winner}, merged into the branch of session {thread}", "bold")
        terminal.note(f"review and land it: bowerbird diff {thread}; bowerbird land {thread}")
    else:
        terminal.line(f"winner: {winner}", "bold")
        terminal.note(f"take it: bowerbird subagents merge {thread} {winner}")


def _row(row: dict[str, Any]) -> list[str]:
    touched = "changed tests" if row["touched_checks"] else ""
    return [
        f"{row['rank']}.",
        row["handle"],
        row["status"],
        f"{row['passed']}/{row['passed'] + row['failed']} checks",
        f"{plural(row['files'], 'file')} +{row['added']} -{row['removed']}",
        money(row["cost"]),
        f"{row['seconds']:.0f} s",
        one_line(row["error"] or touched, 120),
    ]


# ---------------------------------------------------------------- subagents


def list_subagents(shell: Shell, *, session: str, json: bool) -> int:
    """List the subagents of a session that were not discarded."""

    async def work(application: "Application", _: Path) -> int:
        found = await application.sessions.get(session)
        children = application.maker.children
        assert children is not None, "an open application has what runs subagents"
        records = [
            child for child in await children.records.of(found.thread_id) if child.state != "discarded"
        ]
        if json:
            _write(shell, [child.record() for child in records])
            return DONE
        rows = [[c.handle, c.state, c.agent_type, money(c.usage.cost), one_line(c.task, 80)] for c in records]
        for line in table(rows, width=shell.terminal.width):
            shell.terminal.line(line)
        if not records:
            shell.terminal.note("this session has no subagents")
        return DONE

    return opened(shell, None, work)


def show_subagent(shell: Shell, *, session: str, handle: str, path: str, json: bool) -> int:
    """Show the diff of a subagent's fork, or its version of a file."""

    async def show(calls: "Calls") -> int:
        found = _checked(await calls.read(handle, path))
        if json:
            _write(shell, {key: value for key, value in found.items() if key != "text"})
        else:
            shell.terminal.write(harmless(found["text"]).rstrip("\n") + "\n")
        return DONE

    return _with_calls(shell, session, show)


def merge_subagent(
    shell: Shell, *, session: str, handle: str, paths: Sequence[str] | None, force: bool, json: bool
) -> int:
    """Merge a subagent into its session's branch; exits with 3 when paths conflict."""

    async def merge(calls: "Calls") -> int:
        found = _checked(await calls.merge(handle, paths, force))
        if json:
            _write(shell, found)
        else:
            for word in ("written", "deleted", "merged", "conflicts", "skipped", "unknown"):
                for path in found[word]:
                    shell.terminal.line(f"{word}: {harmless(path)}")
            if not any(found.values()):
                shell.terminal.note("nothing to merge")
        return PARTLY if found["skipped"] else DONE

    return _with_calls(shell, session, merge)


def discard_subagent(shell: Shell, *, session: str, handle: str) -> int:
    """Drop a subagent and its fork."""

    async def discard(calls: "Calls") -> int:
        _checked(await calls.discard(handle))
        shell.terminal.line(f"discarded {handle}")
        return DONE

    return _with_calls(shell, session, discard)


def _with_calls(shell: Shell, session: str, do: "Callable[[Calls], Awaitable[int]]") -> int:
    async def work(application: "Application", _: Path) -> int:
        found = await application.sessions.get(session)
        return await do(await _calls(application, found.thread_id))

    return opened(shell, None, work)


def _checked(result: dict[str, Any]) -> dict[str, Any]:
    if "error" in result:
        raise CliExit(USAGE, str(result["error"]))
    return result


def _write(shell: Shell, data: Any) -> None:
    shell.terminal.write(json_text.dumps(data, ensure_ascii=False, indent=2) + "\n")
