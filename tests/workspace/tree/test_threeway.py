"""The per-path merge decision and line merges, with git as the oracle (WS-46)."""

import subprocess
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bowerbird.workspace.tree.content import Content
from bowerbird.workspace.tree.threeway import Decision, Side, decide, merge_lines

WORDS = st.sampled_from([b"a", b"b", b"c", b"d\r", b"e", b"f", b""])


def file(data: bytes, mode: int = 0o644) -> Side:
    return Side("file", mode, Content(data))


@st.composite
def edited(draw: st.DrawFn, lines: list[bytes]) -> list[bytes]:
    """`lines` with up to three edits."""
    out = list(lines)
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(out)))
        end = min(len(out), at + draw(st.integers(0, 2)))
        out[at:end] = draw(st.lists(WORDS, max_size=2))
    return out


@st.composite
def three_texts(draw: st.DrawFn) -> tuple[bytes, bytes, bytes]:
    base = draw(st.lists(WORDS, max_size=14))
    sides = (base, draw(edited(base)), draw(edited(base)))
    base_text, ours, theirs = (b"\n".join(lines) + draw(st.sampled_from([b"", b"\n"])) for lines in sides)
    return base_text, ours, theirs


@settings(max_examples=150, deadline=None)
@given(texts=three_texts())
def test_line_merges_equal_those_of_git(texts: tuple[bytes, bytes, bytes]) -> None:
    """Clean exactly where git merge-file is clean, with the same bytes."""
    with tempfile.TemporaryDirectory() as folder:
        names: list[str] = []
        for name, text in zip(("base", "ours", "theirs"), texts, strict=True):
            path = Path(folder, name)
            path.write_bytes(text)
            names.append(str(path))
        base, ours, theirs = names
        git = subprocess.run(
            ["git", "merge-file", "-p", ours, base, theirs], capture_output=True, check=False
        )
    assert merge_lines(*texts) == (git.stdout if git.returncode == 0 else None)


def test_one_unchanged_line_between_edits_is_enough_and_none_is_not() -> None:
    base = b"1\n2\n3\n"
    assert merge_lines(base, b"A\n2\n3\n", b"1\n2\nC\n") == b"A\n2\nC\n"
    assert merge_lines(base, b"A\n2\n3\n", b"1\nB\n3\n") is None


OLD = file(b"1\n2\n3\n")
LINK = Side("symlink", target="a")
DIRECTORY = Side("dir")


@pytest.mark.parametrize(
    ("base", "ours", "theirs", "action", "reason"),
    [
        pytest.param(OLD, file(b"x"), OLD, "none", None, id="theirs-is-base"),
        pytest.param(OLD, file(b"x"), file(b"x"), "none", None, id="same-edit"),
        pytest.param(OLD, OLD, file(b"x"), "take", None, id="ours-is-base"),
        pytest.param(OLD, OLD, None, "take", None, id="deleted-by-theirs"),
        pytest.param(OLD, file(b"x\n"), file(b"y\n"), "conflict", "both_modified", id="overlap"),
        pytest.param(None, file(b"x"), file(b"y"), "conflict", "both_created", id="both-created"),
        pytest.param(OLD, None, file(b"x"), "conflict", "delete_modify", id="delete-against-change"),
        pytest.param(OLD, file(b"x"), None, "conflict", "modify_delete", id="change-against-delete"),
        pytest.param(file(b"\0"), file(b"\0a"), file(b"\0b"), "conflict", "binary", id="binary"),
        pytest.param(LINK, Side("symlink", target="b"), Side("symlink", target="c"), "conflict", "symlink"),
        pytest.param(OLD, file(b"x"), LINK, "conflict", "type", id="type"),
        pytest.param(OLD, DIRECTORY, file(b"x"), "conflict", "type", id="file-against-directory"),
        pytest.param(None, file(b"x"), file(b"x", 0o755), "conflict", "mode", id="opposite-modes"),
        pytest.param(None, DIRECTORY, DIRECTORY, "none", None, id="directories-unite"),
        pytest.param(OLD, OLD, Side("special"), "conflict", "special", id="special"),
    ],
)
def test_each_case_of_the_table(
    base: Side | None, ours: Side | None, theirs: Side | None, action: str, reason: str | None
) -> None:
    decision = decide(base, ours, theirs)
    assert (decision.action, decision.reason) == (action, reason)


def test_lines_and_execute_bit_merge_apart() -> None:
    decision = decide(OLD, file(b"A\n2\n3\n"), file(b"1\n2\nC\n", 0o755))
    assert decision.action == "take" and decision.merged
    assert decision.result is not None and decision.result.content is not None
    assert decision.result.content.read() == b"A\n2\nC\n" and decision.result.executable
    only_mode = decide(OLD, file(b"A\n2\n3\n"), file(b"1\n2\n3\n", 0o755))
    assert only_mode.result is not None and only_mode.result.executable


def test_an_uncertain_base_is_always_a_conflict_unless_both_sides_agree() -> None:
    """WS-6, acceptance 4."""
    theirs = file(b"x")
    assert decide(OLD, OLD, theirs, uncertain=True) == Decision("conflict", theirs, "uncertain_base")
    assert decide(OLD, file(b"x"), file(b"x"), uncertain=True).action == "none"


def test_equal_sparse_files_of_a_terabyte_compare_at_once(tmp_path: Path) -> None:
    """WS-16."""
    sides: list[Side] = []
    for name in ("a", "b"):
        path = tmp_path / name
        with path.open("wb") as handle:
            handle.write(b"head")
            handle.truncate(1 << 40)
        sides.append(Side("file", 0o644, Content(str(path))))
    mine, other = (side.content for side in sides)
    assert mine is not None and other is not None
    assert mine.same(other) and mine.digest() == other.digest()
    with (tmp_path / "b").open("r+b") as handle:
        handle.seek(1 << 39)
        handle.write(b"x")
    changed = Content(str(tmp_path / "b"))
    assert not mine.same(changed) and mine.digest() != changed.digest()
