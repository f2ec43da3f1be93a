"""`bowerbird comment` and `bowerbird usage` (UI-45, UI-47)."""

import json

import pytest


def changed(desk):
    """Let a session change the second line of a.txt."""
    desk.edit({"name": "edit_file", "input": {"path": "a.txt", "old": "two", "new": "TWO"}})
    desk.ok("run", "change it")


def test_a_comment_quotes_its_line_and_the_agent_answers(desk):
    """UI-45, UI-29: the model reads path, line, quote and text; the same session goes on."""
    changed(desk)
    desk.fake.script({"text": "I will use lower case."})
    code, out, err = desk.run("comment", "a.txt:2", "why capitals?")
    assert (code, out.strip()) == (0, "I will use lower case."), err
    said = desk.fake.requests[-1]["messages"]
    assert "a.txt line 2:" in json.dumps(said) and "> TWO" in json.dumps(said)
    assert "why capitals?" in json.dumps(said) and "change it" in json.dumps(said)


def test_a_comment_on_lines_before_the_change_quotes_the_old_ones(desk):
    changed(desk)
    desk.fake.script({"text": "ok"})
    code, _, err = desk.run("comment", "--old", "a.txt:2-3", "keep these")
    assert code == 0, err
    said = json.dumps(desk.fake.requests[-1]["messages"])
    assert "a.txt lines 2-3 (before the change):" in said and "> two" in said


@pytest.mark.parametrize(
    ("place", "text", "part"),
    [
        ("a.txt", "x", "does not name a line"),
        ("a.txt:0", "x", "does not name a line"),
        ("a.txt:3-2", "x", "line 2 comes before line 3"),
        ("a.txt:1", "  ", "the comment is empty"),
    ],
)
def test_a_place_that_is_none_is_refused_and_nothing_is_sent(desk, place, text, part):
    code, _, err = desk.run("comment", place, text)
    assert code == 2 and part in err
    assert desk.fake.request_count == 0


def test_usage_sums_tokens_by_model_and_as_json(desk):
    """SV-32."""
    assert desk.run("usage")[2].startswith("nothing was used")
    changed(desk)
    code, out, _ = desk.run("usage", "--by", "model", "--json")
    (row,) = json.loads(out)["rows"]
    assert code == 0 and row["calls"] == 2 and row["output_tokens"] >= 2
    code, out, _ = desk.run("usage")
    assert code == 0 and out.splitlines()[0].split() == ["day", "calls", "in", "out", "cached", "cost"]
    assert len(out.splitlines()) == 2
    code, out, _ = desk.run("usage", "--to", "2020-01-01", "--json")
    assert (code, json.loads(out)["rows"]) == (0, [])


def test_a_day_or_key_that_is_none_is_refused(desk):
    assert "--by is 'moon'; use day, model, user, conversation" in desk.run("usage", "--by", "moon")[2]
    assert "write a day as 2026-11-20" in desk.run("usage", "--from", "yesterday")[2]
