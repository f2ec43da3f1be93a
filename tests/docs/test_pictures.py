"""The pictures of the README and the manual: there, small, and nothing that runs (issue 13, point 8)."""

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).resolve().parents[2]
PICTURES = [
    pytest.param(page.parent / name, id=f"{page.name}-{Path(name).name}")
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
    for name in re.findall(r"!\[[^\]]+\]\(([^)]+)\)", page.read_text(encoding="utf-8"))
]


@pytest.mark.parametrize("picture", PICTURES)
def test_a_picture_is_there_and_small(picture):
    assert 10_000 < picture.stat().st_size < 300_000


def test_the_recording_is_drawn_without_a_script_and_rests_where_less_motion_is_wanted():
    text = (ROOT / "docs/images/terminal.svg").read_text(encoding="utf-8")
    names = {element.tag.rpartition("}")[2] for element in ElementTree.fromstring(text).iter()}
    assert names <= {"svg", "style", "rect", "circle", "defs", "g", "use", "text"}
    assert "prefers-reduced-motion:no-preference" in text and "http" not in text.replace(
        "http://www.w3.org", ""
    )
    for shown in ("/land", "landed 1 change", "/undo", "edit_file till.py"):
        assert shown in text
    for place in ("/tmp", "/work", "/root"):
        assert place not in text


def test_the_readme_begins_with_a_picture():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert readme.index("terminal.svg") < readme.index("make demo") < readme.index("review.png")
