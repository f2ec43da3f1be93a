"""The pages of `docs/design` know every number that is cited, and the tests beside each number (house F5)."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


def _script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("design_pages", ROOT / "scripts/design_pages.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # a dataclass looks its module up by name
    spec.loader.exec_module(module)
    return module


design = _script()


def _numbers(text: str) -> list[str]:
    return [citation.number for citation in design.citations(text)]


def test_every_number_that_code_and_tests_cite_has_its_sentence():
    unknown = [
        f"{path}: {number}"
        for path, number in design.unknown("src", "tests", "web/src", "web/tests", "benchmarks", "scripts")
    ]
    assert not unknown, "cited, but on no page of docs/design: " + ", ".join(unknown)


def test_a_number_that_no_page_has_is_found(tmp_path, monkeypatch):
    (tmp_path / "src").mkdir()
    (tmp_path / "src/a.py").write_text(f'"""One that is there (WS-17) and {"WS"}-{999}, which is not."""\n')
    monkeypatch.setattr(design, "ROOT", tmp_path)
    assert list(design.unknown("src")) == [("src/a.py", "WS-" + "999")]


def test_the_lines_that_name_tests_are_current():
    held = design.tests_by_number()
    for page in sorted(design.PAGES.glob("*.md")):
        text = page.read_text(encoding="utf-8")
        assert text == design.current(text, held), f"{page.name}: run python scripts/design_pages.py"


def test_each_number_has_one_heading_in_the_page_of_its_chapter_and_a_sentence():
    seen: set[str] = set()
    for page in sorted(design.PAGES.glob("*.md")):
        for number, sentence in design.sentences(page.read_text(encoding="utf-8")):
            assert number not in seen and sentence.endswith("."), f"{page.name}: {number}"
            seen.add(number)
    assert len(seen) > 250


def test_the_manual_s_contents_list_every_page():
    contents = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    assert [page.name for page in design.PAGES.glob("*.md") if f"design/{page.name}" not in contents] == []


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        pytest.param("(SE-14)", ["SE-14"], id="one"),
        pytest.param("SE-17 … SE-21", [f"SE-{n}" for n in range(17, 22)], id="range"),
        pytest.param(
            "SE-14, 22, 25 … 27", ["SE-14", "SE-22", "SE-25", "SE-26", "SE-27"], id="list with a range"
        ),
        pytest.param("SE-7, 8, MO-32", ["SE-7", "SE-8", "MO-32"], id="two chapters"),
        pytest.param("DE-6 … DE-8, DE-21 and 22", ["DE-6", "DE-7", "DE-8", "DE-21", "DE-22"], id="and"),
        pytest.param("SE-31,\n# SE-33", ["SE-31", "SE-33"], id="over two lines of a comment"),
        pytest.param("SE-16: 5 ms; WS-62, 20 %", ["SE-16", "WS-62"], id="figures are no numbers"),
        pytest.param("house F4, RS256, UTF-8, PS1", ["F4"], id="other names are none"),
    ],
)
def test_numbers_are_read_alone_in_lists_and_in_ranges(text, numbers):
    """The range's inner numbers count as cited, too."""
    assert sorted(_numbers(text)) == sorted(numbers)
