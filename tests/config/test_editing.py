"""Changing single keys of a settings file (UI-83): the rest of it stays."""

import stat
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bowerbird.config.editing import edited, literal, put_beside, take_place
from bowerbird.config.yaml_text import YamlProblem, parse
from bowerbird.core.errors import InvalidArgument

TURNS = ("agent", "max_turns")
NAMES = st.sampled_from(["a", "b", "name with space", "ключ", "x: y", "#", "on", "1"])
TEXTS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=40)
VALUES = st.one_of(
    st.integers(-(10**12), 10**12), st.booleans(), st.none(), TEXTS, st.integers(-1000, 1000).map(lambda number: number / 8),
    st.lists(TEXTS, max_size=3),
)  # fmt: skip
TREES = st.dictionaries(NAMES, st.dictionaries(NAMES, VALUES, max_size=3), max_size=3)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param("", "agent:\n  max_turns: 7\n", id="empty"),
        pytest.param("# mine\n", "# mine\nagent:\n  max_turns: 7\n", id="comments-only"),
        pytest.param(
            "# top\nagent:\n  max_turns: 5  # few\n\n# next\ncli: {theme: dark}\n",
            "# top\nagent:\n  max_turns: 7  # few\n\n# next\ncli: {theme: dark}\n",
            id="comments-stay",
        ),
        pytest.param("agent: {max_turns: 5}\n", "agent: {max_turns: 7}\n", id="flow"),
        pytest.param("agent:\ncli:\n  theme: 'dark'\n", "agent:\n  max_turns: 7\ncli:\n  theme: 'dark'\n", id="null"),
    ],
)  # fmt: skip
def test_only_the_key_changes(before: str, after: str) -> None:
    """UI-83."""
    assert edited(before.encode(), {TURNS: 7}).decode() == after


def test_a_key_is_removed_and_its_neighbours_stay() -> None:
    """UI-83."""
    text = b"agent:\n  max_turns: 5\n  preset: work  # mine\n"
    assert parse(edited(text, {}, [TURNS, ("cli", "theme")])).data == {"agent": {"preset": "work"}}


@given(tree=TREES, section=NAMES, name=NAMES, value=VALUES)
def test_what_is_read_back_is_what_was_there_and_the_change(
    tree: dict[str, Any], section: str, name: str, value: Any
) -> None:
    """UI-83: for any file that this writes, and any key and value of YAML."""
    content = b""
    for outer, inner in tree.items():
        for key, item in inner.items():
            content = edited(content, {(outer, key): item})
    data = parse(edited(content, {(section, name): value})).data
    wanted = {outer: inner for outer, inner in tree.items() if inner}
    wanted = {**wanted, section: {**wanted.get(section, {}), name: value}}
    assert data == wanted


def test_what_cannot_be_changed_alone_is_refused() -> None:
    """UI-83: an anchor's value would change in both places; broken text is no settings file."""
    with pytest.raises(InvalidArgument, match="edit it by hand"):
        edited(b"agent: &a {max_turns: 5}\ncli: *a\n", {TURNS: 7})
    with pytest.raises(YamlProblem):
        edited(b"agent: [", {TURNS: 7})


def test_a_dollar_sign_begins_no_variable() -> None:
    """UI-83: what a person types is what it is; no variable of the server's environment is read."""
    assert literal("${SECRET}") == "$${SECRET}" and literal(["a$", 1]) == ["a$", 1]


def test_the_file_keeps_its_mode_and_a_link_stays_one(tmp_path: Path) -> None:
    """UI-83."""
    real, link, new = tmp_path / "real.yaml", tmp_path / "config.yaml", tmp_path / "new" / "config.yaml"
    real.write_text("a: 1\n")
    real.chmod(0o640)
    link.symlink_to(real)
    take_place(put_beside(link, b"a: 2\n"), link)
    assert link.is_symlink() and real.read_bytes() == b"a: 2\n"
    assert stat.S_IMODE(real.stat().st_mode) == 0o640
    take_place(put_beside(new, b"a: 3\n"), new)
    assert stat.S_IMODE(new.stat().st_mode) == 0o600
    assert sorted(path.name for path in tmp_path.iterdir()) == ["config.yaml", "new", "real.yaml"]
