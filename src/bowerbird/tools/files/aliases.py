"""Other names of the file tools and what their arguments mean (TO-10, TO-11 … TO-16).

Here: pure translation of arguments. Not here: the tools themselves.
"""

from typing import Any

MAX_SEARCH_CODE = 200


def read_file_range(given: dict[str, Any]) -> dict[str, Any]:
    """`start_line`, `end_line` → `offset`, `limit`; line numbers are shown unless refused."""
    made = dict(given)
    start, end = made.pop("start_line", 1), made.pop("end_line", None)
    made["offset"] = start
    if isinstance(start, int) and isinstance(end, int):
        made["limit"] = max(end - start + 1, 1)
    elif end is not None:
        made["end_line"] = end  # left for the schema check to refuse
    made.setdefault("include_line_numbers", True)
    return made


def search_code(given: dict[str, Any]) -> dict[str, Any]:
    """`query`, `path_glob`, `regex=False`, `max_results` → the names of `search_files`."""
    made = dict(given)
    _rename(made, "query", "pattern")
    _rename(made, "path_glob", "glob")
    made["fixed"] = not made.pop("regex", False)
    made.setdefault("case_sensitive", False)
    most = made.pop("max_results", 50)
    made["limit"] = min(most, MAX_SEARCH_CODE) if isinstance(most, int) else most
    return made


def grep(given: dict[str, Any]) -> dict[str, Any]:
    """`path` and `include` beside `glob` → one glob."""
    made = dict(given)
    _rename(made, "include", "glob")
    below = made.pop("path", None)
    if isinstance(below, str) and below.strip("./"):
        base = below.strip("/").removeprefix("./")
        glob = made.get("glob")
        inside = f"{base}/{glob}" if isinstance(glob, str) and "/" in glob else f"{base}/**/{glob or '*'}"
        made["glob"] = f"{{{base},{inside}}}" if glob is None else inside
    return made


def glob(given: dict[str, Any]) -> dict[str, Any]:
    """`path` → the start of the pattern."""
    made = dict(given)
    below, pattern = made.pop("path", None), made.get("pattern", "**/*")
    if isinstance(below, str) and below.strip("./") and isinstance(pattern, str):
        made["pattern"] = f"{below.strip('/').removeprefix('./')}/{pattern.lstrip('/')}"
    return made


def _rename(made: dict[str, Any], old: str, new: str) -> None:
    if old in made and new not in made:
        made[new] = made.pop(old)
