"""Merging branches (WS-45 … WS-48, acceptance 9)."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bowerbird.core.errors import NotRelated
from bowerbird.workspace import Branch, Workspace

EMPTY: dict[str, Any] = {
    "written": [], "deleted": [], "conflicts": [], "skipped": [], "merged": [], "unknown": [], "details": {},
}  # fmt: skip
LINES = b"".join(b"line %d\n" % n for n in range(1, 21))


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    root = tmp_path / "ws"
    (root / "d").mkdir(parents=True)
    (root / "a").write_bytes(LINES)
    (root / "d" / "x").write_bytes(b"x\n")
    (root / "d" / "y").write_bytes(b"y\n")
    with Workspace(root, data_dir=tmp_path / "data") as opened:
        yield opened


@pytest.fixture
def parent(workspace: Workspace) -> Branch:
    return workspace.branch()


async def put(branch: Branch, path: str, old: bytes, new: bytes) -> None:
    data = await branch.read_bytes(path)
    assert old in data
    await branch.write_file(path, data.replace(old, new))


async def test_merging_twice_gives_nothing_the_second_time(parent: Branch) -> None:
    """Acceptance 9: and identical edits on both sides are no conflict, unknown paths are listed."""
    child = parent.fork()
    await put(child, "a", b"line 2\n", b"child\n")
    await put(parent, "a", b"line 18\n", b"parent\n")
    await child.write_file("same", "s\n")
    await parent.write_file("same", "s\n")
    await child.delete("d/y")
    assert parent.merge(child, ["a", "d", "same", "none/such"]).record() == EMPTY | {
        "written": ["/a"], "deleted": ["/d/y"], "merged": ["/a"], "unknown": ["/none/such"]
    }  # fmt: skip
    data = await parent.read_bytes("a")
    assert b"child\n" in data and b"parent\n" in data
    assert parent.merge(child).record() == EMPTY


async def test_later_edits_merge_from_the_merged_version(parent: Branch) -> None:
    """WS-48: also right beside the first edit, and also back to the beginning."""
    child = parent.fork()
    await put(child, "a", b"line 2\n", b"first\n")
    parent.merge(child)
    await put(child, "a", b"line 3\n", b"second\n")
    assert parent.merge(child).conflicts == ()
    assert b"first\nsecond\n" in await parent.read_bytes("a")
    await child.write_file("a", LINES)
    assert child.changes().written == () and parent.merge(child).written == ("/a",)
    assert await parent.read_bytes("a") == LINES


async def test_a_rolled_back_merge_can_be_done_again(parent: Branch) -> None:
    child = parent.fork()
    await child.write_file("new", "n\n")
    mark = parent.mark()
    assert parent.merge(child).written == ("/new",)
    parent.rollback(mark)
    assert parent.merge(child).written == ("/new",)


async def test_conflicts_are_untouched_and_explained(parent: Branch) -> None:
    """WS-46, WS-47."""
    child = parent.fork()
    await put(child, "a", b"line 2\n", b"child\n")
    await put(parent, "a", b"line 2\n", b"parent\n")
    await child.delete("d/x")
    await parent.write_file("d/x", "changed\n")
    await child.write_file("bin", b"\0child")
    await parent.write_file("bin", b"\0parent")
    await child.write_file("fine", "f\n")
    result = parent.merge(child)
    assert (result.written, result.conflicts) == (("/fine",), ("/a", "/bin", "/d/x"))
    assert result.skipped == result.conflicts
    reasons = {path: detail.reason for path, detail in result.details.items()}
    assert reasons == {"/a": "both_modified", "/bin": "both_created", "/d/x": "modify_delete"}
    assert result.details["/a"].base.startswith("sha256:") and result.details["/a"].hunks
    assert b"<<<<" not in await parent.read_bytes("a") and b"parent\n" in await parent.read_bytes("a")
    forced = parent.merge(child, force=True)
    assert forced.conflicts == ("/a", "/bin", "/d/x") and forced.skipped == ()
    assert (forced.written, forced.deleted) == (("/a", "/bin"), ("/d/x",))
    assert await parent.read_bytes("a") == await child.read_bytes("a")


async def test_a_deleted_directory_that_gained_a_file_stays(parent: Branch) -> None:
    child = parent.fork()
    await child.delete("d", recursive=True)
    await parent.write_file("d/z", "z\n")
    result = parent.merge(child)
    assert (result.deleted, result.conflicts) == (("/d/x", "/d/y"), ("/d",))
    assert result.details["/d"].reason == "dir_gained"
    assert [row["name"] for row in (await parent.ls("d"))["entries"]] == ["z"]


async def test_a_file_of_ours_never_gives_way_to_their_directory(parent: Branch) -> None:
    child = parent.fork()
    await child.write_file("p/q", "q\n")
    await parent.write_file("p", "a file\n")
    result = parent.merge(child)
    assert result.conflicts == ("/p/q",) and result.details["/p/q"].reason == "type"
    assert await parent.read_bytes("p") == b"a file\n"


async def test_the_child_stays_usable_for_other_subsets(parent: Branch) -> None:
    child = parent.fork()
    await child.write_file("one", "1\n")
    await child.write_file("two/a", "2\n")
    assert parent.merge(child, ["/two"]).written == ("/two/a",)
    assert parent.merge(child).written == ("/one",)


async def test_directories_links_and_modes_merge(parent: Branch) -> None:
    child = parent.fork()
    await child.mkdir("empty/deep")
    await child.set_executable("a", True)
    await put(parent, "a", b"line 5\n", b"parent\n")
    assert parent.merge(child).written == ("/a", "/empty/deep")
    assert b"parent\n" in await parent.read_bytes("a")
    modes = {row["name"]: row["mode"] for row in (await parent.ls("/"))["entries"]}
    assert modes["a"] in (0o755, "0755") and (await parent.ls("empty/deep"))["total"] == 0


async def test_grandchildren_merge_into_any_ancestor_and_strangers_into_none(
    workspace: Workspace, parent: Branch
) -> None:
    child = parent.fork()
    await child.write_file("by_child", "c\n")
    grandchild = child.fork()
    await grandchild.write_file("by_grandchild", "g\n")
    assert parent.merge(grandchild).written == ("/by_grandchild",)
    assert parent.merge(child.id).written == ("/by_child",)
    for wrong in (workspace.branch(), parent):
        with pytest.raises(NotRelated, match="only descendants merge"):
            parent.merge(wrong)


async def test_private_files_are_never_merged(parent: Branch) -> None:
    child = parent.fork()
    child.write_private("/inputs.json", b"{}")
    await child.write_file("open", "o\n")
    assert parent.merge(child).written == ("/open",)


async def test_a_merge_is_in_the_journal(parent: Branch) -> None:
    """WS-37."""
    child = parent.fork()
    await child.write_file("new", "12345")
    parent.bound(turn="t_1", call="c_1").merge(child)
    row = parent.journal()[-1]
    assert (row["via"], row["action"], row["kind"], row["path"], row["size"]) == (
        "merge", "write", "create", "/new", 5
    )  # fmt: skip
    assert (row["turn"], row["call"]) == ("t_1", "c_1")
