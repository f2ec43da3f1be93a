"""`bowerbird init [DIR]`: a directory for a server or an assistant, from a few questions (AS-64).

Here: the questions, writing, what to do next. Not here: what is in the files (`assistant_files.py`).
"""

import getpass
import os
import secrets
import shlex
import sys
from collections.abc import Collection
from pathlib import Path

from bowerbird.cli.admin.assistant_files import Answers, NewFile, files_of
from bowerbird.cli.terminal.exits import DONE, FAILED, USAGE, CliExit
from bowerbird.cli.terminal.shell import Shell, typed
from bowerbird.core.atomic import make_file
from bowerbird.core.errors import BowerbirdError
from bowerbird.core.model_presets import PRESETS

CHANNELS = ("none", "telegram")


def init(shell: Shell, *, directory: str | None, yes: bool, dry_run: bool, json: bool) -> int:
    """Write what is not there yet; what exists is never changed.

    Raises:
        CliExit: code 2 where nobody can be asked and `--yes` does not say that defaults will do.
    """
    if not yes and not sys.stdin.isatty():
        raise CliExit(USAGE, "nobody can be asked here; --yes takes the defaults")
    place = Path(directory or ".").expanduser().absolute()
    answers = _defaults() if yes else _asked(shell)
    files = files_of(answers)
    if dry_run:
        for file in files:
            state = "is there, stays as it is" if os.path.lexists(place / file.path) else "would be written"
            shell.terminal.note(f"{place / file.path}: {state}")
        return shell.json({"directory": str(place), "files": [f.path for f in files]}) if json else DONE
    try:
        written = [file.path for file in files if _write(place, file)]
    except OSError as error:
        what = f"{error.filename or place}: {error.strerror or error}"
        raise CliExit(FAILED, f"{what}; nothing after it was written") from error
    if "config.yaml" in written:
        from bowerbird.config.sources import note_initialised

        note_initialised(Path.home(), place)  # `serve` there reads it without being told
    kept = [file.path for file in files if file.path not in written]
    if json:
        return shell.json({"directory": str(place), "written": written, "kept": kept})
    _say(shell, place, answers, written, kept)
    return DONE


def _defaults() -> Answers:
    return Answers(_provider_with_key(), timezone=local_zone(), host_token=secrets.token_hex(16))


def _provider_with_key() -> str:
    """Return the provider whose key is in the environment."""
    with_key = (p.name for p in PRESETS.values() if p.key_variable and os.environ.get(p.key_variable))
    return next(with_key, "anthropic")


def local_zone() -> str:
    """Return the name of this machine's time zone, UTC where it has none.

    Example:
        >>> isinstance(local_zone(), str)
        True
    """
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    spelled = os.environ.get("TZ", "").lstrip(":")
    linked = os.path.realpath("/etc/localtime").partition("/zoneinfo/")[2]
    for name in (spelled, linked):
        try:
            if name:
                return ZoneInfo(name).key
        except (ZoneInfoNotFoundError, ValueError, OSError):
            continue
    return "UTC"


def _asked(shell: Shell) -> Answers:
    terminal, first = shell.terminal, _provider_with_key()
    known = [name for name, preset in PRESETS.items() if preset.base_url or preset.wire == "local"]
    terminal.note(f"Model providers: {', '.join(known)}")
    provider = _choice("Provider", known, first)
    variable = PRESETS[provider].key_variable
    key = ""
    if variable and not os.environ.get(variable):
        key = _secret(f"Key ({variable}; it is not shown; Enter: later)")
    channel = _choice("Chat channel (none, telegram)", CHANNELS, "none")
    token = None
    if channel == "telegram":
        token = _secret("Bot token of @BotFather (it is not shown; Enter: later)")
    return Answers(provider, key, token, _zone(local_zone()), secrets.token_hex(16))


def _choice(question: str, known: Collection[str], default: str) -> str:
    while True:
        answer = typed(f"{question} [{default}]: ").strip().lower() or default
        if answer in known:
            return answer
        sys.stderr.write(f"  {answer!r} is none of {', '.join(known)}\n")


def _zone(default: str) -> str:
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    while True:
        answer = typed(f"Time zone of schedules [{default}]: ").strip() or default
        try:
            return ZoneInfo(answer).key
        except (ZoneInfoNotFoundError, ValueError, OSError):
            sys.stderr.write(f"  {answer!r} is no time zone; for example Europe/Rome\n")


def _secret(question: str) -> str:
    """Ask without showing; what could not stand in one line of `.env` is asked again."""
    while True:
        answer = getpass.getpass(f"{question}: ").strip()
        if all(character.isprintable() and character not in " '\"#$\\" for character in answer):
            return answer
        sys.stderr.write("  a key has no blanks, quotes, # or $\n")


def _write(place: Path, file: NewFile) -> bool:
    """Make a file with its permissions from the first moment; return whether it is new."""
    target = place / file.path
    if file.text is None:
        if target.is_dir():
            return False
        target.mkdir(parents=True)
        return True
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        make_file(target, file.text.encode(), mode=file.mode)
    except FileExistsError:
        return False
    return True


def _say(shell: Shell, place: Path, answers: Answers, written: list[str], kept: list[str]) -> None:
    terminal = shell.terminal
    if written:
        terminal.note(f"wrote {', '.join(written)} in {place}")
    if kept:
        terminal.note(f"left alone, being there already: {', '.join(kept)}")
    terminal.note(f"sandbox: {_tier(shell)}; `bowerbird doctor` says more")
    go = "" if place == Path.cwd() else f"cd {shlex.quote(str(place))} && "
    lines = [f"{go}bowerbird serve"]
    if answers.bot_token is not None:
        lines.append(f"{go}bowerbird channels pair telegram     # prints the code that admits you")
    terminal.note("next:\n" + "\n".join(f"  {line}" for line in lines))


def _tier(shell: Shell) -> str:
    """Return which isolation commands have here, as `doctor` says it at length."""
    import asyncio
    import tempfile

    from bowerbird.app.sandboxes import open_sandboxes

    async def probed(scratch: str) -> str:
        host = open_sandboxes(shell.load(silent=True).settings, Path(scratch))
        try:
            return (await host.status()).tier
        finally:
            await host.close()

    try:
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch:
            return f"tier {asyncio.run(probed(scratch))}"
    except (BowerbirdError, OSError) as error:
        return f"could not be probed: {error}"
