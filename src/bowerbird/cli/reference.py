"""The manual's page of commands, made of the commands themselves (UI-41 … UI-50, UI-60).

Here: the page as text; `python -m bowerbird.cli.reference > docs/reference/commands.md` writes it, a test
compares. Not here: options and their help (`parser.py` and its like), which is where they are changed.
"""

import sys
from collections.abc import Iterator, Mapping
from typing import Any

import typer

from bowerbird.cli.client.opening import SERVER_COMMANDS
from bowerbird.cli.parser import application_of
from bowerbird.cli.terminal.command_line import Anywhere
from bowerbird.cli.terminal.exits import MEANINGS
from bowerbird.cli.terminal.shell import Shell
from bowerbird.cli.terminal.terminal import Terminal

OWN_EXITS: Mapping[str, str] = {
    "land": "3 when paths conflict (nothing landed) or were left out; 4 when only marked paths were refused",
    "undo": "3 when files were edited since (nothing was taken back)",
    "attempt": "1 when no attempt passes all checks",
    "eval": "3 when a task was refused, or a try failed or could not be judged",
    "subagents merge": "3 when paths conflict",
    "doctor": "1 broken, 3 degraded",
    "mcp test": "1 when a server does not work",
    "sandbox run": "the command's own code; 124 after its time limit",
    "config check": "78 when settings are wrong; 3 for warnings, with --strict",
    "config reload": "78 when the server refuses the settings",
    "state import": "3 when some records were left out",
}
"""Codes that mean more than the table says, by command."""


def commands() -> Iterator[tuple[str, Any]]:
    """Yield every visible command with its name, in the order of the help."""
    root = typer.main.get_command(application_of(Shell(Anywhere(), Terminal())))
    yield from _below(root, "")


def _below(group: Any, name: str) -> Iterator[tuple[str, Any]]:
    for word, command in group.commands.items():
        path = f"{name} {word}".strip()
        if getattr(command, "commands", None):
            yield from _below(command, path)
        elif not command.hidden:
            yield path, command


def page() -> str:
    """Return the page."""
    lines = [
        "# Commands",
        "",
        "Generated from the commands themselves; `bowerbird COMMAND --help` says the same. These options",
        "are accepted anywhere: `--config FILE`, `--env-file FILE`, `--data-dir DIR`, `--no-color`, and",
        "`--server URL`, which makes the commands marked *server* ask a running server; its token is read",
        "from `BOWERBIRD_TOKEN`, its address also from `BOWERBIRD_URL`.",
        "",
        "## Exit codes",
        "",
        "| code | meaning |",
        "|---|---|",
        *(f"| {code} | {meaning} |" for code, meaning in MEANINGS.items()),
        "",
        "Where a code means more, the command says so below.",
    ]
    for name, command in commands():
        lines += _section(name, command)
    return "\n".join(lines) + "\n"


def _section(name: str, command: Any) -> list[str]:
    arguments = [p for p in command.params if p.param_type_name == "argument"]
    options = [p for p in command.params if p.param_type_name == "option" and "--help" not in p.opts]
    words = [_argument(p) for p in arguments]
    usage = " ".join(["bowerbird", name, *words, *(["[OPTIONS]"] if options else [])])
    mark = " *server*" if name in SERVER_COMMANDS else ""
    lines = ["", f"## {name}", "", f"`{usage}`{mark}", "", str(command.help).strip().replace("\n", " ")]
    if options:
        lines += ["", "| option | meaning |", "|---|---|"]
        lines += [f"| `{_names(p)}` | {(p.help or '').replace('|', '/')} |" for p in options]
    if name in OWN_EXITS:
        lines += ["", f"Exit code: {OWN_EXITS[name]}."]
    return lines


def _argument(parameter: Any) -> str:
    word = str(parameter.metavar or parameter.name.upper()).strip("[]")
    return word if parameter.required else f"[{word}]"


def _names(option: Any) -> str:
    names = ", ".join([*option.opts, *option.secondary_opts])
    return names if option.is_flag else f"{names} {option.metavar or 'VALUE'}"


if __name__ == "__main__":
    sys.stdout.write(page())
