"""`bowerbird run`, `bowerbird "PROMPT"` and `resume`: which form runs, and with what (UI-41, UI-50).

Here: input, directory, model, session; then one of `oneshot.py` and `chat.py`. Not here: what
these do.
"""

import sys
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bowerbird.cli.client.opening import (
    Opening,
    local_opening,
    names_server,
    server_opening,
    with_client,
)
from bowerbird.cli.client.protocol import Client, Row
from bowerbird.cli.terminal.exits import APPROVAL, DONE, USAGE, CliExit
from bowerbird.cli.terminal.run_options import RunOptions, doubt_about
from bowerbird.cli.terminal.shell import Shell, directory_of, typed
from bowerbird.cli.terminal.shell import run as run_async

if TYPE_CHECKING:
    from bowerbird.config import Loaded

LARGEST_INPUT = 1 << 20


def run(shell: Shell, **values: Any) -> int:
    """Run `bowerbird run`: one turn with a prompt or piped input, else the interactive session."""
    options = with_input(shell, RunOptions(**values))
    if options.prompt is not None and not message_of(options).strip():
        raise CliExit(USAGE, "the message is empty")
    shell.terminal.quiet = options.quiet
    if options.prompt is None and options.attachment is None:
        return _talk(shell, options)

    async def work(client: Client) -> int:
        from bowerbird.cli.run.oneshot import OneShot, who_answers

        thread_id = await client.session_for(options)
        shot = OneShot(shell, client, options, who_answers(options, shell.terminal))
        return await shot.run(thread_id, lambda: client.send(thread_id, message_of(options)))

    return run_with(shell, options, work)


def init(shell: Shell, **values: Any) -> int:
    """Run `bowerbird init --project`: one turn that writes `AGENTS.md` on a new session's branch."""
    from bowerbird.cli.run.slash_commands import INIT

    return run(shell, prompt=INIT, **values)


def run_with(
    shell: Shell,
    options: RunOptions,
    work: Callable[[Client], Awaitable[int]],
    *,
    model: str | None = None,
) -> int:
    """Run `work` with a client that drives turns: of the directory of `options`, or of a server.

    Args:
        model: what it runs on; None = as `options` and settings say.
    """
    from bowerbird.cli.run.oneshot import who_answers

    async def framed(opening: Opening) -> int:
        return await work(await opening.client())

    return _opened(
        shell, options, framed, attended=who_answers(options, shell.terminal) is not None, model=model
    )


def _talk(shell: Shell, options: RunOptions) -> int:
    """Run the interactive session: its prompt is on the screen before the client is open."""

    async def framed(opening: Opening) -> int:
        from bowerbird.cli.run.chat import chat

        return await chat(shell, opening, options)

    return _opened(shell, options, framed, attended=True)


def _opened(
    shell: Shell,
    options: RunOptions,
    work: Callable[[Opening], Awaitable[int]],
    *,
    attended: bool,
    model: str | None = None,
) -> int:
    """Run `work` with a client that it opens; what can be refused without one is refused here.

    Args:
        attended: whether a person answers questions.
    """
    if names_server(shell):

        async def there() -> int:
            async with server_opening(shell) as opening:
                return await work(opening)

        return run_async(there)
    workspace = directory_of(options.workspace)
    loaded = shell.load(workspace)
    if options.resume is None:
        _settle_doubt(shell, loaded, workspace, options)

    async def here() -> int:
        from bowerbird.app import choose_model

        chosen = choose_model(loaded, model or options.model or loaded.settings.cli.model)
        if chosen.note:
            shell.terminal.note(chosen.note, "yellow")
        async with local_opening(loaded, workspace, model=chosen.name, attended=attended) as opening:
            return await work(opening)

    return run_async(here)


