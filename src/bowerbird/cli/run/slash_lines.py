"""Slash commands of the interactive session (UI-52). Pure.

Here: names, arguments, what a typed line is. Not here: what the commands do.
"""

import difflib
from collections.abc import Collection

import msgspec

COMMANDS: dict[str, str] = {
    "help": "this list",
    "clear": "start a new session here",
    "compact": "[focus] summarise the history now",
    "model": "[name] list the models, or change to one",
    "history": "[n=20|all] the last messages",
    "resume": "continue the last unfinished turn",
    "cost": "tokens and money of this session",
    "diff": "[paths] what the branch changes",
    "land": "[paths] [--patch] [--include path] [--commit] [-m text] write the changes into the directory",
    "undo": "[landing] [--force] [--commit] take the last landing back",
    "discard": "throw the branch's changes away",
    "fork": "[turn] go on in a copy of this session",
    "sessions": "sessions of this directory",
    "plan": "plan before doing",
    "execute": "leave plan mode",
    "teams": "on|off teammates",
    "approval": "on|off ask before every unsafe tool",
    "thinking": "[on|off|high|max] show or change thinking",
    "export": "[file] write this conversation as .md, .html or .json",
    "init": "have the agent write AGENTS.md",
    "context": "how full the context is",
    "show": "N the whole result of tool call N",
    "quit": "leave; everything is kept",
    "exit": "leave; everything is kept",
}


class Said(msgspec.Struct, frozen=True):
    """Text for the model."""

    text: str


class Slash(msgspec.Struct, frozen=True):
    """A command for the terminal."""

    name: str
    argument: str = ""


class Command(msgspec.Struct, frozen=True):
    """A line for the shell, on the branch."""

    line: str


class Fact(msgspec.Struct, frozen=True):
    """Something to remember."""

    text: str


class Refused(msgspec.Struct, frozen=True):
    """A line that is neither; nothing is sent."""

    message: str


def read_line(line: str, known: Collection[str] = COMMANDS.keys()) -> Said | Slash | Command | Fact | Refused:
    """Return what a typed line is; a doubled sign sends the text with a single one.

    Args:
        known: names of commands, custom ones too.

    Example:
        >>> read_line("/dif").message
        'unknown command /dif; did you mean /diff? //dif sends the text /dif'
        >>> read_line("//text")
        Said(text='/text')
        >>> read_line("!make test"), read_line("#use tabs")
        (Command(line='make test'), Fact(text='use tabs'))
    """
    text = line.strip()
    if text.startswith(("//", "!!", "##")):
        return Said(text[1:])
    if text.startswith("!") and text[1:].strip():
        return Command(text[1:].strip())
    # What is pasted with headings is text.
    if text.startswith("#") and "\n" not in text and text[1:].strip():
        return Fact(text[1:].strip())
    if not text.startswith("/"):
        return Said(line)
    name, _, argument = text[1:].partition(" ")
    if name in known:
        return Slash(name, argument.strip())
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    hint = f"; did you mean /{near[0]}?" if near else "; /help lists them."
    return Refused(f"unknown command /{name}{hint} //{name} sends the text /{name}")
