"""File tools and odd inputs: what they say and what they never do (engine finding 8, issue 10 blocker 6)."""

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from support.branches import branch_of
from support.file_desk import Desk

from bowerbird.core.errors import InvalidArgument, LimitExceeded, NotFound, PathEscape, ToolError
from bowerbird.subagents.checks import touches_checks
from bowerbird.tools.web.html_bounded import markdown_within, results_within
from bowerbird.workspace import WorkspaceLimits


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    root = tmp_path / "ws"
    root.mkdir()
    made = Desk(root)
    yield made
    made.workspace.close()


async def test_reading_beyond_the_end_says_how_long_the_file_is(desk: Desk) -> None:
    desk.put("a.txt", "1\n2\n3\n")
    assert (
        await desk.text("read_file", path="a.txt", offset=9)
        == "[a.txt has 3 lines; offset 9 is beyond its end]"
    )


async def test_a_write_that_begins_another_tree_says_so(desk: Desk) -> None:
    """WS-13; an absolute path elsewhere is a path of the branch."""
    desk.put("Dir/File.py", "x\n")
    assert "Note: Dir exists; dir is another path." in await desk.text(
        "write_file", path="dir/new.py", content="x"
    )
    said = await desk.text("write_file", path="/home/u/other/f", content="x")
    assert "Note: paths begin at the workspace; /home/u/other/f outside of it was not touched." in said
    inside = f"{desk.branch.root}/fresh/f"
    assert "Note" not in await desk.text("write_file", path=inside, content="x")
    await desk.text("read_file", path="Dir/File.py")
    assert "Note" not in await desk.text("write_file", path="Dir/File.py", content="y")
    assert "Note" not in await desk.text("write_file", path="plain/new.py", content="y")


async def test_what_cannot_be_meant_is_refused(tmp_path: Path) -> None:
    with branch_of(tmp_path, {"Dir/File.py": "x\n"}) as branch:
        with pytest.raises(NotFound, match=r"did you mean Dir/File\.py"):
            await branch.read_file("dir/file.py")
        for call in (branch.diff, branch.unified, branch.plan_landing, branch.land):
            with pytest.raises(PathEscape, match=r"\.\./x leaves the workspace"):
                call(["../x"])
        with pytest.raises(InvalidArgument, match="child is None"):
            branch.merge(None)  # pyright: ignore[reportArgumentType] - what a caller may pass all the same


async def test_a_file_too_large_to_edit_names_the_way_out(tmp_path: Path) -> None:
    limits = WorkspaceLimits(edit_mb=1)
    with branch_of(tmp_path, {"big": "x" * 2**20 + "y"}, limits=limits) as branch:
        editing = branch.edit_file("big", "y", "z")
        with pytest.raises(LimitExceeded, match="use bash"):
            await editing


async def test_a_forced_merge_lists_what_it_threw_away(tmp_path: Path) -> None:
    lines = [f"{number}\n" for number in range(40)]
    with branch_of(tmp_path, {"a": "".join(lines)}) as branch:
        child = branch.fork()
        await child.edit_file("a", "\n5\n", "\ntheirs\n")
        await branch.edit_file("a", "\n5\n", "\nours\n")
        await branch.edit_file("a", "\n30\n", "\nmerged before\n")
        detail = branch.merge(child, force=True).details["/a"]
        lost = "".join(hunk.text for hunk in detail.lost)
        assert "+ours\n" in lost and "+merged before\n" in lost


@pytest.mark.parametrize(
    ("command", "path"),
    [
        ("python3 t.py", "/t.py"), ("cd . && ./run.sh -v", "/run.sh"), ("python -m pkg.check", "/pkg/check.py"),
        ("make test", "/Makefile"), ("sh -c 'x'; bash it.sh", "/it.sh"), ('broken "quote t.py', "/t.py"),
    ],
)  # fmt: skip
def test_the_files_that_a_check_runs_count_as_touched(command: str, path: str) -> None:
    """Attempts that emptied the file of the check won and were merged."""
    changed = {"written": [{"path": path, "kind": "modify"}], "deleted": []}
    assert touches_checks(changed, (), [command])
    assert touches_checks({"written": [], "deleted": [path]}, (), [command])
    assert not touches_checks(changed, (), ["python3 other.py"])


@pytest.mark.parametrize("page", [b"<a " * 20_000, b"<div>" * 100_000], ids=["unclosed", "nested"])
async def test_a_page_made_to_be_slow_is_given_up_and_blocks_nobody(
    page: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """20 KB of unclosed tags held a thread for minutes."""
    monkeypatch.setattr("bowerbird.tools.web.html_bounded.DEADLINE_S", 0.3)
    begun = time.monotonic()
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(0.02)
            ticks += 1

    ticking = asyncio.create_task(tick())
    with pytest.raises(ToolError, match="the page could not be read"):
        await markdown_within(page, None, "https://example.org/")
    ticking.cancel()
    assert ticks > (time.monotonic() - begun) / 0.02 / 10


async def test_an_ordinary_page_is_read_in_the_other_process() -> None:
    page = "<title>T</title><body><h1>Größe</h1><p>text</p>".encode() + b"<p>more</p>" * 200
    assert (await markdown_within(page, "utf-8", "https://example.org/")).startswith("# T\n\n# Größe\n\ntext")
    found = b'<div class="result"><a class="result__a" href="https://x.org/">X</a></div>' * 20
    assert [row.url for row in await results_within(found, "https://s.org/") or []] == ["https://x.org/"] * 20
    assert await results_within(b"<p>else</p>" * 100, "https://s.org/") is None
