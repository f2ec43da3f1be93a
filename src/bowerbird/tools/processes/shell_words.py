"""The simple commands of a shell line, as permission rules see them (AG-60).

Here: reading a line with a real grammar and naming every command it would run. Not here: rules,
decisions, and running anything. tree-sitter is loaded at the first line that must be read.
"""

from functools import lru_cache
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

# These run the command that their own arguments name.
_WRAPPERS = frozenset(
    "builtin chronic command doas env exec find flock ionice nice nohup parallel setsid stdbuf sudo "
    "time timeout unshare watch xargs".split()
)
_SHELLS = frozenset("ash bash dash eval ksh sh zsh".split())
_COMMANDS = frozenset(("command", "declaration_command", "unset_command", "test_command"))
_MAX_NESTING = 8
# What the grammar is given in place of each byte outside ASCII: a letter of words, and of no name. To the
# shell those are plain letters too; the grammar's scanner reads beyond a table at U+FFFFF, which ends the
# process.
_ASCII = bytes(byte if byte < 0x80 else ord("%") for byte in range(256))


class SimpleCommand(msgspec.Struct, frozen=True):
    """One command of a line: its words without quotes; expansions keep their source text.

    Args:
        words: name and arguments.
        known: the name is literal, so it is certain what runs.
        bare: no variable is set for it (`A=1 name` may change what `name` does).
    """

    words: tuple[str, ...]
    known: bool = True
    bare: bool = True

    @property
    def text(self) -> str:
        """The words with one space between, the form that patterns match."""
        return " ".join(self.words)

    @property
    def runs_others(self) -> bool:
        """Whether it runs what its own words say: `sudo`, `xargs`, `sh`."""
        return bool(self.words) and self.words[0].rsplit("/", 1)[-1] in _WRAPPERS | _SHELLS


class ShellLine(msgspec.Struct, frozen=True):
    """All simple commands of a line, those in `$(…)`, loops and functions too."""

    commands: tuple[SimpleCommand, ...]
    readable: bool = True

    @property
    def hidden(self) -> tuple[SimpleCommand, ...]:
        """Commands that run through others: `env rm x`, `sh -c 'rm x'`, `/bin/rm x`."""
        return tuple(inner for command in self.commands for inner in _inner(command, _MAX_NESTING))


@lru_cache(maxsize=256)
def read_line(line: str) -> ShellLine:
    """Return the commands of `line`; `readable` is False when the grammar cannot follow it."""
    source = line.encode("utf-8", "surrogatepass")
    root = _parser().parse(source.translate(_ASCII)).root_node
    commands: list[SimpleCommand] = []
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if node.type in _COMMANDS:
            commands.append(_command(node, source))
        elif node.type == "variable_assignment" and _stands_alone(node):
            commands.append(SimpleCommand((_raw(node, source),), known=True, bare=False))
        waiting.extend(reversed(node.children))
    return ShellLine(tuple(commands), not root.has_error)


def _command(node: "Node", source: bytes) -> SimpleCommand:
    words: list[str] = []
    known, bare = True, True
    for child in node.children:
        if child.type == "variable_assignment" and node.type == "command":
            bare = False
        elif child.type.endswith("_redirect"):
            continue
        else:
            text = _literal(child, source)
            if not words:
                known = text is not None
            words.append(_raw(child, source) if text is None else text)
    return SimpleCommand(tuple(words), known, bare)


def _literal(node: "Node", source: bytes) -> str | None:
    """Return the word that the shell makes of `node`, None when that is known only at run time."""
    kind = node.type
    if kind == "raw_string":
        return _raw(node, source)[1:-1]
    if kind in ("word", "string_content", "number", "variable_name") and not node.named_children:
        return _unescaped(_raw(node, source), quoted=kind == "string_content")
    if not node.is_named:
        return "" if kind == '"' else _raw(node, source)
    if kind in ("command_name", "concatenation", "string"):
        parts = [_literal(child, source) for child in node.children]
        if kind == "string" and not parts:
            return ""
        return None if None in parts else "".join(p for p in parts if p is not None)
    return None


def _unescaped(text: str, *, quoted: bool) -> str:
    out: list[str] = []
    letters = iter(text)
    for letter in letters:
        if letter != "\\":
            out.append(letter)
            continue
        following = next(letters, "")
        if quoted and following not in '$`"\\\n':
            out.append("\\")
        if following != "\n":
            out.append(following)
    return "".join(out)


def _inner(command: SimpleCommand, depth: int) -> list[SimpleCommand]:
    if not command.words or depth == 0:
        return []
    name = command.words[0].rsplit("/", 1)[-1]
    found: list[SimpleCommand] = []
    if name != command.words[0]:
        found.append(SimpleCommand((name, *command.words[1:]), command.known, command.bare))
    rest = command.words[1:]
    if name in _WRAPPERS:
        # Which word is the command depends on the wrapper's options, so each could be.
        candidates = [SimpleCommand(rest[i:]) for i in range(len(rest))]
        found.extend(candidates)
        nested = [c for c in candidates if c.words[0].rsplit("/", 1)[-1] in _SHELLS]
    elif name in _SHELLS:
        nested = [SimpleCommand((name, *rest))]
    else:
        nested = []
    for shell in nested:
        for word in _scripts(shell):
            for one in read_line(word).commands:
                found.extend((one, *_inner(one, depth - 1)))
    return found


def _scripts(shell: SimpleCommand) -> list[str]:
    rest = shell.words[1:]
    if shell.words[0].rsplit("/", 1)[-1] == "eval":
        return [" ".join(rest)]
    takes_script = any(w.startswith("-") and not w.startswith("--") and "c" in w for w in rest)
    return [w for w in rest if not w.startswith("-")][:1] if takes_script else []


def _stands_alone(node: "Node") -> bool:
    return node.parent is None or node.parent.type not in _COMMANDS


def _raw(node: "Node", source: bytes) -> str:
    return source[node.start_byte : node.end_byte].decode("utf-8", "replace")


@lru_cache(maxsize=1)
def _parser() -> "Parser":
    import tree_sitter
    import tree_sitter_bash

    return tree_sitter.Parser(tree_sitter.Language(tree_sitter_bash.language()))
