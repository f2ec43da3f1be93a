"""Deciding a conflict place by place: what one side changed beside it is kept (UI-89, web finding W2)."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bowerbird.core.errors import InvalidArgument, LandingRefused, NotFound, Stale
from bowerbird.workspace import Branch, Workspace
from bowerbird.workspace.tree.hunks import split_lines
from bowerbird.workspace.tree.regions import decided, merge_lines, regions_of

LINES = b"".join(b"line %d\n" % n for n in range(1, 41))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    made = tmp_path / "ws"
    made.mkdir()
    (made / "a.txt").write_bytes(LINES)
    return made


@pytest.fixture
def branch(root: Path, tmp_path: Path) -> Iterator[Branch]:
    with Workspace(root, data_dir=tmp_path / "data") as opened:
        yield opened.branch()


def with_lines(lines: dict[int, bytes], base: bytes = LINES) -> bytes:
    found = split_lines(base)
    for number, text in lines.items():
        found[number - 1] = text + b"\n"
    return b"".join(found)


MINE = with_lines({5: b"mine", 30: b"mine alone"})
AGENTS = with_lines({5: b"the agent's", 20: b"the agent's, too", 35: b"and this"})


async def in_conflict(branch: Branch, root: Path) -> None:
    await branch.write_file("a.txt", AGENTS)
    (root / "a.txt").write_bytes(MINE)


@pytest.mark.parametrize(
    ("take", "fifth"),
    [
        ("ours", b"mine\n"),
        ("theirs", b"the agent's\n"),
        ("both", b"mine\nthe agent's\n"),
        (b"of both\n", b"of both\n"),
        (b"without end", b"without end\n"),
        (b"", b""),
    ],
)
async def test_a_decision_is_about_its_place_and_the_rest_is_merged(
    branch: Branch, root: Path, take: object, fifth: bytes
) -> None:
    """Found by an audit: "take the agent's" threw the user's line 30 away, which nobody else had touched."""
    await in_conflict(branch, root)
    found = branch.conflict("a.txt")
    assert (found.path, found.reason) == ("/a.txt", "both_modified") and found.places is not None
    places = [(place.kind, place.ours, place.theirs) for place in found.places if place.kind != "same"]
    assert places == [
        ("conflict", "mine\n", "the agent's\n"),
        ("theirs", "line 20\n", "the agent's, too\n"),
        ("ours", "mine alone\n", "line 30\n"),
        ("theirs", "line 35\n", "and this\n"),
    ]
    landing = branch.land(["a.txt"], resolved={"a.txt": [take]}, plan=found.plan)  # pyright: ignore[reportArgumentType]
    wanted = with_lines({20: b"the agent's, too", 30: b"mine alone", 35: b"and this"})
    wanted = wanted.replace(b"line 5\n", fifth, 1)
    assert (root / "a.txt").read_bytes() == wanted and landing.entries[0].merged
    assert await branch.read_bytes("a.txt") == wanted  # what landed is the user's, and the agent sees it
    assert branch.changes().paths == ()
    landing.undo()
    assert (root / "a.txt").read_bytes() == MINE


async def test_decisions_hold_for_what_was_shown_only(branch: Branch, root: Path) -> None:
    """A file that changed since is not decided by what was said of another text."""
    await in_conflict(branch, root)
    found = branch.conflict("a.txt")
    with pytest.raises(InvalidArgument, match="need the plan"):
        branch.land(["a.txt"], resolved={"a.txt": ["ours"]})
    for count in (0, 2):
        with pytest.raises(Stale, match=f"conflicting places: 1, decisions: {count}"):
            branch.land(["a.txt"], resolved={"a.txt": ["ours"] * count}, plan=found.plan)
    later = with_lines({7: b"one more of mine"}, MINE)
    (root / "a.txt").write_bytes(later)
    with pytest.raises(Stale, match="no longer equal"):
        branch.land(["a.txt"], resolved={"a.txt": ["theirs"]}, plan=found.plan)
    assert (root / "a.txt").read_bytes() == later
    (root / "a.txt").write_bytes(LINES)
    with pytest.raises(NotFound, match="does not conflict"):
        branch.conflict("a.txt")


async def test_a_file_that_both_made_is_decided_where_it_differs(branch: Branch, root: Path) -> None:
    await branch.write_file("new.txt", b"one\ntwo\nthree\n")
    (root / "new.txt").write_bytes(b"one\n2\nthree\nfour\n")
    found = branch.conflict("new.txt")
    assert found.reason == "both_created" and found.places is not None
    assert [place.kind for place in found.places] == ["same", "conflict", "same", "conflict"]
    branch.land(["new.txt"], resolved={"new.txt": ["theirs", "ours"]}, plan=found.plan)
    assert (root / "new.txt").read_bytes() == b"one\ntwo\nthree\nfour\n"


@pytest.mark.parametrize(
    ("mine", "agents"),
    [
        pytest.param(b"\0mine", b"\0the agent's", id="binary"),
        pytest.param(None, b"changed\n", id="deleted by the user"),
    ],
)
async def test_what_has_no_lines_is_no_matter_of_places(
    branch: Branch, root: Path, mine: bytes | None, agents: bytes
) -> None:
    await branch.write_file("a.txt", agents)
    if mine is None:
        (root / "a.txt").unlink()
    else:
        (root / "a.txt").write_bytes(mine)
    found = branch.conflict("a.txt")
    assert found.places is None
    with pytest.raises(Stale, match="no conflicting lines"):
        branch.land(["a.txt"], resolved={"a.txt": ["ours"]}, plan=found.plan)
    with pytest.raises(LandingRefused):
        branch.land(["a.txt"], plan=found.plan)


async def test_long_unchanged_stretches_show_their_ends(branch: Branch, root: Path) -> None:
    await in_conflict(branch, root)
    places = branch.conflict("a.txt").places or ()
    longest = max((place for place in places if place.kind == "same"), key=lambda place: place.lines)
    assert (longest.lines, longest.cut) == (14, 8)
    assert longest.base == "line 6\nline 7\nline 8\nline 17\nline 18\nline 19\n"


WORDS = st.sampled_from([b"a\n", b"b\n", b"c\n", b"d\r\n", b"\n"])
TEXT = st.tuples(st.lists(WORDS, max_size=9), st.sampled_from([b"", b"end"])).map(
    lambda parts: b"".join(parts[0]) + parts[1]
)


@settings(max_examples=300, deadline=None)
@given(TEXT, TEXT, TEXT, st.booleans())
def test_regions_are_the_three_texts_and_a_side_taken_everywhere_keeps_its_conflicts(
    base: bytes, ours: bytes, theirs: bytes, is_based: bool
) -> None:
    """Each version is the sum of its regions; where nothing conflicts they are the merge."""
    regions = regions_of(base if is_based else None, ours, theirs) or []
    for name, text in (("ours", ours), ("theirs", theirs), *((("base", base),) if is_based else ())):
        whole = b"".join(b"".join(getattr(region, name)) for region in regions)
        assert whole == text or (not is_based and name == "base")
    conflicts = [region for region in regions if region.kind == "conflict"]
    if not conflicts and is_based:
        assert b"".join(region.taken() for region in regions) == merge_lines(base, ours, theirs)
    for name in ("ours", "theirs"):
        text = decided(regions, [name] * len(conflicts))
        for region in conflicts:
            assert b"".join(getattr(region, name)) in text + b"\n"
