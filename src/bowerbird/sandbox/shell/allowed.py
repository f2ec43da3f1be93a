"""Which commands a list of names lets through (SB-39, SB-40, SB-42). Pure.

Here: the list and the one check. Not here: running. The list is a policy against mistakes; what keeps a
command in is the sandbox.
"""

import os
import shlex
from collections.abc import Callable, Collection, Sequence

import msgspec

ALLOWED_COMMANDS = (
    "curl", "wget", "python", "python3", "pip", "pip3", "git", "jq", "ffmpeg", "ffprobe", "nano-pdf", "echo",
    "date", "env", "whoami", "tar", "gzip", "gunzip", "unzip", "wc", "sort", "uniq", "tr", "cut", "base64",
    "sha256sum", "md5sum",
)  # fmt: skip
_METACHARACTERS = ";|&`$"
_ENV_FLAGS = frozenset(("-", "-i", "-0", "-v", "--ignore-environment", "--null", "--debug", "--version"))

Find = Callable[[str], str | None]


class Allowed(msgspec.Struct, frozen=True):
    """A command that may run: its words, the first of which is looked up in PATH."""

    words: tuple[str, ...]


class Refused(msgspec.Struct, frozen=True):
    """A command that may not; nothing ran."""

    reason: str


def check_allowed(
    command: str | Sequence[str], allowed: Collection[str], find: Find, *, same: Callable[[str, str], bool]
) -> Allowed | Refused:
    """Return the words to run without a shell, or why not.

    Args:
        command: a string, split as POSIX shells split words and refused with any of `; | & backtick $`; or a
            list, whose words are taken as they are.
        allowed: names.
        find: returns where PATH has a name, None where it has not; a branch is never in PATH.
        same: whether two paths are one file.

    >>> check_allowed("git status", ("git",), lambda n: f"/usr/bin/{n}", same=str.__eq__)
    Allowed(words=('git', 'status'))
    >>> check_allowed("git status; id", ("git",), lambda n: None, same=str.__eq__).reason
    'the command contains ";"; commands run without a shell, one at a time'
    """
    if isinstance(command, str):
        if not command.strip():
            return Refused("the command is empty")
        words = _split(command)
        if isinstance(words, Refused):
            return words
    else:
        words = tuple(command)
        if any("\0" in word for word in words):
            return Refused("the command contains a NUL character")
    if not words or not words[0]:
        return Refused("the command is empty")
    return _check_name(words, allowed, find, same) or Allowed(words)


def _split(command: str) -> tuple[str, ...] | Refused:
    if "\0" in command:
        return Refused("the command contains a NUL character")
    for character in command:
        if character in _METACHARACTERS:
            return Refused(f'the command contains "{character}"; commands run without a shell, one at a time')
    if _has_bare_newline(command.strip()):
        return Refused("the command has several lines; commands run one at a time")
    try:
        return tuple(shlex.split(command))
    except ValueError as error:
        return Refused(f"the command cannot be split into words: {str(error).lower()}")


def _has_bare_newline(command: str) -> bool:
    """Whether a line break stands outside of quotes, where a shell would begin another command."""
    quote, escaped = "", False
    for character in command:
        if escaped:
            escaped = False
        elif character == "\\" and quote != "'":
            escaped = True
        elif quote:
            quote = "" if character == quote else quote
        elif character in "'\"":
            quote = character
        elif character in "\r\n":
            return True
    return False


def _check_name(
    words: Sequence[str], allowed: Collection[str], find: Find, same: Callable[[str, str], bool]
) -> Refused | None:
    first = words[0]
    name = os.path.basename(first)
    if name not in allowed:
        return Refused(f'"{name or first}" is not allowed; allowed commands: {", ".join(allowed)}')
    if "/" in first:
        found = find(name)
        if not first.startswith("/") or found is None or not same(first, found):
            return Refused(f'"{first}" is not the {name} that PATH finds; write just {name}')
    if name == "env" and (program := _program_of_env(words[1:])) is not None:
        return Refused(f'env may only show the environment, not start "{program}"')
    return None


def _program_of_env(words: Sequence[str]) -> str | None:
    """Return the word with which `env` would go beyond showing and changing variables."""
    rest = iter(words)
    for word in rest:
        if word in ("-u", "--unset"):
            next(rest, None)
        elif word not in _ENV_FLAGS and not word.startswith("--unset=") and not _is_assignment(word):
            return word
    return None


def _is_assignment(word: str) -> bool:
    name, equals, _ = word.partition("=")
    return bool(equals) and name.isidentifier()
