"""`bowerbird sandbox run`: one command on a branch of its own, and what it changed (UI-47).

Here: the command's steps and what is shown. Not here: running, isolation.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from bowerbird.cli.review.drawn import folded_count, stat_lines
from bowerbird.cli.terminal.drawing import coloured_diff
from bowerbird.cli.terminal.exits import LIMIT, USAGE, CliExit
from bowerbird.cli.terminal.gutter import Gutter
from bowerbird.cli.terminal.shell import Shell, directory_of
from bowerbird.cli.terminal.shell import run as run_async
from bowerbird.cli.terminal.text import duration, harmless_path
from bowerbird.core.threads import to_thread

if TYPE_CHECKING:
    from bowerbird.config import Loaded
    from bowerbird.sandbox.run.command import CommandResult
    from bowerbird.workspace import Branch

MAX_OUTPUT_BYTES = 16 << 20


def run(
    shell: Shell,
    *,
    command: Sequence[str],
    network: str | None,
    allow: Sequence[str],
    timeout: float | None,
    diff: bool,
    json: bool,
    workspace: str | None,
) -> int:
    """Run a command on a new branch and show its changes; nothing lands. Returns the command's exit code.

    Args:
        command: its words; a single one is a line for the shell.
        network: `closed` or `allowlist`; None = as settings say. allow: entries in place of the settings'.
        timeout: seconds; None = the settings' for shell commands.
        diff: show the changes themselves, not only their counts.
    """
    if not command:
        raise CliExit(USAGE, "no command; for example: bowerbird sandbox run -- pytest -q")
    if network not in (None, "closed", "allowlist"):
        raise CliExit(USAGE, f"--network is {network!r}; use closed or allowlist")
    if allow and network == "closed":
        raise CliExit(USAGE, "--allow needs --network allowlist")
    directory = directory_of(workspace)
    loaded = shell.load(directory)
    return run_async(
        lambda: _run(shell, loaded, directory, command, network, allow, timeout, diff=diff, json=json)
    )


async def _run(
    shell: Shell,
    loaded: "Loaded",
    directory: Path,
    command: Sequence[str],
    network: str | None,
    allow: Sequence[str],
    timeout: float | None,
    *,
    diff: bool,
    json: bool,
) -> int:
    from bowerbird.app.sandboxes import open_scratch

    section = loaded.settings.sandbox.network
    mode = network or ("allowlist" if allow else section.mode)
    entries = tuple(allow) or section.allow if mode == "allowlist" else ()
    seconds = timeout if timeout is not None else loaded.settings.tools.bash_timeout
    live = shell.terminal.out.is_terminal and not json
    gutter = Gutter(shell.terminal.width)
    shown = 0

    def show(chunk: bytes) -> None:
        nonlocal shown
        shown += len(chunk)
        shell.terminal.write(gutter.feed(chunk))

    async with open_scratch(loaded, directory, entries) as (sandbox, branch):
        result = await sandbox.run(
            command[0] if len(command) == 1 else list(command),
            timeout=seconds,
            configured_timeout=loaded.settings.tools.bash_timeout,
            max_output_bytes=MAX_OUTPUT_BYTES,
            on_output=show if live else None,
        )
        changes: dict[str, Any] = {"folded": []}
        changes |= (await to_thread(branch.diff, ignored=False)).record()
        if json:
            record = {**msgspec.to_builtins(result), "changes": changes}
            shell.json(record)
            return _code(result)
        if not live:
            shell.terminal.write(result.output)
        else:
            shell.terminal.write(gutter.close())
        if live and shown < result.total_bytes:
            shell.terminal.note("some of the output came faster than the terminal and was left out")
        await _show_changes(shell, branch, changes, diff=diff)
    _show_end(shell, result)
    return _code(result)


def _code(result: "CommandResult") -> int:
    """A command may end by itself just before its limit is noticed: what was taken back is no success."""
    return LIMIT if result.exit_code == 0 and result.reason is not None else result.exit_code


async def _show_changes(shell: Shell, branch: "Branch", changes: dict[str, Any], *, diff: bool) -> None:
    lines = [f"{harmless_path(row['path'].lstrip('/'))}  {folded_count(row)}" for row in changes["folded"]]
    lines += stat_lines(changes, width=shell.terminal.width)
    if not lines:
        shell.terminal.note("it changed nothing")
        return
    shell.terminal.note("changed on the branch (nothing landed):")
    for line in lines:
        shell.terminal.note(line)
    if diff and (shown := [row["path"] for row in changes["written"]] + changes["deleted"]):
        patch = await to_thread(branch.unified, shown)
        shell.terminal.write(coloured_diff(patch, shell.terminal.out))


def _show_end(shell: Shell, result: "CommandResult") -> None:
    facts = [f"exit code {result.exit_code}", duration(result.duration_ms / 1000), f"tier {result.tier}"]
    facts.append(f"network {result.network}")
    if result.timed_out:
        facts.append("timed out")
    elif result.reason is not None:
        facts.append(f"killed: {result.reason} limit")
    shell.terminal.note("; ".join(facts), "dim")
    if result.note:
        shell.terminal.note(result.note, "yellow")
