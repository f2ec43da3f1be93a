"""`bowerbird run`, `bowerbird "PROMPT"` and `resume`: which form runs, and with what (UI-41, UI-50).

Here: input, directory, model, session; then one of `oneshot.py` and `chat.py`. Not here: what
these do.
"""

import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bowerbird.cli.exits import APPROVAL, DONE, USAGE, CliExit
from bowerbird.cli.picking import pick_session
from bowerbird.cli.run_options import RunOptions, doubt_about
from bowerbird.cli.shell import Shell, directory_of
from bowerbird.cli.shell import run as run_async

if TYPE_CHECKING:
    from bowerbird.app.application import Application
    from bowerbird.config import Loaded
    from bowerbird.sessions.values import NewSession, SessionInfo

    TextOf = Callable[[Application, SessionInfo], Awaitable[str]]

LARGEST_INPUT = 1 << 20
_OWN_FLAGS = {"max_turns": "agent.max_turns"}


def run(shell: Shell, **values: Any) -> int:
    """Run `bowerbird run`: one turn with a prompt or piped input, else the interactive session."""
    options = with_input(shell, RunOptions(**values))
    workspace = directory_of(options.workspace)
    loaded = shell.load(workspace)
    _settle_doubt(shell, loaded, workspace, options)
    shell.terminal.quiet = options.quiet
    if options.prompt is None and options.attachment is None:
        from bowerbird.cli.chat import chat

        return run_async(lambda: chat(shell, loaded, options, workspace))
    return run_async(lambda: _one_turn(shell, loaded, options, workspace))


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
    options = RunOptions(output=output, quiet=quiet, timeout=timeout, yes=yes, resume=session or "")
    directory = directory_of(workspace)
    loaded = shell.load(directory)
    shell.terminal.quiet = quiet
    code = run_async(lambda: _resume_turn(shell, loaded, options, directory))
    if code is not None:
        return code
    if not is_interactive():
        shell.terminal.note('nothing is unfinished here; send a message with: bowerbird --resume=ID "…"')
        return DONE
    from bowerbird.cli.chat import chat

    return run_async(lambda: chat(shell, loaded, options, directory))


def is_interactive() -> bool:
    """Whether a person sits at both ends of this process."""
    return sys.stdin.isatty() and sys.stdout.isatty()


# ---------------------------------------------------------------- input and directory


def with_input(shell: Shell, options: RunOptions) -> RunOptions:
    """Add piped input: alone it is the prompt, beside a prompt its attachment."""
    from dataclasses import replace

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
        shell.terminal.note("standard input is not all UTF-8; what could not be read was replaced", "yellow")
    if options.prompt is not None:
        return replace(options, attachment=text or None)
    if not text.strip():
        raise CliExit(USAGE, 'no prompt: standard input is empty; give one: bowerbird "what to do"')
    return replace(options, prompt=text)


def _settle_doubt(shell: Shell, loaded: "Loaded", workspace: Path, options: RunOptions) -> None:
    """Ask before working on a directory that nobody means (UI-69)."""
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
    if input("Work on it? [y/N] ").strip().lower() not in ("y", "yes"):
        raise CliExit(USAGE)


def message_of(options: RunOptions) -> str:
    """Return the text that is sent: the prompt, then piped input as an attachment."""
    if options.attachment is None:
        return options.prompt or ""
    return f'{options.prompt}\n\n<attachment name="stdin">\n{options.attachment}\n</attachment>'


# ---------------------------------------------------------------- sessions


def new_session(options: RunOptions, loaded: "Loaded", workspace: Path) -> "NewSession":
    """Return how a session of this command begins."""
    from bowerbird.sessions.values import NewSession

    settings = loaded.settings
    return NewSession(
        kind="cli",
        preset=options.preset or settings.cli.preset,
        flags=options.session_flags(loaded),
        thinking_effort=options.effort(loaded),
        workspace=str(workspace),
        policy=options.land or settings.workspace.landing,
        hide=settings.workspace.hidden,
    )


async def session_for(
    application: "Application", options: RunOptions, loaded: "Loaded", workspace: Path
) -> "SessionInfo":
    """Return the session to talk to: the one to resume, else a new one."""
    if options.resume is not None:
        found = await pick_session(application.sessions, options.resume, workspace)
        changes = options.session_flags(loaded)
        new = {name: value for name, value in changes.items() if found.flags.get(name) != value}
        if new:
            await application.sessions.set_flags(found.thread_id, new)
        return found
    _check_preset(options, loaded)
    return await application.sessions.create(new_session(options, loaded, workspace))


def _check_preset(options: RunOptions, loaded: "Loaded") -> None:
    """Refuse an unknown preset before a session is made for it."""
    from bowerbird.agent.prompt import load_preset

    settings = loaded.settings
    load_preset(
        options.preset or settings.cli.preset or settings.agent.preset, Path(settings.agent.prompts_dir)
    )


async def run_text(
    shell: Shell, loaded: "Loaded", options: RunOptions, workspace: Path, text_of: "TextOf"
) -> int:
    """Run one turn of the session that `options` name and watch it; returns the exit code.

    Args:
        text_of: makes the message once the session is known.
    """
    from bowerbird.app import choose_model, open_application
    from bowerbird.cli.oneshot import OneShot, who_answers

    chosen = choose_model(loaded, options.model or loaded.settings.cli.model)
    if chosen.note:
        shell.terminal.note(chosen.note, "yellow")
    attended = who_answers(options)
    async with open_application(
        loaded, workspace=workspace, model=chosen.name, attended=attended is not None
    ) as application:
        session = await session_for(application, options, loaded, workspace)
        shot = OneShot(shell, application, options, attended)
        return await shot.run(session, await text_of(application, session))


async def _one_turn(shell: Shell, loaded: "Loaded", options: RunOptions, workspace: Path) -> int:
    async def text_of(_: object, __: object) -> str:
        return message_of(options)

    return await run_text(shell, loaded, options, workspace, text_of)


async def _resume_turn(shell: Shell, loaded: "Loaded", options: RunOptions, workspace: Path) -> int | None:
    """Go on with the unfinished turn of a session; None when there is none."""
    from bowerbird.app import choose_model, open_application
    from bowerbird.cli.oneshot import OneShot, who_answers

    attended = who_answers(options)
    async with open_application(loaded) as looking:
        session = await pick_session(looking.sessions, options.resume, workspace)
        turns = await looking.sessions.turns(session.thread_id)
    last = turns[-1] if turns else None
    if last is None or last.state not in ("queued", "running", "failed", "waiting"):
        return None
    chosen = choose_model(loaded, session.flags.get("model"))
    async with open_application(
        loaded, workspace=workspace, model=chosen.name, attended=attended is not None
    ) as application:
        shot = OneShot(shell, application, options, attended)
        if last.state == "waiting" and attended is None:
            shell.terminal.warn(f"the turn waits for an answer ({last.waiting_for}); resume it at a terminal")
            return APPROVAL
        return await shot.go_on(session, last)
