"""The tools `list_symbols` and `find_references` (TO-20, TO-21).

Here: what a model asks for and sees. Not here: grammars (`symbols.py`).
"""

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from bowerbird.core.errors import BinaryFile, LimitExceeded, WorkspaceError
from bowerbird.core.threads import to_thread
from bowerbird.tools.context import ToolContext
from bowerbird.tools.files.symbols import language_of, symbols
from bowerbird.tools.files.text import shown
from bowerbird.tools.result import ToolResult
from bowerbird.tools.tool import Tool

if TYPE_CHECKING:
    from bowerbird.workspace import Branch

MAX_SOURCE_BYTES = 2 * 1024 * 1024
MAX_REFERENCE_FILE = 512 * 1024
_PAGE = 500


async def list_symbols(path: str, context: ToolContext, max_results: int = 200) -> ToolResult:
    """List the classes, functions and types that a source file defines, with their lines.

    Args:
        path: A source file: Python, JavaScript, TypeScript, Go, Rust, Java, C or C++.
        max_results: How many to show.
    """
    language = language_of(path)
    data = await context.files.read_bytes(path, 0, MAX_SOURCE_BYTES + 1)
    if len(data) > MAX_SOURCE_BYTES:
        raise LimitExceeded(f"{path} is over {MAX_SOURCE_BYTES // 1024 // 1024} MiB; use search_files", path)
    if b"\0" in data[:8192]:
        raise BinaryFile(f"{path} is a binary file", path)
    found = await to_thread(symbols, data, language)
    kept = found[: max(max_results, 1)]
    name = shown(path)
    lines = [f"{name}:{s.line}: [{s.kind}] {s.name}" for s in kept]
    cut = len(kept) < len(found)
    if cut:
        lines.append(f"[{len(found)} symbols; shown {len(kept)}; ask with a larger max_results]")
    records = [{"name": s.name, "kind": s.kind, "line": s.line, "end_line": s.end_line} for s in kept]
    return ToolResult(
        "\n".join(lines) or f"{name}: no symbols",
        data={"path": path, "symbols": records, "total": len(found), "truncated": cut},
        truncated=cut,
    )


async def find_references(
    symbol: str,
    context: ToolContext,
    *,
    path_glob: str = "**/*",
    case_sensitive: bool = True,
    whole_word: bool = True,
    max_results: int = 50,
) -> ToolResult:
    """Find where a name is used, in text files not over 512 KiB.

    Args:
        symbol: The name, taken as it is.
        path_glob: Which files to look into.
        case_sensitive: Whether upper and lower case differ.
        whole_word: Leave out places where the name is part of a longer one.
        max_results: How many places to show.
    """
    pattern, most = _pattern(symbol, whole_word=whole_word), max(max_results, 1)
    found: list[Mapping[str, Any]] = []
    large: dict[str, bool] = {}
    offset = 1
    while True:
        record = await context.files.search_files(
            pattern, path_glob, offset, _PAGE, fixed=not whole_word, case_sensitive=case_sensitive
        )
        for match in record["matches"]:
            path = match["path"]
            if path not in large:
                large[path] = await _size(context.files, path) > MAX_REFERENCE_FILE
            if not large[path]:
                found.append(match)
        offset += len(record["matches"])
        if len(found) > most or not record["truncated"] or not record["matches"]:
            break
    return _references(found[:most], len(found) > most, sum(large.values()), record)


def _references(
    found: list[Mapping[str, Any]], cut: bool, large: int, record: Mapping[str, Any]
) -> ToolResult:
    skipped, pruned = large + len(record["skipped"]), len(record["pruned"])
    lines = [f"{shown(m['path'])}:{m['line']}: {m['text']}" for m in found]
    notes = [f"{len(found)} shown, there are more" if cut else f"{len(found)} found"]
    if skipped:
        notes.append(f"{skipped} files skipped (over 512 KiB or binary)")
    if pruned:
        notes.append(f"{pruned} ignored directories not looked into")
    data = {
        "references": [{"path": m["path"], "line": m["line"], "text": m["text"]} for m in found],
        "truncated": cut,
        "skipped_files": skipped,
        "skipped_dirs": pruned,
    }
    return ToolResult("\n".join([*lines, f"[{'; '.join(notes)}]"]), data=data, truncated=cut)


def _pattern(symbol: str, *, whole_word: bool) -> str:
    if not whole_word:
        return symbol
    # \b only where the name itself has a word character: `$x` and `operator+` have none there.
    left = r"\b" if re.match(r"\w", symbol) else ""
    right = r"\b" if re.search(r"\w\Z", symbol) else ""
    return f"{left}{re.escape(symbol)}{right}"


async def _size(branch: "Branch", path: str) -> int:
    try:
        return int((await branch.read_file(path, 1, 1))["size"])
    except WorkspaceError:
        return 0  # it went away since it was searched


def code_tools() -> list[Tool]:
    """Return `list_symbols` and `find_references`."""
    return [Tool(list_symbols, effect="read"), Tool(find_references, effect="read")]
