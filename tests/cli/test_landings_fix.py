"""The way out of a landing that needs attention, from the command line and over REST (engine 1, D-1)."""

import json
from pathlib import Path

import pytest


def make_stuck(data: Path) -> str:
    """Turn the newest landing's record into one that needs attention, as an error in the middle leaves it."""
    record = max(data.glob("**/landings/l_*/record.json"), key=lambda path: path.stat().st_mtime)
    held = json.loads(record.read_text())
    trouble = {"path": "/a.txt", "reason": "Input/output error"}
    record.write_text(
        json.dumps({**held, "state": "needs_attention", "attention": ["/a.txt"], "troubles": [trouble]})
    )
    return held["id"]


@pytest.fixture
def stuck(desk, written):
    desk.edit(written("a.txt", "agent\n"))
    desk.ok("change", "-q")
    desk.ok("land", "-y")
    return make_stuck(desk.home)


@pytest.mark.parametrize(("way", "state", "left"), [
    ("--retry", "done", True), ("--take-back", "undone", False), ("--give-up", "given_up", True)
])  # fmt: skip
def test_a_landing_that_needs_attention_is_led_out_of_it(desk, stuck, way, state, left):
    assert "needs_attention" in desk.ok("landings")
    assert desk.run("diff")[0] == 0
    fixed = json.loads(desk.ok("landings", "fix", stuck, way, "--json"))
    assert (fixed["id"], fixed["state"]) == (stuck, state)
    assert ((desk.project / "a.txt").read_text() == "agent\n") is left
    code, _, said = desk.run("landings", "fix", stuck, way)
    assert code != 0 and "nothing to fix" in said


def test_fix_asks_which_and_how(desk, stuck):
    for words in (["fix"], ["fix", stuck], ["fix", stuck, "--retry", "--give-up"]):
        code, _, said = desk.run("landings", *words)
        assert code == 2 and "--take-back" in said
    code, _, said = desk.run("landings", "fix", "l_nothing", "--retry")
    assert code == 2 and "is not a landing of" in said
