"""How `make demo` judges a change before it lands (D-23)."""

import importlib
import os
import runpy
import sys
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


@pytest.fixture
def demo(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The script, imported as it runs."""
    monkeypatch.setattr(sys, "path", [str(EXAMPLES), *sys.path])
    return importlib.import_module("demo")


@pytest.mark.parametrize("are_built", [True, False])
def test_the_next_commands_work_as_they_stand(
    demo: Any,
    are_built: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    """A clean checkout has no pages yet, and the embedded model lies with the demo's data."""
    pages = tmp_path / "index.html"
    if are_built:
        pages.touch()
    monkeypatch.setattr(demo, "PAGES", pages)
    demo.next_commands(embedded=True)
    _, _, _, served, own = capsys.readouterr().out.splitlines()
    assert served.strip().startswith("make web && ") is not are_built
    assert own.split("#")[0].strip().endswith(f"bowerbird --data-dir {demo.DATA}")


def test_the_page_is_built_before_it_is_served(demo: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """`make demo WEB=1` in a clean checkout: `make` stands for the build here, and what it was asked is kept."""
    asked = tmp_path / "make"
    asked.write_text(f"#!/bin/sh\necho $* >> {tmp_path}/asked\n", encoding="utf-8")
    asked.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setattr(demo, "PAGES", tmp_path / "index.html")

    def served(*words: str, may_fail: bool) -> None:
        assert may_fail
        (tmp_path / "served").write_text(" ".join(words), encoding="utf-8")

    monkeypatch.setattr(demo, "bowerbird", served)
    demo.serve()
    assert (tmp_path / "asked").read_text(encoding="utf-8").split()[-1] == "web"
    assert (tmp_path / "served").read_text(encoding="utf-8") == "serve"


def test_an_answer_is_shown_before_what_is_said_about_it(demo: Any, capfd: pytest.CaptureFixture[str]):
    """Both had come while the demo was busy, and the line on tokens stood above the answer."""
    (output, writes), (errors, tells) = os.pipe(), os.pipe()
    os.write(tells, b"42 in\n")
    os.write(writes, b"The answer.\n")
    os.close(writes)
    os.close(tells)
    assert demo.copied(output, errors, show=True, steps=False) == "The answer.\n"
    assert capfd.readouterr().out == "The answer.\n42 in\n"
    os.close(output)
    os.close(errors)
