"""What "always" means for a call: the rule that covers the next one like it (UI-71). Pure.

Here: words of the decision, the rule that a call gives, whether a rule may cover a call at all. Not here:
how rules match (`permissions`), where they are kept (`sessions/permission_rules.py`).
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, get_args

from bowerbird.agent.policy import Rule
from bowerbird.core.addresses import host_and_port
from bowerbird.core.errors import ToolError
from bowerbird.tools.files.patch_text import parse_patch
from bowerbird.tools.processes.shell_words import SimpleCommand, read_line
from bowerbird.workspace.marks.names import folded_parts, rows_of

Scope = Literal["session", "workspace", "everywhere"]
SCOPES: tuple[Scope, ...] = get_args(Scope)
# A decision of a person is one word, whatever the door.
DECISIONS: Mapping[str, Scope] = {f"always_{scope}": scope for scope in SCOPES}
LONGEST_RULE = 300  # characters

SHELL_TOOLS = frozenset(("bash", "background_run"))
PATHS = ("path", "src", "dst")
# What these do is said by their second word, and what that one does in turn by a third.
_BY_SECOND_WORD = frozenset(
    "apt bun bundle cargo composer docker dotnet gh git go gradle helm kubectl make mix mvn npm npx php pip "
    "pip3 pnpm podman poetry rake rustup systemctl terraform uv uvx yarn".split()
)
_BY_THIRD_WORD = frozenset("compose exec run".split())
# Whatever follows, these look, or check the project's own code.
_BY_FIRST_WORD = frozenset(
    "black cat diff eslint file grep head jest ls mypy prettier pyright pytest rg ruff stat tail tree tsc "
    "vitest wc".split()
)
# Without a script these run what is piped into them.
_INTERPRETERS = frozenset("awk bc deno ghci irb lua node perl php psql python python3 R ruby sqlite3".split())
_PLAIN_WORD = re.compile(r"[A-Za-z][\w:.-]*")
_SPECIAL = re.compile(r"([*?\[])")


def rules_for(name: str, arguments: Mapping[str, Any]) -> tuple[Rule, ...]:
    """Return the rules that together cover a call and others like it; empty where none can be made.

    A command of a well-known tool is covered by its subcommand and any other as it stands, a file by its
    directory, an address by its host, and everything else by the tool's name. A command that the grammar
    cannot read, that runs another one (`sudo`, `sh`) or depends on a variable, and a file that a landing
    would mark, are never covered.

    Args:
        name: the tool, aliases resolved. arguments: the call's.

    Example:
        >>> [str(rule) for rule in rules_for("bash", {"command": "git push origin && rm -r build"})]
        ['bash(git push *)', 'bash(rm -r build)']
    """
    patterns = _patterns(name, arguments)
    rules = [Rule(name)] if patterns is None else [Rule(name, pattern) for pattern in patterns]
    return tuple(rules) if all(len(str(rule)) <= LONGEST_RULE for rule in rules) else ()


def may_cover(arguments: Mapping[str, Any]) -> bool:
    """Whether such a rule reaches a call: one about a path that a landing marks is asked each time.

    Example:
        >>> may_cover({"path": "src/a.py"}), may_cover({"path": ".github/workflows/ci.yml"})
        (True, False)
    """
    patched = patched_paths(arguments)
    if patched is None:
        return False
    parts = [folded_parts(f"/{path}") for path in (*paths_of(arguments), *patched)]
    return not any(rows_of(names) or any(name.startswith(".") for name in names) for names in parts)


def paths_of(arguments: Mapping[str, Any]) -> list[str]:
    """Return the paths that a call names, without `.` and `..`."""
    return [plain_path(value) for key in PATHS if isinstance(value := arguments.get(key), str)]


def plain_path(path: str) -> str:
    """Return a path from the branch's root, as patterns are held against it."""
    kept: list[str] = []
    for part in path.split("/"):
        if part == ".." and kept:
            kept.pop()
        elif part not in ("", ".", ".."):
            kept.append(part)
    return "/".join(kept)


def patched_paths(arguments: Mapping[str, Any]) -> list[str] | None:
    """Return the paths of a call's patch, none where it has no patch, and None where it cannot be read."""
    patch = arguments.get("patch")
    if not isinstance(patch, str):
        return []
    try:
        files = parse_patch(patch)
    except ToolError:
        return None
    return [plain_path(path) for file in files for path in (file.old, file.new) if path]


def _patterns(name: str, arguments: Mapping[str, Any]) -> list[str] | None:
    """Return the patterns for a call, None where the tool's name is all there is to it."""
    command = arguments.get("command")
    if name in SHELL_TOOLS:
        return _of_line(command) if isinstance(command, str) else []
    if isinstance(command, str):
        return [_literal(command)]
    if paths := paths_of(arguments):
        return _once(_of_path(path) for path in paths) if may_cover(arguments) else []
    if isinstance(url := arguments.get("url"), str):
        return _of_address(url)
    return None if may_cover(arguments) else []


def _of_line(command: str) -> list[str]:
    line = read_line(command)
    patterns = [_of_command(one) for one in line.commands]
    return [] if not line.readable or None in patterns else _once(p for p in patterns if p is not None)


def _of_command(command: SimpleCommand) -> str | None:
    text, words = command.text, command.words
    is_plain = bool(words) and command.known and command.bare and not command.runs_others
    if not is_plain or any(letter in text for letter in "$`\n"):
        return None
    if words[0] in _INTERPRETERS and words[1:] in ((), ("-",)):
        return None
    count = _words_that_say(words)
    return _literal(text) if count == 0 else f"{_literal(' '.join(words[:count]))} *"


def _words_that_say(words: Sequence[str]) -> int:
    """Return how many words say what a command does whatever follows; 0 where all of them do."""
    if words[0] in _BY_FIRST_WORD:
        return 1
    if words[0] not in _BY_SECOND_WORD or len(words) < 2 or not _PLAIN_WORD.fullmatch(words[1]):
        return 0
    if words[1] not in _BY_THIRD_WORD:
        return 2
    return 3 if len(words) > 2 and _PLAIN_WORD.fullmatch(words[2]) else 0


def _of_path(path: str) -> str:
    above, slash, _ = path.rpartition("/")
    return f"{_literal(above)}/*" if slash else _literal(path)


def _of_address(url: str) -> list[str]:
    host, _ = host_and_port(url)
    scheme, _, rest = url.partition("://")
    place = rest.partition("/")[0]
    if not host or scheme.lower() not in ("http", "https") or "/" not in rest or not place:
        return [_literal(url)] if host else []
    return [f"{_literal(f'{scheme}://{place}')}/*"]


def _once(patterns: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(patterns))


def _literal(text: str) -> str:
    return _SPECIAL.sub(r"[\1]", text)
