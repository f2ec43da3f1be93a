"""Fields of a text: by patterns, by lines with a colon, between marks, in tags (PR-36).

Here: those functions. Patterns run in a process of their own (`search_child`), since nothing else ends a
search that would take for ever. Not here: JSON and code.
"""

import json
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from bowerbird.core.errors import InvalidArgument
from bowerbird.core.processes.host_programs import run

SEARCH_S = 1.0
SEARCHED_CHARS = 1_000_000
MOST_FIELDS = 100
_START_S = 10.0  # for the process to begin on a busy machine
_CHILD = Path(__file__).with_name("search_child.py")


def parse_structured_output(text: str, fields: Mapping[str, str]) -> dict[str, str | None]:
    """Return for each field what its pattern finds first: group 1, the whole match without groups, or None.

    A search sees the first megabyte of the text and is given up after a second. Blocks: call it in a thread.

    Args:
        fields: regular expressions of Python by field, 100 at most.

    Raises:
        InvalidArgument: a pattern that is none, which is named; too many of them.

    Example:
        >>> parse_structured_output("score: 7", {"score": r"score: ([0-9]+)", "name": "name: (.*)"})
        {'score': '7', 'name': None}
    """
    if len(fields) > MOST_FIELDS:
        raise InvalidArgument(f"{len(fields)} fields are asked for, {MOST_FIELDS} are allowed")
    for name, pattern in fields.items():
        try:
            re.compile(pattern)
        except (re.error, RecursionError, OverflowError) as error:
            raise InvalidArgument(
                f"the pattern of field {name!r} is no regular expression: {error}"
            ) from error
    if not fields:
        return {}
    job = json.dumps({"text": text[:SEARCHED_CHARS], "patterns": list(fields.values()), "seconds": SEARCH_S})
    found: list[str | None] = []
    try:
        limit_s = _START_S + SEARCH_S * len(fields)
        answer = run(
            [sys.executable, "-I", "-S", str(_CHILD)], stdin=job.encode(), env={}, timeout=limit_s
        ).stdout
        found = [json.loads(line) for line in answer.splitlines()]
    except (subprocess.SubprocessError, OSError, ValueError):
        pass  # what was not found in time was not found
    found += [None] * (len(fields) - len(found))
    return dict(zip(fields, found, strict=False))


def parse_key_values(text: str) -> dict[str, str]:
    """Return the lines `key: value`, divided at the first colon; of a key that comes twice, the last.

    Example:
        >>> parse_key_values("a: 1\\nurl: http://x")
        {'a': '1', 'url': 'http://x'}
    """
    pairs = (line.partition(":") for line in text.splitlines())
    return {key.strip(): value.strip() for key, colon, value in pairs if colon and key.strip()}


def between(text: str, start: str, end: str) -> str | None:
    """Return what stands between the first `start` and the `end` after it; None where one is missing."""
    _, found, rest = text.partition(start) if start else ("", "-", text)
    if not found:
        return None
    inner, closed, _ = rest.partition(end) if end else (rest, "-", "")
    return inner if closed else None


def xml_tag(
    text: str,
    name: str,
    *,
    all: bool = False,  # noqa: A002 - the specified name
) -> str | list[str] | None:
    """Return what stands in the first tag `name`, None without any; with `all`, the list of every one.

    Attributes are passed over, and a tag within a tag of the same name is text of the outer one's.

    Example:
        >>> xml_tag("<a id='1'>x</a><a>y</a>", "a", all=True)
        ['x', 'y']
    """
    found: list[str] = []
    closing = f"</{name}>"
    at = 0
    while name and (begin := text.find(f"<{name}", at)) != -1:
        behind = begin + len(name) + 1
        at = behind
        if text[behind : behind + 1] not in (">", " ", "\t", "\n", "\r"):
            continue  # another tag, whose name begins alike
        opened = text.find(">", behind)
        end = text.find(closing, opened) if opened != -1 else -1
        if end == -1:
            break
        found.append(text[opened + 1 : end])
        if not all:
            break
        at = end + len(closing)
    return found if all else (found[0] if found else None)


def split_keep(text: str, delimiters: Sequence[str]) -> list[str]:
    """Return `text` in pieces, its delimiters among them; joined they are the text again.

    Example:
        >>> split_keep("a,b;c", [",", ";"])
        ['a', ',', 'b', ';', 'c']
    """
    known = sorted({mark for mark in delimiters if mark}, key=len, reverse=True)
    if not known:
        return [text] if text else []
    return [piece for piece in re.split(f"({'|'.join(map(re.escape, known))})", text) if piece]