def resume(
    shell: Shell,
    *,
    session: str | None,
    output: str,
    quiet: bool,
    timeout: float | None,
    yes: bool,
    workspace: str | None,
) -> int:
    """Run `bowerbird resume`: go on with an unfinished turn, else open the session."""
    from bowerbird.cli.run.oneshot import OneShot, who_answers

    options = RunOptions(
        output=output, quiet=quiet, timeout=timeout, yes=yes, resume=session or "", workspace=workspace
    )
    shell.terminal.quiet = quiet
    thread_id, last, model = with_client(shell, workspace, lambda client: _last_turn(shell, client, session))
    options = replace(options, resume=thread_id)
    ask = who_answers(options, shell.terminal)
    if last is None:
        if not is_interactive():
            shell.terminal.note('nothing is unfinished here; send a message with: bowerbird --resume=ID "…"')
            return DONE
        return _talk(shell, options)
    if last["state"] == "waiting" and ask is None:
        shell.terminal.warn(f"the turn waits for an answer ({last['waiting_for']}); resume it at a terminal")
        return APPROVAL
    turn = last
    return run_with(
        shell,
        options,
        lambda client: OneShot(shell, client, options, ask).go_on(thread_id, turn),
        model=model or None,
    )


async def _last_turn(shell: Shell, client: Client, session: str | None) -> tuple[str, Row | None, str]:
    """Return the session, its last turn when that is unfinished, and the model it is to run on."""
    from bowerbird.cli.review.commands import left_here

    thread_id = await left_here(shell, client, session, ("queued", "running", "failed", "waiting"))
    turns = await client.turns(thread_id)
    last = turns[-1] if turns else None
    is_open = last is not None and last["state"] in ("queued", "running", "failed", "waiting")
    if last is None or not (is_open or last["stop_reason"] == "disconnected"):
        return thread_id, None, ""
    return thread_id, last, str((await client.show(thread_id, messages=False))["model"])


def is_interactive() -> bool:
    """Whether a person sits at both ends of this process."""
    return sys.stdin.isatty() and sys.stdout.isatty()


# ---------------------------------------------------------------- input and directory


def with_input(shell: Shell, options: RunOptions) -> RunOptions:
    """Add piped input: alone it is the prompt, beside a prompt its attachment."""
    if sys.stdin is None or sys.stdin.isatty():
        if options.prompt is None and not sys.stdout.isatty():
            raise CliExit(USAGE, 'no prompt; give one: bowerbird "what to do"')
        return options
    data = sys.stdin.buffer.read(LARGEST_INPUT + 1)
    if len(data) > LARGEST_INPUT:
        raise CliExit(
            USAGE, "standard input is larger than 1 MiB; save it as a file and name that in the prompt"
        )
    text = data.decode("utf-8", "replace")
    if "\ufffd" in text and b"\xef\xbf\xbd" not in data:
        shell.terminal.note("standard input is not all UTF-8; invalid bytes were replaced", "yellow")
    if options.prompt is not None:
        return replace(options, attachment=text or None)
    if not text.strip():
        raise CliExit(USAGE, 'no prompt: standard input is empty; give one: bowerbird "what to do"')
    return replace(options, prompt=text)


def _settle_doubt(shell: Shell, loaded: "Loaded", workspace: Path, options: RunOptions) -> None:
    """Ask before working on a directory that nobody means."""
    doubt = doubt_about(
        workspace,
        home=Path.home().resolve(),
        data_dir=Path(loaded.settings.agent.data_dir).resolve(),
        explicit=options.workspace is not None,
    )
    if doubt is None:
        return
    if doubt.fatal:
        raise CliExit(USAGE, doubt.reason)
    if not is_interactive():
        raise CliExit(USAGE, f"{doubt.reason}; name another with --workspace")
    shell.terminal.warn(f"{doubt.reason}. The agent works on a branch, but would read all of it.", "yellow")
    if typed("Work on it? [y/N] ").strip().lower() not in ("y", "yes"):
        raise CliExit(USAGE)


def message_of(options: RunOptions) -> str:
    """Return the text that is sent: the prompt, then piped input as an attachment."""
    if options.attachment is None:
        return options.prompt or ""
    return f'{options.prompt}\n\n<attachment name="stdin">\n{options.attachment}\n</attachment>'
