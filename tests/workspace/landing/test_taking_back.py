"""Some of a branch's changes taken back, files taken in whole or not at all, one look for people (SV-14, 16, 28)."""

from pathlib import Path

import pytest

from bowerbird.core.errors import NotDirectory, NotFound, ReadOnly
from bowerbird.workspace import Branch, Workspace


@pytest.fixture
def place(tmp_path: Path) -> Path:
    root = tmp_path / "ws"
    (root / "src").mkdir(parents=True)
    (root / "src/a.py").write_text("a\n")
    (root / "run.sh").write_text("#!/bin/sh\n")
    (root / "run.sh").chmod(0o755)
    (root / "link").symlink_to("src/a.py")
    return root


@pytest.fixture
def branch(place: Path, tmp_path: Path):  # type: ignore[no-untyped-def]
    with Workspace(place, data_dir=tmp_path / "data") as workspace:
        yield workspace.branch()


async def test_what_is_taken_back_stands_as_it_was_and_the_rest_stays(branch: Branch) -> None:
    await branch.write_file("src/a.py", "changed\n")
    await branch.delete("run.sh")
    await branch.delete("link")
    await branch.write_file("new/deep/x.txt", "x")
    await branch.write_file("kept.txt", "kept")
    gone = branch.revert(["src", "run.sh", "link", "new"])
    assert sorted(gone) == ["/link", "/new/deep/x.txt", "/run.sh", "/src/a.py"]
    assert branch.changes().record() == {"written": ["/kept.txt"], "deleted": []}
    assert (await branch.read_bytes("src/a.py")) == b"a\n"
    facts = await branch.stat("run.sh")
    assert facts is not None and facts["mode"] == 0o755
    assert await branch.stat("new") is None


async def test_nothing_is_taken_back_when_one_path_has_no_change(branch: Branch) -> None:
    await branch.write_file("src/a.py", "changed\n")
    with pytest.raises(NotFound):
        branch.revert(["src/a.py", "run.sh"])
    assert branch.changes().written == ("/src/a.py",)


async def test_a_frozen_change_is_taken_back_too(branch: Branch) -> None:
    await branch.write_file("src/a.py", "one\n")
    branch.end_turn("t_1")
    await branch.write_file("src/a.py", "two\n")
    branch.revert(["src/a.py"])
    assert branch.changes().record() == {"written": [], "deleted": []}
    assert branch.diff().record() == {"written": [], "deleted": []}


@pytest.mark.parametrize(
    ("second", "error"), [("src/a.py/under", NotDirectory), (".agent/x", ReadOnly)], ids=["file", "reserved"]
)
async def test_files_are_taken_in_all_or_none(
    branch: Branch, tmp_path: Path, second: str, error: type[Exception]
) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.write_bytes(b"1")
    two.write_bytes(b"2")
    with pytest.raises(error):
        branch.take([("sub/one", one), (second, two)])
    assert branch.changes().record() == {"written": [], "deleted": []}
    assert branch.take([("sub/one", one), ("src/a.py", two)]) == ["/sub/one", "/src/a.py"]
    assert (await branch.read_bytes("src/a.py")) == b"2"


async def test_a_look_lists_files_with_sizes_and_what_the_branch_changed(branch: Branch, place: Path) -> None:
    await branch.write_file("src/b.py", "bb")
    await branch.delete("run.sh")
    (place / ".agent").mkdir()
    (place / ".agent/memory.md").write_text("private")
    (place / "outside").symlink_to("/etc/passwd")
    rows, more = branch.browse().files(10)
    assert [(row.path, row.size, row.changed) for row in rows] == [
        ("/link", 2, False), ("/src/a.py", 2, False), ("/src/b.py", 2, True)
    ]  # fmt: skip
    assert not more and branch.browse().files(1)[1]
    changes = branch.browse().changes()
    assert changes["/run.sh"] is None and changes["/src/b.py"] is not None
