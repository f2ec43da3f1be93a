"""A change and its line in the branch's journal are one: neither is there without the other."""

import resource
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from support.trees import write_tree

from bowerbird.core.errors import WorkspaceError
from bowerbird.workspace import Branch, Workspace

LIMIT = 64 * 1024
CALLS = {
    "write": lambda b: b.write_file("a.txt", "new\n"),
    "create": lambda b: b.write_file("deep/er/new.txt", "new\n"),
    "edit": lambda b: b.edit_file("a.txt", "one", "two"),
    "delete": lambda b: b.delete("d", recursive=True),
    "move": lambda b: b.move("d", "moved/to"),
    "move over": lambda b: b.move("a.txt", "d/b.txt", overwrite=True),
    "mkdir": lambda b: b.mkdir("made/deep"),
    "chmod": lambda b: b.set_executable("a.txt", True),
}


@pytest.fixture
def branch(tmp_path: Path) -> Iterator[Branch]:
    root = write_tree(tmp_path / "ws", {"a.txt": "one\n", "d/b.txt": "b\n", "own.txt": "x\n"})
    with Workspace(root, data_dir=tmp_path / "data") as opened:
        yield opened.branch()


@contextmanager
def unwritable(journal: Path) -> Generator[None]:
    """The system refuses each further byte of the journal, of nothing else: files may not become so large."""
    line = journal.read_bytes().splitlines(keepends=True)[-1]
    journal.write_bytes(line * (LIMIT // len(line) + 1))
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (LIMIT, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("bound", [False, True], ids=["unbound", "of a call"])
@pytest.mark.parametrize("name", CALLS)
async def test_a_change_that_cannot_be_recorded_is_not_made(branch: Branch, name: str, bound: bool):
    await branch.write_file("own.txt", "the branch's\n")
    before, journal = await view_of(branch), branch.processes().directory / "journal.jsonl"
    handle = branch.bound("t_1", "c_1") if bound else branch
    with unwritable(journal):
        with pytest.raises(OSError, match="File too large"):
            await CALLS[name](handle)
        assert journal.read_bytes().endswith(b"}\n")
    assert await view_of(branch) == before
    await CALLS[name](handle)
    assert await view_of(branch) != before


async def view_of(branch: Branch) -> dict[str, tuple[str, int, bytes]]:
    """What stands on the branch, empty directories and modes included."""
    todo, seen = ["/"], dict[str, tuple[str, int, bytes]]()
    while todo:
        above = todo.pop()
        for entry in (await branch.ls(above))["entries"]:
            path = f"{above.rstrip('/')}/{entry['name']}"
            facts = await branch.stat(path)
            assert facts is not None
            is_dir = facts["type"] == "dir"
            seen[path] = (facts["type"], facts["mode"], b"" if is_dir else await branch.read_bytes(path))
            todo += [path] if is_dir else []
    return seen


async def test_a_change_that_cannot_be_made_leaves_no_record(branch: Branch):
    lines = len(branch.journal())
    with pytest.raises(WorkspaceError):
        await branch.move("a.txt", "d/b.txt/inner")
    staged = branch.processes().directory / "work"
    staged.rename(staged.with_name("away"))
    try:
        with pytest.raises((WorkspaceError, OSError)):
            await branch.write_file("a.txt", "x")
    finally:
        staged.with_name("away").rename(staged)
    assert len(branch.journal()) == lines and branch.changes().record()["written"] == []
    await branch.write_file("a.txt", "x")
    assert [row["path"] for row in branch.journal()][lines:] == ["/a.txt"]
