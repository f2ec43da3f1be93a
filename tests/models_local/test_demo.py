"""How `make demo` judges a change before it lands (D-23)."""

import runpy
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
JOBS: dict[str, Any] = runpy.run_path(str(EXAMPLES / "jobs.py"))
OLD = '-FREE_DELIVERY_FROM = Decimal("60.00")\n'
NEW = '+FREE_DELIVERY_FROM = Decimal("50.00")\n'
HEAD = "--- a/bakery/prices.py\n+++ b/bakery/prices.py\n@@ -1,2 +1,2 @@\n"


def test_the_change_that_was_asked_for_may_land():
    assert JOBS["wrong_patch"](HEAD + OLD + NEW + " BULK_QUANTITY = 12\n") is None


@pytest.mark.parametrize(
    "patch",
    [
        pytest.param("", id="nothing"),
        pytest.param(HEAD + OLD, id="line-removed"),
        pytest.param(HEAD + OLD + NEW + "+print()\n", id="more-than-asked"),
        pytest.param(HEAD + "-BULK_QUANTITY = 12\n+BULK_QUANTITY = 50\n", id="another-line"),
        pytest.param(HEAD + OLD + '+FREE_DELIVERY_FROM = Decimal("5.00")\n', id="another-value"),
    ],
)
def test_any_other_change_may_not(patch: str):
    assert JOBS["wrong_patch"](patch)


def test_the_check_of_the_attempts_names_the_line_of_the_project():
    """Should the sample project be written differently, the check must follow."""
    line = JOBS["DELIVERY_LINE"].replace(JOBS["NEW_LIMIT"], "60.00")
    assert line in (JOBS["PROJECT"] / JOBS["PRICES"]).read_text(encoding="utf-8").splitlines()
