"""Public texts are plain English: retired words stay out (issue 11, point 6; findings house 5, faces D).

Public are the README and its neighbours, the manual with its generated pages (the commands' help, the settings),
every string of the source that is not a docstring (messages, errors, prompts), and the page's texts.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent

RETIRED: dict[str, str] = {
    r"\bmend(s|ed|ing)?\b": "fix",
    r"\banew\b": "again, from scratch, re-…",
    r"(, |\()say [`*\"“]|, say with |^Say \.": "for example",
    r"\bshown apart\b": "needs its own review",
    r"\blooks? of (its|their) own\b": "needs its own review",
    r"\b(looked|ticked) at apart\b": "reviewed one by one",
    r"\bhad back\b": "restored",
    r"\b(Anywhere|anywhere) may stand\b": "accepted anywhere",
    r"\bthe usual wishes\b": "common changes",
    r"\bfound out by doing\b": "determined by trying",
    r"\b[Pp]rocessor time\b": "CPU time",
    r"\bfor ever\b": "forever",
    r"\ball the same\b": "anyway",
    r"\bliving (ones|teammates)\b": "active",
    r"\bnothing of it\b": "nothing",
    r"\bstarts a turn of it\b": "wakes it with a new turn",
    r"\brun something by themselves\b": "cause code to run",
    r"\badmits nobody\b": "is not valid",
    r"\b[Ll]et this one count\b": "use this version",
    r"\bcounts? again\b": "is in use again",
    r"\bas it does on a desk\b": "as well as on a desktop",
    r"(?<!here )\bis no (file|text|mapping|landing|command|program|mode|JSON|number|directory|date|Bowerbird|server)\b": (
        "is not a …"
    ),
    r"\b(it|It) finished stays\b": "finished work is kept",
}


NO_TEXTS = {"Alt", "Bowerbird", "Ctrl", "Enter", "high", "max", "pytest -q"}


def strings(path: Path) -> Iterator[tuple[int, str]]:
    """Every string of a module but docstrings, those of an f-string with `…` for its values."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    inner: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            inner.add(id(node.value))
        elif isinstance(node, ast.JoinedStr):
            inner.update(id(part) for part in node.values)
            yield (
                node.lineno,
                "".join(str(part.value) if isinstance(part, ast.Constant) else "…" for part in node.values),
            )
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inner:
            yield node.lineno, node.value


def lines(path: Path) -> Iterator[tuple[int, str]]:
    return enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)


def public() -> Iterator[tuple[Path, int, str]]:
    """Every public text with its file and line; the glossary itself may name what is retired."""
    pages = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")]
    pages += [page for page in (ROOT / "docs").rglob("*.md") if page.name != "words.md"]
    pages += (ROOT / "web" / "src" / "texts").glob("*.ts")
    for page in pages:
        yield from ((page, number, text) for number, text in lines(page))
    for module in (ROOT / "src").rglob("*.py"):
        yield from ((module, number, text) for number, text in strings(module))


def test_no_public_text_uses_a_retired_word() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{number}: {match[0]!r} in {text.strip()[:90]!r}; better: {better}"
        for path, number, text in public()
        for pattern, better in RETIRED.items()
        if (match := re.search(pattern, text))
    ]
    assert not found, "\n".join(found)


def test_all_kinds_of_public_texts_are_read() -> None:
    seen = {path.relative_to(ROOT).as_posix() for path, _, _ in public()}
    assert {
        "README.md", "docs/reference/commands.md", "docs/reference/settings.md", "web/src/texts/review.ts",
        "src/bowerbird/core/errors.py", "src/bowerbird/cli/run/slash_commands.py", "src/bowerbird/cli/parser.py",
    } <= seen  # fmt: skip


@pytest.mark.parametrize(
    "text",
    ["how to mend it", "made anew", "a command, say `pytest -q`", "x is no directory", "kept for ever"],
)
def test_a_retired_word_is_found(text: str) -> None:
    assert any(re.search(pattern, text) for pattern in RETIRED)


@pytest.mark.parametrize(
    "text", ["say what you want", "amended", "there is no such file", "is no longer there"]
)
def test_plain_english_is_let_through(text: str) -> None:
    assert not any(re.search(pattern, text) for pattern in RETIRED)


def test_the_pages_write_no_text_beside_their_catalogue() -> None:
    """UI-39: between tags and in attributes stand values; names of keys, of programs and of us are no texts."""
    found = []
    for page in sorted((ROOT / "web" / "src").rglob("*.tsx")):
        code = re.sub(r"/\*.*?\*/", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
        between = re.findall(r"(?<!=)>\s*([^<>{}=;()&\n]*[A-Za-z]{3}[^<>{}=;()&\n]*?)\s*<", code)
        attributes = re.findall(
            r'\b(?:label|title|placeholder|aria-label|alt)="([^"]*[A-Za-z]{2}[^"]*)"', code
        )
        found += [
            f"{page.relative_to(ROOT)}: {text}" for text in between + attributes if text not in NO_TEXTS
        ]
    assert not found, "\n".join(found)


def test_the_glossary_explains_each_word_once_and_in_order() -> None:
    """UI-84."""
    rows = re.findall(r"^\| \*\*([^*]+)\*\* \|", (ROOT / "docs/design/words.md").read_text(), re.MULTILINE)
    assert rows == sorted(set(rows), key=str.lower)
    assert {"branch", "landing", "session", "conversation", "workspace", "turn", "snapshot", "mark"} <= set(
        rows
    )
