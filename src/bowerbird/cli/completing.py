"""Shell completion: the scripts, and the words they ask for (UI-49).

Here: which words may stand where. Not here: parsing of commands. Session ids are read only
when one is asked for, so that most completions stay quick.
"""

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from bowerbird.cli.terminal.command_line import COMMANDS
from bowerbird.cli.terminal.exits import DONE, USAGE, CliExit
from bowerbird.cli.terminal.shell import Shell
from bowerbird.core.atomic import replace_file
from bowerbird.core.errors import BowerbirdError

_SCRIPTS = {
    "bash": """\
_bowerbird() {
    local IFS=$'\\n'
    COMPREPLY=($(bowerbird complete-words -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
    [[ ${#COMPREPLY[@]} -eq 0 ]] && compopt -o default
}
complete -F _bowerbird bowerbird
""",
    "zsh": """\
#compdef bowerbird
_bowerbird() {
    local -a found
    found=("${(@f)$(bowerbird complete-words -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
    if (( ${#found} )) && [[ -n ${found[1]} ]]; then compadd -Q -- "${found[@]}"; else _files; fi
}
# What zsh loads at the first Tab is called, too; what ~/.zshrc evaluates is only made known.
if [[ $0 == _bowerbird ]]; then _bowerbird "$@"; else compdef _bowerbird bowerbird; fi
""",
    "fish": """\
function __bowerbird_words
    set -l words (commandline -opc) (commandline -ct)
    bowerbird complete-words -- $words[2..-1] 2>/dev/null
end
complete -c bowerbird -a '(__bowerbird_words)'
""",
}
_SESSION_FIRST = ("diff", "land", "discard", "show", "rename", "delete", "resume", "fork", "export")
_PATHS_AFTER = ("diff", "land")
_ANYWHERE = ("--config", "--env-file", "--data-dir", "--no-color", "--help")


def completion(shell: Shell, *, name: str | None, install: bool = False) -> int:
    """Print the completion script of a shell, or put it where that shell looks for it.

    Args:
        name: of the shell; None = the one that SHELL names.
    """
    name = name or Path(os.environ.get("SHELL", "")).name
    if name not in _SCRIPTS:
        what = f"no completion for {name!r}" if name else "which shell is not known (SHELL is not set)"
        raise CliExit(USAGE, f"{what}; choose bash, zsh or fish")
    if not install:
        shell.terminal.write(_SCRIPTS[name])
        return DONE
    file = _place(name)
    file.parent.mkdir(parents=True, exist_ok=True)
    replace_file(file, _SCRIPTS[name].encode())
    shell.terminal.note(f"completion for {name} is in {file}; it works in a new shell")
    if name == "zsh":
        shell.terminal.note(
            f"zsh finds it with this line in ~/.zshrc, before compinit: fpath+=({file.parent})"
        )
    return DONE


def _place(name: str) -> Path:
    """Return the file of the user's own that a shell reads by itself; zsh has none before it is told."""
    home = Path.home()
    data = Path(os.environ.get("XDG_DATA_HOME") or home / ".local" / "share")
    config = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config")
    return {
        "bash": data / "bash-completion" / "completions" / "bowerbird",
        "zsh": data / "zsh" / "site-functions" / "_bowerbird",
        "fish": config / "fish" / "completions" / "bowerbird.fish",
    }[name]


def complete_words(shell: Shell, *, words: Sequence[str]) -> int:
    """Print the words that may stand in place of the last one."""
    for word in candidates(shell, list(words) or [""]):
        shell.terminal.write(word + "\n")
    return DONE


def candidates(shell: Shell, words: Sequence[str]) -> list[str]:
    """Return the words that complete the last of `words` (those after `bowerbird`)."""
    *before, last = words
    found = _values(shell, before) or _names(shell, before, last)
    return sorted({word for word in found() if word.startswith(last)})


def _names(shell: Shell, before: Sequence[str], last: str) -> Callable[[], list[str]]:
    command = next((word for word in before if not word.startswith("-")), None)
    if command is None:
        visible = [name for name in COMMANDS if name != "complete-words"]
        # `run` is what is meant where no command is named.
        return lambda: [*_flags("run", ()), *_ANYWHERE] if last.startswith("-") else visible
    if last.startswith("-"):
        return lambda: [*_flags(command, before), *_ANYWHERE]
    if group := _group(command):
        chosen = [word for word in before if word in group]
        if not chosen:
            return lambda: group
        return _setting_keys if command == "config" and chosen[0] in ("show", "explain") else list[str]
    if command == "completion":
        return lambda: list(_SCRIPTS)
    positional = [word for word in before[1:] if not word.startswith("-")]
    if command in _SESSION_FIRST and not positional:
        return lambda: [*_session_ids(shell), *(_paths(last) if command in _PATHS_AFTER else ())]
    return (lambda: _paths(last)) if command in _PATHS_AFTER else list[str]


def _values(shell: Shell, before: Sequence[str]) -> Callable[[], list[str]] | None:
    """Return the values of the option before the word, None when it takes none."""
    option = before[-1] if before else ""
    fixed = {
        "--output": ["text", "json", "stream-json"],
        "--land": ["review", "turn", "step"],
        "--thinking-effort": ["high", "max"],
    }
    if option in fixed:
        return lambda: fixed[option]
    dynamic: dict[str, Callable[[], list[str]]] = {
        "--preset": lambda: _presets(shell),
        "-p": lambda: _presets(shell),
        "--model": lambda: _models(shell),
        "-m": lambda: _models(shell),
        "--resume": lambda: _session_ids(shell),
    }
    if option == "-p" and before[:1] == ["land"]:
        return None
    return dynamic.get(option)


def _flags(command: str, before: Sequence[str]) -> list[str]:
    from bowerbird.cli.parser import flags_of

    group = _group(command)
    return flags_of([command, *[word for word in before if word in group]])


def _group(command: str) -> list[str]:
    from bowerbird.cli.parser import commands_of

    return commands_of([command])


def _session_ids(shell: Shell) -> list[str]:
    from bowerbird.cli.terminal.shell import run as run_async

    async def read() -> list[str]:
        from bowerbird.app import open_application

        async with open_application(shell.load(Path.cwd())) as application:
            return [session.thread_id for session in await application.sessions.list(limit=200)]

    try:
        return run_async(read)
    except (BowerbirdError, OSError):
        return []  # completion never complains


def _presets(shell: Shell) -> list[str]:
    from bowerbird.agent.prompt import list_presets

    try:
        return list(list_presets(Path(shell.load(Path.cwd()).settings.agent.prompts_dir)))
    except BowerbirdError:
        return []


def _models(shell: Shell) -> list[str]:
    try:
        settings = shell.load(Path.cwd()).settings
    except BowerbirdError:
        return []
    named = [f"{settings.provider.name}:{settings.provider.model}", "local:default", *settings.models]
    others = (settings.agent.subagent_model, settings.agent.compact_model, settings.cli.model)
    return [*named, *(name for name in others if name)]


def _setting_keys() -> list[str]:
    from bowerbird.config.keys import walk

    keys = [info.name for info in walk() if "*" not in info.path]
    return [*keys, *{key.partition(".")[0] for key in keys}]


def _paths(last: str) -> list[str]:
    start = Path(last).parent if not last.endswith("/") else Path(last)
    try:
        entries = list(start.iterdir())
    except OSError:
        return []
    prefix = "" if str(start) == "." and not last.startswith("./") else f"{start}/".replace("//", "/")
    return [f"{prefix}{entry.name}{'/' if entry.is_dir() else ''}" for entry in entries]
