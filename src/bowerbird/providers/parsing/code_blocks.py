"""Fenced code blocks of a text, by CommonMark's rules for fences (PR-35).

Here: the lines of a text, its blocks. Not here: quotes and lists that hold fences; they are read as text.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

_LINE_END = re.compile(r"\r\n|\n|\r")
_FENCE = re.compile(r"( {0,3})(`{3,}|~{3,})")


@dataclass(frozen=True, slots=True)
class CodeBlock:
    """A block; the lines are those of its fences, counted from 1.

    Attributes:
        end_line: of the closing fence; the last line of the text where there is none.
    """

    language: str
    code: str
    start_line: int
    end_line: int


def parse_code_blocks(text: str, language: str | None = None) -> list[CodeBlock]:
    """Return the fenced blocks in order, empty ones too; `language` keeps those of one, in whatever case.

    Example:
        >>> parse_code_blocks("~~~ c++\\nint a;\\n~~~")
        [CodeBlock(language='c++', code='int a;', start_line=1, end_line=3)]
    """
    lines = _LINE_END.split(text)
    if lines and not lines[-1]:
        lines.pop()  # the end of the last line begins no further one
    blocks: list[CodeBlock] = []
    at = 0
    while at < len(lines):
        opening = _opening(lines[at])
        if opening is None:
            at += 1
            continue
        indent, fence, info = opening
        end = at + 1
        while end < len(lines) and not _closes(lines[end], fence):
            end += 1
        words = info.split(maxsplit=1)
        code = "\n".join(_outdented(line, indent) for line in lines[at + 1 : end])
        blocks.append(CodeBlock(words[0] if words else "text", code, at + 1, min(end + 1, len(lines))))
        at = end + 1
    if language is None:
        return blocks
    return [block for block in blocks if block.language.lower() == language.strip().lower()]


def first_code_block(text: str, language: str | None = None) -> CodeBlock | None:
    """Return the first block, of `language` where one is named; None without any."""
    blocks: Sequence[CodeBlock] = parse_code_blocks(text, language)
    return blocks[0] if blocks else None


def _opening(line: str) -> tuple[int, str, str] | None:
    match = _FENCE.match(line)
    if match is None:
        return None
    info = line[match.end() :].strip()
    # With a backtick behind it, it is code within a line.
    return None if "`" in info and match[2][0] == "`" else (len(match[1]), match[2], info)


def _closes(line: str, fence: str) -> bool:
    match = _FENCE.match(line)
    return (
        match is not None
        and match[2][0] == fence[0]
        and len(match[2]) >= len(fence)
        and not line[match.end() :].strip(" \t")
    )


def _outdented(line: str, indent: int) -> str:
    return line[min(indent, len(line) - len(line.lstrip(" "))) :]
