"""CONTRIBUTING's table of rooms is complete, and says what the packages say of themselves (issue 11, point 7)."""

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
HOUSE = ROOT / "src/bowerbird"
PAGE = ROOT / "CONTRIBUTING.md"


@pytest.fixture(scope="module")
def rooms() -> ModuleType:
    spec = importlib.util.spec_from_file_location("rooms_table", ROOT / "scripts/rooms_table.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_table_is_the_one_that_the_script_writes(rooms: ModuleType) -> None:
    text = PAGE.read_text()
    assert rooms.page(text) == text, "run python scripts/rooms_table.py"


def test_every_package_has_a_row_and_every_row_a_sentence() -> None:
    named = dict(re.findall(r"^\| \**`([\w/]+/)`\** \| (.*) \|$", PAGE.read_text(), re.MULTILINE))
    packages = {f"{file.parent.relative_to(HOUSE)}/" for file in HOUSE.glob("*/**/__init__.py")}
    assert set(named) == packages
    for room, sentence in named.items():
        assert re.fullmatch(r"[A-Z`].{20,118}\.", sentence), (room, sentence)
    assert len(set(named.values())) == len(named), "two rooms say the same of themselves"


def test_a_package_that_is_new_or_says_something_else_is_noticed(
    rooms: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "api.py").write_text('"""The library."""\n')
    (tmp_path / "testing.py").write_text('"""For tests."""\n')
    (tmp_path / "a/__init__.py").write_text(
        '"""Birds (XY-1 … XY-4, 24): what they sing. Not here: cats."""\n'
    )
    monkeypatch.setattr(rooms, "HOUSE", tmp_path)
    page = f"# Rooms\n{rooms.BEGIN}\nold\n{rooms.END}\nThe end\n"
    assert rooms.page(page).splitlines()[-4:] == [
        "| `testing.py` | For tests. |", "| **`a/`** | Birds: what they sing. |", rooms.END, "The end",
    ]  # fmt: skip
