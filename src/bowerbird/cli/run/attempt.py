"""`attempt` and `subagents …`: tournaments and the forks of subagents at a terminal (DE-6 … DE-8, DE-21).

Here: printing of results; their JSON is REST's. Not here: running attempts (`delegation`), picking sessions
(`client/`).
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from bowerbird.cli.client.opening import local_client, names_server, with_client
from bowerbird.cli.client.protocol import Client, Contest
from bowerbird.cli.terminal.exits import DONE, FAILED, PARTLY, USAGE, CliExit
from bowerbird.cli.terminal.shell import Shell, directory_of
from bowerbird.cli.terminal.shell import run as run_async
from bowerbird.cli.terminal.text import harmless, harmless_path, money, one_line, plural, table

if TYPE_CHECKING:
    from bowerbird.sessions.live.hub import Published

TAIL_LINES = 6
FEWEST, MOST = 2, 8


def attempt(
    shell: Shell,
    *,
    task: str,
    attempts: int | None,
    checks: Sequence[str],
    models: Sequence[str],
    agents: Sequence[str],
    merge: bool,
    json: bool,
    workspace: str | None,
) -> int:
    """Run a tournament on a new session; exits with 1 when nobody wins."""
    if attempts is not None and not FEWEST <= attempts <= MOST:
        raise CliExit(USAGE, f"--n is {attempts}; use {FEWEST} to {MOST}")
    wanted = Contest(
        task=task,
        attempts=attempts,
        checks=tuple(checks),
        models=tuple(models),
        agents=tuple(agents),
        merge="best" if merge else "none",
    )

    async def work(client: Client) -> int:
        async with _watched(shell, agents) as show:
            result = await client.attempt(wanted, show)
        if json:
            shell.json(result)
        elif result["error"] is not None:
            raise CliExit(FAILED, str(result["error"]))
        else:
            _show_ranking(shell, result)
        return DONE if result["winner"] is not None else FAILED

    if names_server(shell):
        return with_client(shell, workspace, work)
    directory = directory_of(workspace)
    loaded = shell.load(directory)

    async def here() -> int:
        from bowerbird.app import choose_model

        # Attempts with models of their own need no other: the settings' one may lack its key.
        chosen = choose_model(loaded, models[0] if models else loaded.settings.cli.model)
        if chosen.note:
            shell.terminal.note(chosen.note, "yellow")
        async with local_client(loaded, directory, model=chosen.name) as client:
            return await work(client)

    return run_async(here)


@asynccontextmanager
async def _watched(shell: Shell, agents: Sequence[str]) -> AsyncGenerator["Callable[[Published], None]"]:
    """Show on standard error how the attempts go; yields what takes their beginnings and ends."""
    from bowerbird.cli.run.oneshot import OneShotSink
    from bowerbird.cli.turn.painter import TurnPainter
    from bowerbird.cli.turn.story import Story

    sink = OneShotSink(shell.terminal)
    painter = TurnPainter(sink, Story(), None, quiet=shell.terminal.quiet, has_show=False)
    sink.doing(f"attempts of {', '.join(agents)}" if agents else "attempts")
    animation = asyncio.create_task(sink.animate())
    try:
        yield painter.show
    finally:
        animation.cancel()
        await asyncio.gather(animation, return_exceptions=True)
        shell.terminal.clear_status()


def _show_ranking(shell: Shell, result: dict[str, Any]) -> None:
    terminal, thread = shell.terminal, result["conversation_id"]
    named = any(row["agent"] != "self" for row in result["ranking"])
    rows = [_row(row, named=named) for row in result["ranking"]]
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
    if result["note"]:
        terminal.note(result["note"], "yellow")
    winner = result["winner"]
    if winner is None:
        terminal.line("no attempt passed all checks")
        terminal.note(f"look at them: bowerbird subagents show {thread} HANDLE")
    elif result["merged"]:
        terminal.line(f"winner: {winner}, merged into the branch of session {thread}", "bold")
        terminal.note(f"review and land it: bowerbird diff {thread}; bowerbird land {thread}")
    else:
        terminal.line(f"winner: {winner}", "bold")
        terminal.note(f"take it: bowerbird subagents merge {thread} {winner}")


def _row(row: dict[str, Any], *, named: bool) -> list[str]:
    touched = "changed tests" if row["touched_checks"] else ""
    return [
        f"{row['rank']}.",
        row["handle"],
        *([row["agent"]] if named else []),
        row["status"],
        f"{row['passed']}/{row['passed'] + row['failed']} checks",
        f"{plural(row['files'], 'file')} +{row['added']} -{row['removed']}",
        money(row["cost"]),
        f"{row['seconds']:.0f} s",
        one_line(row["error"] or touched, 120),
    ]


# ---------------------------------------------------------------- subagents


def list_subagents(shell: Shell, *, session: str | None, json: bool) -> int:
    """List the subagents of a session that were not discarded."""

    async def work(client: Client) -> int:
        records = await client.subagents(await client.find(session))
        if json:
            return shell.json(records)
        rows = [
            [row["handle"], row["state"], row["agent_type"], money(row["usage"].get("cost")),
             one_line(row["task"], 80)]
            for row in records
        ]  # fmt: skip
        for line in table(rows, width=shell.terminal.width):
            shell.terminal.line(line)
        if not records:
            shell.terminal.note("this session has no subagents")
        return DONE

    return with_client(shell, None, work)


def show_subagent(shell: Shell, *, session: str, handle: str, path: str, json: bool) -> int:
    """Show the diff of a subagent's fork, or its version of a file."""

    async def work(client: Client) -> int:
        thread_id = await client.find(session)
        if path:
            found = await client.subagent_file(thread_id, handle, path)
            text = str(found["text"])
        else:
            found = await client.subagent(thread_id, handle)
            text = _changes(found["diff"])
        if json:
            return shell.json(found)
        shell.terminal.write(harmless(text).rstrip("\n") + "\n")
        return DONE

    return with_client(shell, None, work)


def _changes(diff: dict[str, Any] | None) -> str:
    """Return a subagent's changes as text: what changed, then the patch."""
    if diff is None:
        return "its fork cannot be read"
    lines = [f"{row['kind']} {row['path']} +{row['added']} -{row['removed']}" for row in diff["written"]]
    lines += [f"delete {path}" for path in diff["deleted"]]
    return "\n\n".join(filter(None, ("\n".join(lines), diff["patch"]))) or "no changes"


def merge_subagent(
    shell: Shell, *, session: str, handle: str, paths: Sequence[str] | None, force: bool, json: bool
) -> int:
    """Merge a subagent into its session's branch; exits with 3 when paths conflict."""

    async def work(client: Client) -> int:
        found = await client.merge_subagent(await client.find(session), handle, paths, force=force)
        if json:
            shell.json(found)
        else:
            for word in ("written", "deleted", "merged", "conflicts", "skipped", "unknown"):
                for path in found[word]:
                    shell.terminal.line(f"{word}: {harmless_path(path.lstrip('/'))}")
            if not any(found.values()):
                shell.terminal.note("nothing to merge")
        return PARTLY if found["skipped"] else DONE

    return with_client(shell, None, work)


def discard_subagent(shell: Shell, *, session: str, handle: str) -> int:
    """Drop a subagent and its fork."""

    async def work(client: Client) -> int:
        await client.discard_subagent(await client.find(session), handle)
        shell.terminal.line(f"discarded {handle}")
        return DONE

    return with_client(shell, None, work)
