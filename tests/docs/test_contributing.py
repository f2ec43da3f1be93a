"""What CONTRIBUTING says of the laws is so (issue 2, point 7); its recipes are in `test_recipes.py`."""

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent


def test_every_law_names_tests_that_exist() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text()
    rows = re.findall(r"^\| (\d+) [^|]*\| ([^|]*)\|", text, re.MULTILINE)
    assert [int(number) for number, _ in rows] == list(range(1, 11))
    for _, named in rows:
        places = re.findall(r"`(tests/[^`]*)`", named)
        assert places
        for place in places:
            file, _, name = place.partition("::")
            assert not name or f"def {name}(" in (ROOT / file).read_text(), place
            assert (ROOT / file).is_file(), place
