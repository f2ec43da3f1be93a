"""Results of tools in words that help a small model on: counts, what to try next, bodies of definitions.

Here: the texts, purely, made from what a tool's result says. Not here: running tools, cutting
for other models.
"""

import csv
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast

from bowerbird.models.local.calls import is_data, words_of_search
from bowerbird.models.local.situation import Done, shown_part

RESULT_CHARS = 6_000
_OUTPUT_CHARS = 2_000
_LIST_LINES = 60
_MATCHES = 10
_MATCHES_IN_DATA = 2
_MOST_CELLS = 4
_DEFINITION = re.compile(r"^\s*(?:async def|def|class|function|fn|func|type|struct|interface)\b")
_MATCH = re.compile(r"^[^\s:][^:\n]*:\d+: ")
_AMOUNT = re.compile(r"[-+]?[\d.,]+")


def tell(done: Done) -> str:
    """Return what the model is told of a call's result.

    Example:
        >>> from bowerbird.core.messages import ToolResultBlock, ToolUseBlock
        >>> call = ToolUseBlock("c1", "search_files", {"pattern": "tax"})
        >>> tell(Done(call, ToolResultBlock("c1", "0 matches", data={"matches": []})))
        'Nothing found for "tax". Read a file that may say it, or search for one shorter word.'
    """
    if done.result is None:
        return "No result."
    if done.failed:
        return f"Error: {_cut(done.text.strip(), _OUTPUT_CHARS)}\nTry something else."
    if done.call.name == "read_file":
        return _cut(_read(done), RESULT_CHARS)
    maker = _TELLERS.get(done.call.name)
    return _cut(maker(done) if maker else done.text.strip() or "Done.", RESULT_CHARS)


def named_cells(done: Done, task: str, before: Iterable[Done]) -> str:
    """Return which columns of a table hold words of the task, as the file spells them; "" for none.

    Without it a small model that computes compares a name with the column that sounds most like the question.

    Args:
        done: a call; of all but the reading of a table's beginning nothing is told.
        before: the calls until then, whose searches may have found more rows.

    Example:
        >>> from bowerbird.core.messages import ToolResultBlock, ToolUseBlock
        >>> read = ToolUseBlock("c1", "read_file", {"path": "a.csv"})
        >>> named_cells(Done(read, ToolResultBlock("c1", "name,by\\nTea,Ann")), "What is by ann?", ())
        'Column by holds "Ann".'
    """
    if not done.path.lower().endswith((".csv", ".tsv")) or done.call.input.get("offset", 1) != 1:
        return ""
    if done.call.name != "read_file" or done.result is None or done.failed or done.forgotten:
        return ""
    header, *rows = shown_part(done).lines or ("",)
    sign = max("\t;,", key=header.count)
    for search in before:
        matches = search.data.get("matches")
        for match in cast("list[Mapping[str, Any]]", matches if isinstance(matches, list) else []):
            if str(match.get("path", "")).lstrip("/") == done.path:
                rows.append(str(match.get("text", "")))
    columns, asked, found = _cells(header, sign), task.casefold(), dict[str, None]()
    heads = frozenset(columns)
    for row in rows:
        for column, cell in zip(columns, _cells(row, sign), strict=False):
            if len(cell) < 2 or cell in heads or _AMOUNT.fullmatch(cell) or cell.casefold() not in asked:
                continue
            if re.search(rf"(?<!\w){re.escape(cell.casefold())}(?!\w)", asked):
                found[f'Column {column} holds "{cell}".'] = None
    return "\n".join([*found][:_MOST_CELLS])


def _cells(row: str, sign: str) -> list[str]:
    try:
        return [cell.strip() for line in csv.reader([row], delimiter=sign) for cell in line]
    except csv.Error:
        return []


def _read(done: Done) -> str:
    part = shown_part(done)
    offset = done.call.input.get("offset", 1)
    first = offset if isinstance(offset, int) else 1
    last = first + len(part.lines) - 1
    total = done.data.get("total_lines")
    if part.next_offset is None and first == 1:
        head = f"{done.path}, {last} line{'' if last == 1 else 's'}:"
    else:
        head = f"{done.path}, lines {first} to {last}{f' of {total}' if isinstance(total, int) else ''}:"
    more = "\n… To compute from the whole file use run_python_code." if is_data(done.path) else ""
    return f"{head}\n{part.text}{more if part.next_offset is not None else ''}"


def _search(done: Done) -> str:
    matches = done.data.get("matches")
    words = words_of_search(str(done.call.input.get("pattern", "")))
    if isinstance(matches, list):
        best = _ranked(cast("list[Mapping[str, Any]]", matches), words)
        lines = [line for match in best for line in _match_lines(match)]
    else:
        lines = [line for line in done.text.split("\n") if _MATCH.match(line)]
    if not lines:
        return f'Nothing found for "{words}". Read a file that may say it, or search for one shorter word.'
    return "\n".join(dict.fromkeys(lines))


def _ranked(matches: list[Mapping[str, Any]], words: str) -> list[Mapping[str, Any]]:
    """Return the matches that hold the most of `words`, best first; the path counts as well."""
    wanted = words.lower().split()

    def score(match: Mapping[str, Any]) -> int:
        text, path = str(match.get("text", "")).lower(), str(match.get("path", "")).lower()
        return sum(2 * (word in text) + (word in path) for word in wanted)

    shown: list[Mapping[str, Any]] = []
    in_file: Counter[str] = Counter()
    for match in sorted(matches, key=score, reverse=True):
        path = str(match.get("path", ""))
        in_file[path] += 1
        if in_file[path] <= (_MATCHES_IN_DATA if is_data(path) else _MATCHES):
            shown.append(match)
    return shown[:_MATCHES]


def _match_lines(match: Mapping[str, Any]) -> list[str]:
    text = str(match.get("text", "")).rstrip("\n")
    lines = [f"{str(match.get('path', '')).lstrip('/')}:{match.get('line', '')}: {text.strip()}"]
    if _DEFINITION.match(text):
        depth = len(text) - len(text.lstrip())
        for after in cast("list[str]", match.get("after") or []):
            body = str(after).rstrip("\n")
            if body.strip() and len(body) - len(body.lstrip()) <= depth:
                break
            lines.append(f"    {body.strip()}" if body.strip() else "")
    return lines


def _list(done: Done) -> str:
    lines = [line for line in done.text.split("\n") if line.strip()]
    if not lines:
        return "No file matches. Use a pattern like **/*.py."
    rest = len(lines) - _LIST_LINES
    return "\n".join(lines[:_LIST_LINES]) + (f"\n… and {rest} more lines" if rest > 0 else "")


def _python(done: Done) -> str:
    data = done.data
    text = str(data["stdout"]).strip() if isinstance(data.get("stdout"), str) else done.text.strip()
    result = data.get("result")
    if not text and isinstance(result, str) and result:
        text = result
    error = data.get("error")
    if error:
        return f"Error: {_cut(done.text.strip() or str(error), _OUTPUT_CHARS)}\nCorrect the code."
    if not text or text == "(no output)":
        return "The code ran and printed nothing. Print what you need."
    return f"Output:\n{_cut(text, _OUTPUT_CHARS)}"


def _written(done: Done) -> str:
    return f"Done: {done.path} was {'written' if done.call.name == 'write_file' else 'changed'}."


_TELLERS: dict[str, Callable[[Done], str]] = {
    "search_files": _search,
    "list_files": _list,
    "run_python_code": _python,
    "write_file": _written,
    "edit_file": _written,
}


def _cut(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    return text[: limit * 7 // 10] + "\n… (cut) …\n" + text[-limit * 2 // 10 :]
