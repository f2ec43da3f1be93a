"""Hunks over bytes: ids, subsets, line regions (WS-35, acceptance 12)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bowerbird.core.errors import Stale
from bowerbird.workspace.tree.hunks import (
    _HEADER,
    _only_region,
    _raw_hunks,
    apply_hunks,
    hunks_of,
    line_changes,
    split_lines,
    too_long,
)

LINES = st.lists(st.sampled_from([b"a", b"b", b"c\r", b"\xff", b"@@ -1 +1 @@", b"", b"--- x"]), max_size=25)
TEXTS = st.builds(lambda lines, end: b"\n".join(lines) + end, LINES, st.sampled_from([b"", b"\n"]))


@given(old=TEXTS, new=TEXTS)
def test_all_hunks_give_the_new_bytes_and_none_the_old(old: bytes, new: bytes) -> None:
    hunks = hunks_of("/a", old, new)
    assert apply_hunks(old, new, hunks, {h.id for h in hunks}) == new
    assert apply_hunks(old, new, hunks, ()) == old


@given(old=TEXTS, new=TEXTS, data=st.data())
def test_a_subset_then_the_rest_equals_all(old: bytes, new: bytes, data: st.DataObject) -> None:
    """Acceptance 12: hunk 2 of 3, then the rest, equals all."""
    hunks = hunks_of("/a", old, new)
    first = data.draw(st.sets(st.sampled_from([h.id for h in hunks]))) if hunks else set[str]()
    middle = apply_hunks(old, new, hunks, first)
    rest = hunks_of("/a", middle, new)
    assert apply_hunks(middle, new, rest, {h.id for h in rest}) == new


@given(old=TEXTS, new=TEXTS, context=st.integers(0, 3))
def test_one_region_is_the_hunk_that_libgit2_gives(old: bytes, new: bytes, context: int) -> None:
    only = _only_region(old, new, context)
    if old != new and only is not None:
        (expected,) = _HEADER.finditer(_raw_hunks(old, new, context))
        assert only[0] == tuple(int(group) if group is not None else 1 for group in expected.groups())
        assert only[1] == _raw_hunks(old, new, context)[expected.end() :]


@given(
    edits=st.lists(
        st.tuples(st.integers(0, 400), st.integers(0, 3), LINES.map(lambda lines: lines[:4])), max_size=4
    ),
    repeated=st.booleans(),
    end=st.sampled_from([b"", b"\n"]),
)
def test_far_equal_ends_change_no_hunk(
    edits: list[tuple[int, int, list[bytes]]], repeated: bool, end: bytes
) -> None:
    """Large files are compared without their far ends."""
    lines = [b"the same line" if repeated else b"line number %d" % n for n in range(400)]
    old = b"\n".join(lines) + end
    for at, gone, added in edits:
        lines[at : at + gone] = added
    new = b"\n".join(lines) + end
    hunks = hunks_of("/a", old, new)
    assert apply_hunks(old, new, hunks, {h.id for h in hunks}) == new
    for hunk in hunks:
        body = [line[1:] for line in hunk.body.split(b"\n") if line[:1] in (b" ", b"-")]
        assert len(body) == hunk.old_lines
        assert [line.rstrip(b"\n") for line in split_lines(old)[hunk.old_start - 1 :]][: len(body)] == body


@given(old=TEXTS, new=TEXTS)
def test_line_changes_cover_exactly_what_differs(old: bytes, new: bytes) -> None:
    before, after = split_lines(old), split_lines(new)
    out: list[bytes] = []
    at = 0
    for change in line_changes(old, new):
        out += before[at : change.start] + after[change.new_start : change.new_end]
        at = change.end
    assert b"".join(out + before[at:]) == new


def test_ids_depend_on_path_base_and_content_only() -> None:
    old = b"".join(b"line %d\n" % n for n in range(40))
    new = old.replace(b"line 5\n", b"LINE 5\n").replace(b"line 30\n", b"LINE 30\n")
    first, second = hunks_of("/a", old, new)
    assert [h.id for h in hunks_of("/a", old, new)] == [first.id, second.id]
    assert hunks_of("/b", old, new)[0].id != first.id
    assert hunks_of("/a", old + b"x", new + b"x")[0].id != first.id
    # The same hunk keeps its id while another part of the file is edited.
    assert hunks_of("/a", old, old.replace(b"line 30\n", b"LINE 30\n"))[0].id == second.id
    assert first.id.startswith("h_") and len(first.id) == 28


def test_a_hunk_id_from_before_an_edit_is_stale() -> None:
    old, new = b"a\nb\n", b"a\nB\n"
    gone = hunks_of("/a", old, b"a\nX\n")[0].id
    with pytest.raises(Stale, match=gone):
        apply_hunks(old, new, hunks_of("/a", old, new), {gone})


def test_the_record_counts_as_a_patch_does() -> None:
    (hunk,) = hunks_of("/a", None, b"x\ny")
    assert hunk.record() == {
        "id": hunk.id,
        "old_start": 0,
        "old_lines": 0,
        "new_start": 1,
        "new_lines": 2,
        "text": "+x\n+y\n\\ No newline at end of file\n",
    }
    assert (hunk.added, hunk.removed) == (2, 0)


def test_only_the_changed_middle_counts_against_the_line_limit() -> None:
    old = b"same\n" * 500_000
    assert not too_long(old, old.replace(b"same\n", b"other\n", 1))
    assert too_long(b"".join(b"%d\n" % n for n in range(500_000)), b"x\n" * 500_000)
