"""`bowerbird usage --outcomes`: what became of what each turn changed, at the terminal and over REST alike.

Every test here runs with this machine's sessions and over a server, and each JSON is compared between them.
"""

import json

import pytest
from support.desk import Desk

STRONG = "anthropic:claude-opus-4-5"


def writes(desk: Desk, *arguments: str, **files: str) -> None:
    calls = [
        {"name": "write_file", "input": {"path": f"{name}.txt", "content": text}}
        for name, text in files.items()
    ]
    desk.edit(*calls)
    desk.ok("run", *arguments, "write it")


def counts(desk: Desk, by: str = "model") -> dict[str, dict[str, int]]:
    rows = json.loads(desk.ok("usage", "--outcomes", "--by", by, "--json"))["rows"]
    return {row["key"]: {name: n for name, n in row.items() if name != "key" and n} for row in rows}


def default(desk: Desk) -> dict[str, int]:
    [(_, found)] = counts(desk).items()
    return found


def test_a_change_is_open_until_it_lands_and_undone_once_it_was_taken_back(desk: Desk) -> None:
    assert counts(desk) == {}
    writes(desk, new="1")
    assert default(desk) == {"changes": 1, "open": 1}
    landed = json.loads(desk.ok("land", "--yes", "--json"))
    assert default(desk) == {"changes": 1, "landed": 1}
    desk.ok("undo", "--yes", landed["id"])
    assert default(desk) == {"changes": 1, "undone": 1}


def test_two_models_of_one_session_are_counted_by_what_each_changed(desk: Desk) -> None:
    writes(desk, one="1")
    writes(desk, "--resume", "--model", STRONG, two="2")
    desk.ok("land", "--yes", "two.txt")
    found = counts(desk)
    assert found.pop(STRONG) == {"changes": 1, "landed": 1}
    assert list(found.values()) == [{"changes": 1, "open": 1}]
    desk.ok("discard", "--yes")
    assert sorted(map(str, counts(desk).values())) == sorted(
        ["{'changes': 1, 'discarded': 1}", "{'changes': 1, 'landed': 1}"]
    )
    assert counts(desk, "agent") == {"bowerbird": {"changes": 2, "landed": 1, "discarded": 1}}


def test_one_of_two_files_of_a_turn_is_a_landing_in_part_until_the_other_lands(desk: Desk) -> None:
    writes(desk, one="1", two="2")
    desk.ok("land", "--yes", "one.txt")
    assert default(desk) == {"changes": 1, "part": 1}
    desk.ok("land", "--yes")
    assert default(desk) == {"changes": 1, "landed": 1}


def test_what_is_left_of_a_landing_in_part_may_be_discarded(desk: Desk) -> None:
    writes(desk, one="1", two="2")
    desk.ok("land", "--yes", "one.txt")
    desk.ok("discard", "--yes")
    assert default(desk) == {"changes": 1, "part": 1}


def test_a_turn_that_changes_nothing_counts_nowhere_and_a_policy_that_lands_counts(desk: Desk) -> None:
    desk.fake.script({"text": "Nothing to do."})
    desk.ok("run", "look")
    assert counts(desk) == {}
    for number, policy in enumerate(("turn", "step"), 1):
        writes(desk, "--land", policy, **{policy: "1"})
        assert (desk.project / f"{policy}.txt").exists()
        assert counts(desk, "preset") == {"default": {"changes": number, "landed": number}}


def test_the_table_names_each_outcome(desk: Desk) -> None:
    assert "no agent changed files" in desk.run("usage", "--outcomes")[2]
    writes(desk, one="1")
    head, row = desk.ok("usage", "--outcomes").splitlines()
    assert head.split() == ["model", "changes", "landed", "in", "part", "discarded", "undone", "open"]
    assert row.split()[1:] == ["1", "0", "0", "0", "0", "1"]
    assert desk.run("usage", "--outcomes", "--to", "2020-01-01")[2].startswith("no agent changed")


@pytest.mark.parametrize("by", ["day", "moon"])
def test_outcomes_by_anything_else_are_refused(desk: Desk, by: str) -> None:
    assert f"--by is '{by}'; use model, preset, agent" in desk.run("usage", "--outcomes", "--by", by)[2]
