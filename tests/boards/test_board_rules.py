"""DE-33 … DE-41: what a board may hold, as pure decisions."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bowerbird.boards.rules import (
    Shape,
    TaskChange,
    board_lines,
    changed,
    is_claimable,
    linked,
    merged,
    path,
    shown,
    task_id_of,
)
from bowerbird.boards.words import active_form
from bowerbird.core.errors import InvalidArgument
from bowerbird.store.rows.board import TaskRow

IDS = range(1, 8)
edges = st.frozensets(st.tuples(st.sampled_from(IDS), st.sampled_from(IDS)), max_size=20)
status = st.sampled_from(["pending", "in_progress", "completed"])
shapes = st.builds(Shape, st.fixed_dictionaries(dict.fromkeys(IDS, status)), edges)
links = st.lists(st.sampled_from(IDS), max_size=3).map(tuple)
changes = st.builds(
    TaskChange, add_blocked_by=links, add_blocks=links, remove_blocked_by=links, remove_blocks=links
)


def task(number: int = 1, **values: object) -> TaskRow:
    return TaskRow(board="b", id=number, subject="Add tests", **values)  # type: ignore[arg-type]


def has_cycle(of: frozenset[tuple[int, int]]) -> bool:
    left = set(of)
    while left:
        free = {u for u, _ in left} - {v for _, v in left}
        kept = {edge for edge in left if edge[0] not in free}
        if kept == left:
            return True
        left = kept
    return False


@given(shapes)
def test_the_two_lists_of_a_link_never_disagree(shape: Shape) -> None:
    """DE-37."""
    for a in IDS:
        for b in IDS:
            assert (b in shape.blocked(a)) == (a in shape.blockers(b))


@given(st.lists(st.tuples(st.sampled_from(IDS), changes), max_size=12))
def test_no_order_of_changes_leaves_a_cycle_and_refused_ones_name_a_real_one(
    steps: list[tuple[int, TaskChange]],
) -> None:
    """DE-37."""
    shape = Shape(dict.fromkeys(IDS, "pending"))
    for number, change in steps:
        try:
            after = linked(number, shape, change)
        except InvalidArgument as error:
            added, removed = change.links(number)
            wanted = (set(shape.edges) - set(removed)) | set(added)
            assert has_cycle(frozenset(wanted)) and ("cycle" in str(error) or "itself" in str(error))
        else:
            shape = Shape(shape.statuses, after)
            assert not has_cycle(after)


@given(edges, st.sampled_from(IDS), st.sampled_from(IDS))
def test_a_path_is_a_chain_of_links_from_start_to_goal(
    of: frozenset[tuple[int, int]], start: int, goal: int
) -> None:
    found = path(of, start, goal)
    if found is None:
        reached = {start}
        while more := {v for u, v in of if u in reached} - reached:
            reached |= more
        assert goal not in reached
    else:
        assert found[0] == start and found[-1] == goal and all(edge in of for edge in pairwise(found))


@given(shapes, st.sampled_from(IDS), status)
def test_a_blocked_task_is_neither_started_nor_completed(shape: Shape, number: int, wanted: str) -> None:
    """DE-38: the blockers are named."""
    before, blockers = task(number, status=shape.statuses[number]), shape.blockers(number)
    try:
        after = changed(before, TaskChange(status=wanted), blockers)
    except InvalidArgument as error:
        assert blockers and wanted not in ("pending", before.status)
        assert all(str(blocker) in str(error) for blocker in blockers)
    else:
        assert after.status == wanted and (not blockers or wanted in ("pending", before.status))


def test_a_link_that_closes_a_cycle_is_refused_and_the_cycle_shown() -> None:
    shape = Shape(dict.fromkeys((1, 2, 3), "pending"), frozenset({(1, 2), (2, 3)}))
    with pytest.raises(InvalidArgument, match="3 → 1 → 2 → 3"):
        linked(3, shape, TaskChange(add_blocks=(1,)))
    with pytest.raises(InvalidArgument, match="3 → 1 → 2 → 3"):
        linked(1, shape, TaskChange(add_blocked_by=(3,)))


def test_links_to_unknown_tasks_and_to_itself_are_refused_naming_them() -> None:
    shape = Shape({1: "pending"})
    with pytest.raises(InvalidArgument, match="no task 8, 9"):
        linked(1, shape, TaskChange(add_blocks=(9, 8)))
    with pytest.raises(InvalidArgument, match="task 1 cannot block itself"):
        linked(1, shape, TaskChange(add_blocked_by=(1,)))


def test_of_two_that_claim_the_second_is_told_who_was_first() -> None:
    """DE-41."""
    mine = task(owner="ann", status="in_progress")
    with pytest.raises(InvalidArgument, match="task 1 is owned by ann"):
        changed(mine, TaskChange(owner="bob", status="in_progress"), [])
    assert changed(mine, TaskChange(owner="bob"), []).owner == "bob"  # a plain edit may hand it on


@given(shapes, st.sampled_from(IDS), st.sampled_from(["", "ann"]))
def test_only_pending_free_tasks_of_nobody_are_claimable(shape: Shape, number: int, owner: str) -> None:
    one = task(number, status=shape.statuses[number], owner=owner)
    expected = one.status == "pending" and owner == "" and shape.blockers(number) == []
    assert is_claimable(one, shape) == expected


def test_metadata_merges_and_null_deletes_a_key() -> None:
    """DE-36."""
    assert merged({"a": 1, "b": {"x": 1}}, {"b": None, "c": [2], "d": None}) == {"a": 1, "c": [2]}
    with pytest.raises(InvalidArgument, match="metadata"):
        merged({}, {"a": "x" * 20_000})


@pytest.mark.parametrize(("given", "number"), [(3, 3), ("3", 3), (" #12 ", 12), ("007", 7)])
def test_ids_are_integers_or_numeric_strings(given: object, number: int) -> None:
    """DE-35."""
    assert task_id_of(given) == number


@pytest.mark.parametrize("given", ["", "x", "-1", "1.5", True, "²", "9" * 30, None])
def test_anything_else_is_no_id_and_said_so(given: object) -> None:
    with pytest.raises(InvalidArgument, match="not a task id"):
        task_id_of(given)


@pytest.mark.parametrize(
    ("subject", "form"),
    [
        ("Add tests", "Adding tests"), ("write docs", "writing docs"), ("Run CI", "Running CI"),
        ("Set up", "Setting up"), ("Tie knots", "Tying knots"), ("Testing things", "Testing things"),
        ("Parser", "Working on: Parser"), ("  Fix \n it ", "Fixing it"),
    ],
)  # fmt: skip
def test_the_active_form_follows_from_the_subject(subject: str, form: str) -> None:
    """DE-33."""
    assert active_form(subject) == form


@given(st.text(max_size=80))
def test_every_subject_has_an_active_form(subject: str) -> None:
    assert active_form(subject).strip() or not subject.strip()


def test_the_list_shows_state_number_subject_blockers_and_owner() -> None:
    """DE-40, DE-32."""
    shape = Shape({1: "in_progress", 2: "completed", 10: "pending"}, frozenset({(1, 10), (2, 10)}))
    rows = [task(1, status="in_progress", owner="ann"), task(2, status="completed"), task(10)]
    data = [shown(row, shape) for row in rows]
    assert board_lines(data).splitlines() == [
        "[>] #1: Add tests @ann", "[x] #2: Add tests", "[ ] #10: Add tests (blocked by #1)", "", "1 of 3 done",
    ]  # fmt: skip
    assert list(data[2]) == [
        "id", "subject", "description", "status", "blockedBy", "blocks", "owner", "activeForm", "metadata",
    ]  # fmt: skip
    assert data[0]["blocks"] == [10] and data[1]["blocks"] == [] and data[2]["activeForm"] == "Adding tests"
    assert board_lines([]) == "There are no tasks."
