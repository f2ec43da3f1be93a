"""UI-87: a moved file with a few edits is one change with those edits, not a new file and a deletion."""

import random
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.branches import branch_of

from bowerbird.workspace.compare.renames import renames_of
from bowerbird.workspace.tree.changes import Change
from bowerbird.workspace.tree.content import Content
from bowerbird.workspace.tree.threeway import Side

FIFTY = "".join(f"line {number} of the file\n" for number in range(50))
EDITED = FIFTY.replace("line 20 ", "another line ")


def gone(path: str, text: str) -> Change:
    return Change(path, Side("file", 0o644, Content(text.encode())), None)


def made(path: str, text: str) -> Change:
    return Change(path, None, Side("file", 0o644, Content(text.encode())))


async def test_the_edits_of_a_moved_file_are_shown(tmp_path) -> None:
    with branch_of(tmp_path, {"old/name.py": FIFTY, "same.txt": "same\n"}) as branch:
        await branch.write_file("new/name.py", EDITED)
        await branch.delete("old/name.py")
        await branch.move("same.txt", "moved.txt")
        diff = branch.diff()
        rows = {row.path: row for row in diff.written}
        assert rows["/new/name.py"].renamed_from == "/old/name.py"
        assert rows["/new/name.py"].similarity == 97
        (edit,) = rows["/new/name.py"].edits
        assert [line for line in edit.text.splitlines() if line[0] in "+-"] == [
            "-line 20 of the file", "+another line of the file",
        ]  # fmt: skip
        # It is a new file all the same: its own hunks land it, and the old path is a deletion.
        assert rows["/new/name.py"].kind == "create" and rows["/new/name.py"].hunks[0].added == 50
        assert "/old/name.py" in diff.deleted
        record = {row["path"]: row for row in diff.record()["written"]}
        assert record["/new/name.py"]["similarity"] == 97 and len(record["/new/name.py"]["edits"]) == 1
        assert (rows["/moved.txt"].similarity, rows["/moved.txt"].edits) == (100, ())


def test_half_of_the_larger_file_is_needed() -> None:
    half = "".join(f"line {number} of the file\n" for number in range(26))
    other = "".join(f"other {number} text\n" for number in range(400))
    assert renames_of([gone("/a", FIFTY), made("/b", half)])["/b"].similarity >= 50
    assert renames_of([gone("/a", FIFTY), made("/b", half + other)]) == {}
    assert renames_of([gone("/a", FIFTY), made("/b", FIFTY * 3)]) == {}


def test_a_deleted_file_became_one_other_at_most_and_the_likest_wins() -> None:
    found = renames_of(
        [gone("/x/a.py", FIFTY), made("/b", EDITED.replace("line 3 ", "x ")), made("/c", EDITED)]
    )
    assert {path: rename.source.path for path, rename in found.items()} == {"/c": "/x/a.py"}
    twins = renames_of([gone("/x/a.py", FIFTY), made("/b.py", EDITED), made("/y/a.py", EDITED)])
    assert list(twins) == ["/y/a.py"], "the same name decides between equals"


def test_what_is_equal_is_never_taken_for_something_alike() -> None:
    found = renames_of([gone("/a", EDITED), gone("/b", FIFTY), made("/c", FIFTY), made("/d", EDITED + "x\n")])
    assert {path: (row.source.path, row.similarity == 100) for path, row in found.items()} == {
        "/c": ("/b", True), "/d": ("/a", False),
    }  # fmt: skip


@pytest.mark.parametrize("text", ["", "\0binary\n" * 20, "x" * 2_000_000 + "\n"])
def test_what_has_no_lines_to_compare_is_left_alone(text: str) -> None:
    assert renames_of([gone("/a", text), made("/b", text + "more\n")]) == {}


LINES = st.lists(st.sampled_from("abcdefgh"), max_size=12).map(
    lambda rows: "".join(f"{r * 9}\n" for r in rows)
)


@given(st.lists(LINES, max_size=5), st.lists(LINES, max_size=5))
def test_pairs_are_one_to_one_and_of_given_changes(old: list[str], new: list[str]) -> None:
    changes = [gone(f"/o{n}", text) for n, text in enumerate(old)]
    changes += [made(f"/n{n}", text) for n, text in enumerate(new)]
    found = renames_of(changes)
    alike = [row.source.path for row in found.values() if row.similarity < 100]
    assert len(set(alike)) == len(alike)
    for path, row in found.items():
        before, after = old[int(row.source.path[2:])], new[int(path[2:])]
        assert (before == after) == (row.similarity == 100) and 50 <= row.similarity <= 100
        same = sum(min(before.count(line), after.count(line)) for line in {f"{c * 9}\n" for c in "abcdefgh"})
        assert row.similarity in (100, min(99, 100 * same * 10 // max(len(before), len(after))))


def test_a_thousand_files_of_the_same_lines_take_no_square() -> None:
    """Twice as many, about twice as long: a line that is everywhere is not followed."""

    def seconds(count: int) -> float:
        pick = random.Random(1)

        def text() -> str:
            return "".join(f"common {pick.randrange(40)} line\n" for _ in range(60))

        changes = [gone(f"/o{n}", text()) for n in range(count)] + [
            made(f"/n{n}", text()) for n in range(count)
        ]
        start = time.process_time()
        renames_of(changes)
        return time.process_time() - start

    seconds(100)
    assert seconds(1600) < 8 * max(seconds(400), 0.005)


async def test_a_renamed_file_counts_once(tmp_path) -> None:
    """UI-87: lists and heads count what the review shows, not its two paths."""
    with branch_of(tmp_path, {"old.py": FIFTY, "same.txt": "same\n", "gone.txt": "gone\n"}) as branch:
        await branch.move("old.py", "new.py")
        await branch.write_file("same.txt", "other\n")
        await branch.delete("gone.txt")
        assert len(branch.changes().paths) == 4
        assert branch.changed_files() == 3
