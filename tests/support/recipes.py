"""The recipes of `docs/contributing/recipes.md`, read as steps and followed in a copy of the source.

Here: what a page's lines mean, and doing it. Not here: what comes of it (`tests/docs/test_recipes.py`).
"""

import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/contributing/recipes.md"
VERSIONS = "src/bowerbird/store/migrations/versions"

_STEP = re.compile(
    r"^(?:New `(?P<new>[^`\n]+)`|In `(?P<file>[^`\n]+)`, (?P<how>before|after each|after|in place of) `(?P<line>[^\n]+)`):\n\n"
    r"```py\n(?P<code>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True)
class Step:
    """One change: `code` goes into `file`, at `line` or as a new file."""

    file: str
    how: str
    line: str
    code: str


def recipes() -> dict[str, tuple[Step, ...]]:
    """Every recipe by its heading."""
    _, *parts = re.split(r"^## (.+)$", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    found: dict[str, tuple[Step, ...]] = {}
    for title, text in zip(parts[::2], parts[1::2], strict=True):
        steps = [
            Step(part["new"] or part["file"], part["how"] or "new", part["line"] or "", part["code"])
            for part in _STEP.finditer(text)
        ]
        assert len(steps) == text.count("```py\n"), f"{title}: a step is not written as the others are"
        found[title] = tuple(steps)
    return found


def copy_of_source(target: Path) -> Path:
    """Copy the source below `target`, which is not there yet; returns it."""
    shutil.copytree(ROOT / "src", target / "src", ignore=shutil.ignore_patterns("__pycache__", "ui"))
    return target


def follow(steps: Sequence[Step], copy: Path) -> None:
    """Make the changes of a recipe in a copy."""
    numbers = sorted(path.name[:4] for path in (copy / VERSIONS).glob("[0-9]*.py"))
    for step in steps:
        file = copy / step.file.replace("NEXT", f"{int(numbers[-1]) + 1:04}")
        if step.how == "new":
            code = step.code.replace("NEXT", f"{int(numbers[-1]) + 1:04}").replace("LAST", numbers[-1])
            assert not file.exists(), f"{step.file} is there already"
            file.write_text(code)
        else:
            file.write_text(_changed(file.read_text(), step))


def _changed(text: str, step: Step) -> str:
    lines = text.splitlines(keepends=True)
    places = [number for number, line in enumerate(lines) if line.strip() == step.line]
    assert places and (len(places) == 1 or step.how == "after each"), (
        f"{step.line!r} is {len(places)} times in {step.file}: tell the page how the change is made now"
    )
    for number in reversed(places):
        begin, end = {"before": (0, 0), "in place of": (0, 1)}.get(step.how, (1, 1))
        lines[number + begin : number + end] = [step.code]
    return "".join(lines)
