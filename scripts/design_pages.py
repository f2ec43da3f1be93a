"""Writes the generated lines of `docs/design/`: beneath each number, the tests that name it.

The sentences of the pages are written by people, under a heading for each number (`### SE-14`); this script
adds and replaces only the lines that begin with `Held by:`; `refusals.md` is made whole, from a table of the
tests. Run it after tests have gained, lost or moved a number, or that table a row: `python
scripts/design_pages.py`. `tests/docs/test_design_pages.py` holds the result current.
"""

import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGES = ROOT / "docs/design"
CHAPTERS = ("AG", "AS", "CF", "CL", "D", "DE", "GI", "MO", "PR", "PT", "SB", "SE", "SV", "TO", "UI", "WS")
HELD_BY = "Held by:"
PLANNED = "Planned, not built."

_GAP = r"[\s#*]*"
_FIRST = (
    rf"(?<![\w-])(?:(?P<chapter>{'|'.join(CHAPTERS)})-(?P<number>\d{{1,3}})|(?P<finding>[FR]\d))(?![\w-])"
)
_NEXT = re.compile(
    rf"{_GAP}(?P<link>,(?:{_GAP}and\b)?|…|\.\.\.|–|\band\b){_GAP}(?P<chapter>[A-Z]{{1,2}}-)?(?P<number>\d{{1,3}})"
    r"(?![\w-]|\.\d| ?[%×])"
)
_CITATION = re.compile(_FIRST)
_HEADING = re.compile(r"^### ((?:[A-Z]{1,2}-|[FR])\d+)$", re.MULTILINE)
_TEST = re.compile(r"\s*(?:async )?def (test_\w+)")
_SOURCES = {".py", ".ts", ".tsx", ".css"}


@dataclass(frozen=True, slots=True)
class Citation:
    """One number named in a text; `between` is one that a range includes without naming it."""

    number: str
    at: int
    between: bool = False


def citations(text: str) -> Iterator[Citation]:
    """Every number that a text names: alone, in a list (`SE-14, 22`) or in a range (`SE-17 … SE-21`)."""
    at = 0
    while first := _CITATION.search(text, at):
        at = first.end()
        if first["finding"]:
            yield Citation(first["finding"], first.start())
            continue
        chapter, last = first["chapter"], int(first["number"])
        yield Citation(f"{chapter}-{last}", first.start())
        while (more := _NEXT.match(text, at)) and more["chapter"] in (None, f"{chapter}-"):
            number = int(more["number"])
            if number <= last:
                break
            if more["link"] in ("…", "...", "–"):
                yield from (Citation(f"{chapter}-{n}", first.start(), True) for n in range(last + 1, number))
            yield Citation(f"{chapter}-{number}", first.start())
            last, at = number, more.end()


def sources(*folders: str) -> Iterator[Path]:
    """The source files of some folders of the repository, in order; what is generated is left out."""
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*")):
            inside = path.relative_to(ROOT).parts
            if path.suffix in _SOURCES and not {"node_modules", "generated", "ui"} & set(inside[:-1]):
                yield path


def _owners(text: str) -> list[tuple[int, str | None]]:
    """Where which test of a Python file begins, None for the module. Comments above a test go with it."""
    found: list[tuple[int, str | None]] = [(0, None)]
    at, above = 0, None
    for line in text.splitlines(keepends=True):
        if test := _TEST.match(line):
            found.append((at if above is None else above, test[1]))
            above = None
        elif line[0] in "@#":
            above = at if above is None else above
            found.append((at, None))
        elif line[0].isalpha() or line[0] == "_":
            above = None
            found.append((at, None))
        at += len(line)
    return found


def tests_by_number() -> dict[str, list[str]]:
    """For each number the tests and benchmarks that name it: a test where one does, otherwise the file."""
    held: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for path in sources("tests", "web/tests", "web/src", "benchmarks"):
        if path.name == "test_design_pages.py":  # its numbers are examples of citing
            continue
        if not (path.name.startswith("test_") or ".test." in path.name or "benchmarks" in path.parts):
            continue
        text = path.read_text(encoding="utf-8")
        owners = _owners(text) if path.suffix == ".py" else []
        name = path.relative_to(ROOT).as_posix()
        for citation in citations(text):
            owner = next((test for start, test in reversed(owners) if start <= citation.at), None)
            held[citation.number][name] |= {owner} if owner else set()
    return {
        number: [f"{name}::{test}" for name in sorted(files) for test in sorted(files[name])]
        + [name for name in sorted(files) if not files[name]]
        for number, files in held.items()
    }


def held_by(page: str, section: str, tests: list[str]) -> str:
    """The generated line of one number; empty where the text says that it is not built."""
    if tests:
        return f"{HELD_BY} " + ", ".join(f"`{test}`" for test in tests)
    return "" if PLANNED in page.partition("\n### ")[0] + section else f"{HELD_BY} no test names it yet."


def current(page: str, held: dict[str, list[str]]) -> str:
    """A page with its generated lines as they should be."""
    intro, *parts = _HEADING.split(page)
    text = intro
    for number, section in zip(parts[::2], parts[1::2], strict=True):
        body, mark, after = section.partition("\n## ")
        written = "\n".join(line for line in body.splitlines() if not line.startswith(HELD_BY)).strip()
        line = held_by(page, written, held.get(number, []))
        text += "\n\n".join(filter(None, [f"### {number}", written, line])) + "\n\n" + mark.lstrip() + after
    return text.rstrip() + "\n"


def sentences(page: str) -> Iterator[tuple[str, str]]:
    """Each number of a page with what people wrote about it."""
    _, *parts = _HEADING.split(page)
    for number, section in zip(parts[::2], parts[1::2], strict=True):
        written = section.partition("\n## ")[0].partition(f"\n{HELD_BY}")[0]
        yield number, written.strip()


def unknown(*folders: str) -> Iterator[tuple[str, str]]:
    """The cited numbers, with their files, that no page has; inside a range a chapter may have gaps."""
    known = {n for page in PAGES.glob("*.md") for n in _HEADING.findall(page.read_text(encoding="utf-8"))}
    for path in sources(*folders):
        for citation in citations(path.read_text(encoding="utf-8")):
            if not citation.between and citation.number not in known:
                yield path.relative_to(ROOT).as_posix(), citation.number


def main() -> None:
    """Bring every page up to date."""
    held = tests_by_number()
    for page in sorted(PAGES.glob("*.md")):
        text = page.read_text(encoding="utf-8")
        if (wanted := current(text, held)) != text:
            page.write_text(wanted, encoding="utf-8")
            print(f"written: {page.relative_to(ROOT)}")
    sys.path.insert(0, str(ROOT / "tests"))
    from support.provider_rules import page as refusals

    (PAGES / "refusals.md").write_text(refusals(), encoding="utf-8")


if __name__ == "__main__":
    main()
