"""A step as the tool's real call, and a call as the step it came from.

Here: both directions, purely; a past call is rendered as the model wrote it, so that the
engine's cache of the conversation stays valid (MO-40). Not here: the grammar, the results.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bowerbird.core.messages import ToolUseBlock
from bowerbird.core.requests import ToolSpec
from bowerbird.models.local.grammar import SEEN, as_step

READ_LINES = 150
HEAD_LINES = 12
"""What is shown of a file of data: enough to compute from it with Python."""

DATA_FILES = (".csv", ".tsv", ".jsonl", ".ndjson", ".log")
SEARCH_LIMIT, SEARCH_CONTEXT = 30, 4
"""Few enough that the lines and what stands around them take little of the window."""

_STOP_WORDS = frozenset(
    "a all an and are as at be by can does for from has have how in is it its many much not of on or "
    "that the this to was what when where which who will with".split()
)

_CODE_QUESTION = (
    "Write the Python code in one fenced block. Use the columns or lines that hold what the task asks for, "
    "and print the result."
)
FOLLOWED_BY = {"run_python_code": "code", "write_file": "content"}
"""Tools whose long text is written in a second pass, and the parameter it becomes."""


@dataclass(frozen=True, slots=True)
class FollowUp:
    """The second pass of a step: what is asked, the fence its answer stands in, its most tokens."""

    question: str
    opening: str
    tokens: int


def pattern_of_search(words: str) -> str:
    """Return a regular expression that finds any of `words`, plural or not, common words left out.

    Small models search for phrases that stand nowhere; lines are ranked by how many words they
    hold when the result is told (`results.py`).

    Example:
        >>> pattern_of_search("how large is the bulk discount")
        'large|bulk|discount'
    """
    return "|".join(re.escape(word) for word in telling_words(words))


def telling_words(text: str) -> tuple[str, ...]:
    """Return the words of `text` that tell something, each once and without a plural `s`.

    The parts of a name count as words: a small model rarely hits the very name that a file uses.
    """
    found = re.split(r"[\s|_]+", text.strip(" _|\t\n"))
    telling = [word for word in found if word.lower() not in _STOP_WORDS] or found
    return tuple(dict.fromkeys(_singular(word) for word in telling))


def words_of_search(pattern: str) -> str:
    """Return the words that `pattern_of_search` made `pattern` from."""
    return " ".join(re.sub(r"\\(.)", r"\1", part) for part in pattern.split("|"))


def call_input(step: Mapping[str, Any], spec: ToolSpec, offset: int = 1) -> dict[str, Any]:
    """Return the arguments of the call that `step` asks for, without what a second pass adds.

    Args:
        step: what the grammar read.
        spec: the tool; only parameters it has are filled in.
        offset: first line to read, for a file that was read in part.
    """
    if "input" in step:
        return dict(step["input"])
    if spec.name == "read_file":
        limit = HEAD_LINES if is_data(step["path"]) else READ_LINES
        return {"path": step["path"], **_known_to(spec, offset=offset, limit=limit)}
    if spec.name == "search_files":
        extra = _known_to(spec, case_sensitive=False, limit=SEARCH_LIMIT, context=SEARCH_CONTEXT)
        return {"pattern": pattern_of_search(step["pattern"]), **extra}
    return {key: value for key, value in step.items() if key not in ("tool", SEEN)}


def step_of_call(call: ToolUseBlock) -> str:
    """Return the step that led to `call`, without its note: a model that sees its notes repeats them."""
    given = call.input
    if call.name == "read_file":
        return as_step("read_file", path=given.get("path", ""))
    if call.name == "search_files":
        return as_step("search_files", pattern=words_of_search(str(given.get("pattern", ""))))
    if call.name in ("list_files", "write_file", "bash", "run_python_code"):
        long = FOLLOWED_BY.get(call.name)
        return as_step(call.name, **{key: value for key, value in given.items() if key != long})
    return as_step(call.name, input=given)


def follow_up(tool: str, path: str = "") -> FollowUp | None:
    """Return the second pass of a step, or None when the step is complete; `path` is of the file written."""
    if tool == "run_python_code":
        return FollowUp(_CODE_QUESTION, "```python", 600)
    if tool == "write_file":
        fence = "````" if path.endswith((".md", ".markdown", ".rst")) else "```"
        return FollowUp(f"Write the whole content of {path} in one fenced block.", fence, 1_500)
    return None


def is_data(path: str) -> bool:
    """Whether `path` names a file to compute from rather than to read."""
    return path.lower().endswith(DATA_FILES)


def _known_to(spec: ToolSpec, **values: object) -> dict[str, Any]:
    properties = spec.input_schema.get("properties", {})
    return {key: value for key, value in values.items() if key in properties}


def _singular(word: str) -> str:
    return word[:-1] if len(word) > 4 and word.endswith("s") and not word.endswith("ss") else word
