"""What a docstring says about a function and about each of its parameters.

Here: reading Google, NumPy and Sphinx forms (TO-1). Not here: types, schemas, or any
judgement about what is missing (`core/schema.py` judges).
"""

import inspect
import re
from typing import NamedTuple

_GOOGLE_ARGS = re.compile(r"(Args|Arguments|Params|Parameters|Keyword Args|Keyword Arguments):\s*")
_GOOGLE_ENTRY = re.compile(r"\*{0,2}(?P<name>\w+)\s*(\([^)]*\))?\s*:(?P<text>.*)")
_NUMPY_ARGS = re.compile(r"(Other )?Parameters\s*")
_NUMPY_ENTRY = re.compile(r"(?P<names>\*{0,2}\w+(\s*,\s*\*{0,2}\w+)*)\s*(:.*)?")
_RULE = re.compile(r"\s*-{3,}\s*")
_SPHINX_PARAM = re.compile(
    r"\s*:(param|parameter|arg|argument|key|keyword)\s+(?:[^:]*\s)?\*{0,2}(?P<name>\w+)\s*:(?P<text>.*)"
)
_SPHINX_FIELD = re.compile(r"\s*:\w+[^:]*:")


class Docstring(NamedTuple):
    """The text before the arguments, and what is said of each argument."""

    description: str
    parameters: dict[str, str]


def parse_docstring(text: str | None) -> Docstring:
    """Return what `text` describes; empty parts when there is nothing.

    Example:
        >>> parse_docstring("Add.\\n\\nArgs:\\n    a: First.").parameters
        {'a': 'First.'}
    """
    lines = inspect.cleandoc(text or "").splitlines()
    cut = len(lines)
    found: dict[str, str] = {}
    index = 0
    while index < len(lines):
        line, after = lines[index], lines[index + 1] if index + 1 < len(lines) else ""
        if _SPHINX_PARAM.fullmatch(line):
            cut, index = min(cut, index), _read_sphinx(lines, index, found)
        elif _GOOGLE_ARGS.fullmatch(line.strip()):
            cut, index = min(cut, index), _read_google(lines, index, found)
        elif _NUMPY_ARGS.fullmatch(line) and _RULE.fullmatch(after):
            cut, index = min(cut, index), _read_numpy(lines, index, found)
        else:
            index += 1
    return Docstring("\n".join(lines[:cut]).strip(), {k: v for k, v in found.items() if v})


def _read_sphinx(lines: list[str], index: int, found: dict[str, str]) -> int:
    match = _SPHINX_PARAM.fullmatch(lines[index])
    assert match is not None
    words = [match["text"].strip()]
    index += 1
    while index < len(lines) and lines[index].strip() and not _SPHINX_FIELD.match(lines[index]):
        words.append(lines[index].strip())
        index += 1
    found[match["name"]] = " ".join(filter(None, words))
    return index


def _read_google(lines: list[str], index: int, found: dict[str, str]) -> int:
    outer = _indent(lines[index])
    index += 1
    entry_indent: int | None = None
    name = ""
    while index < len(lines):
        line = lines[index]
        indent = _indent(line)
        if line.strip():
            if indent <= outer:
                break
            entry_indent = indent if entry_indent is None else entry_indent
            match = _GOOGLE_ENTRY.fullmatch(line.strip()) if indent <= entry_indent else None
            if match:
                name = match["name"]
                found[name] = match["text"].strip()
            elif name:
                found[name] = f"{found[name]} {line.strip()}".strip()
        index += 1
    return index


def _read_numpy(lines: list[str], index: int, found: dict[str, str]) -> int:
    outer = _indent(lines[index])
    index += 2
    names: list[str] = []
    while index < len(lines):
        line = lines[index]
        if index + 1 < len(lines) and line.strip() and _RULE.fullmatch(lines[index + 1]):
            break
        if line.strip() and _indent(line) <= outer:
            match = _NUMPY_ENTRY.fullmatch(line.strip())
            if not match:
                break
            names = [n.strip().lstrip("*") for n in match["names"].split(",")]
            found.update(dict.fromkeys(names, ""))
        elif line.strip():
            found.update({n: f"{found[n]} {line.strip()}".strip() for n in names})
        index += 1
    return index


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
