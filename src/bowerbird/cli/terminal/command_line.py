"""What the arguments mean before any command sees them. Pure.

Here: options that stand anywhere, a prompt without a command, typos of commands. Not here:
the options of single commands (`commands_*.py`).
"""

import difflib
import re
from collections.abc import Collection, Sequence
from pathlib import Path

import msgspec

from bowerbird.cli.terminal.exits import USAGE, CliExit

COMMANDS = (
    "run", "diff", "land", "undo", "landings", "discard", "sessions", "show", "rename", "delete", "resume",
    "fork", "doctor", "config", "model", "sandbox", "serve", "tail", "send", "cancel", "approve", "deny",
    "comment", "usage", "token", "mcp", "memory", "state", "attempt", "eval", "subagents", "tools", "skills",
    "agents", "completion", "complete-words", "backup", "restore", "disk", "trash", "export",
    "permissions", "init", "gateway", "service", "tasks", "channels",
)  # fmt: skip
_VALUED = ("--config", "--env-file", "--data-dir", "--server")
_PLAIN = ("--no-color",)


class Anywhere(msgspec.Struct, frozen=True):
    """Options that every command takes, before or after its name."""

    config: str | None = None
    env_file: str | None = None
    data_dir: str | None = None
    no_color: bool = False
    server: str | None = None

    def flags(self) -> dict[str, str]:
        """Return the settings that these options give, by key."""
        if self.data_dir is None:
            return {}
        return {"agent.data_dir": str(Path(self.data_dir).expanduser().absolute())}


class CommandLine(msgspec.Struct, frozen=True):
    """The command and its own arguments."""

    anywhere: Anywhere
    arguments: tuple[str, ...] = msgspec.field(default=())


def read_command_line(arguments: Sequence[str], commands: Collection[str] = COMMANDS) -> CommandLine:
    """Divide `arguments`: options of every command, then a command with its own.

    A first word that is no command is a prompt for `run`; a word that is nearly a command is
    refused, so that a typo does not cost a model call, and `help` is a question about this program.

    Raises:
        CliExit: code 2.

    Example:
        >>> read_command_line(["fix the test", "--no-color"]).arguments
        ('run', 'fix the test')
    """
    anywhere, rest = _take_anywhere(arguments)
    rest = _command_first(rest, commands)
    if not rest or rest[0].startswith("-"):
        if rest and rest[0] in ("--help", "-h", "--version", "-V"):
            return CommandLine(anywhere, tuple(rest))
        return CommandLine(anywhere, ("run", *rest))
    first = rest[0]
    if rest == ["help"] or (first == "help" and len(rest) == 2 and rest[1] in commands):
        return CommandLine(anywhere, (*rest[1:], "--help"))
    if first in commands:
        return CommandLine(anywhere, tuple(rest))
    near = difflib.get_close_matches(first, commands, n=1, cutoff=0.7)
    if near and len(rest) == 1 and " " not in first:
        raise CliExit(
            USAGE,
            f"unknown command {first!r}; did you mean `bowerbird {near[0]}`? "
            f"To send it to the agent: bowerbird run {first}",
        )
    return CommandLine(anywhere, ("run", *rest))


def _command_first(rest: list[str], commands: Collection[str]) -> list[str]:
    """`-w DIR land` is `land -w DIR`; of other options in front, `run` is meant."""
    count = (
        2
        if rest[:1] in (["-w"], ["--workspace"])
        else int(rest[:1] != [] and rest[0].startswith("--workspace="))
    )
    if count and len(rest) > count and rest[count] in commands:
        return [rest[count], *rest[:count], *rest[count + 1 :]]
    return rest


def _take_anywhere(arguments: Sequence[str]) -> tuple[Anywhere, list[str]]:
    found: dict[str, str] = {}
    rest: list[str] = []
    plain = False
    items = iter(arguments)
    for item in items:
        name, equals, value = item.partition("=")
        if item == "--":
            rest += [item, *items]
        elif item in _PLAIN:
            plain = True
        elif name in _VALUED:
            text = value if equals else next(items, None)
            if text is None:
                raise CliExit(USAGE, f"{name} needs a value")
            found[name] = text
        else:
            rest.append(item)
    return (
        Anywhere(
            found.get("--config"),
            found.get("--env-file"),
            found.get("--data-dir"),
            plain,
            found.get("--server"),
        ),
        rest,
    )


_OPTIONAL = ("--resume",)
_ID = re.compile(r"(?=.*[0-9_])[A-Za-z0-9._@%-]{4,200}|[0-9a-f]{4,12}")


def join_optional_values(arguments: Sequence[str]) -> list[str]:
    """Return arguments with `--resume` joined to its id, or to nothing when no id follows.

    Example:
        >>> join_optional_values(["--resume", "go on"]), join_optional_values(["--resume", "4be2"])
        (['--resume=', 'go on'], ['--resume=4be2'])
    """
    joined: list[str] = []
    items = list(arguments)
    while items:
        item = items.pop(0)
        if item == "--":
            return [*joined, item, *items]
        if item in _OPTIONAL:
            item += "=" + (items.pop(0) if items and _ID.fullmatch(items[0]) else "")
        joined.append(item)
    return joined
