"""SB-10, SB-12, issue 10: what becomes another thing between a look at it and its use is met as that, never as an error.

Processes swap files, links and directories while their changes are taken. Racing them finds such a moment once in
thousands; here the swap is made exactly between the look and the use, by whoever asks the kernel for the entry.
"""

import errno
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.abuse import TIERS
from support.branches import branch_of
from support.sandboxes import bench_of

from bowerbird.sandbox.settings import SandboxSettings
from bowerbird.workspace.branch import Branch

KINDS = ("file", "link", "directory", "fifo", "nothing")


def become(path: Path, kind: str) -> None:
    """Make a thing of `kind` stand at `path`."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
    if kind == "file":
        path.write_text("of a file\n")
    elif kind == "link":
        path.symlink_to("elsewhere")
    elif kind == "directory":
        path.mkdir()
        (path / "inner").write_text("inner\n")
    elif kind == "fifo":
        os.mkfifo(path)


def swap_at_use(monkeypatch: pytest.MonkeyPatch, name: str, swap: Callable[[], None]) -> list[str]:
    """Call `swap` once, right before the entry called `name` is opened or read as a link; return what did it."""
    used: list[str] = []

    def watched(call: str) -> Callable[..., Any]:
        real = getattr(os, call)

        def use(path: Any, *arguments: Any, **options: Any) -> Any:
            if not used and options.get("dir_fd") is not None and os.fsdecode(path) == name:
                used.append(call)
                swap()
            return real(path, *arguments, **options)

        return use

    for call in ("open", "readlink"):
        monkeypatch.setattr(os, call, watched(call))
    return used


async def shown_of(branch: Branch, here: str = "/") -> dict[str, str]:
    """What the file tools show below a directory: path → kind."""
    found: dict[str, str] = {}
    for row in (await branch.ls(here, limit=0))["entries"]:
        path = f"{here.rstrip('/')}/{row['name']}"
        found[path] = row["type"]
        if row["type"] == "dir":
            found |= await shown_of(branch, path)
    return found


def expected(kind: str) -> dict[str, str]:
    """What the file tools show of a thing of `kind` called `it`."""
    return {
        "file": {"/it": "file"}, "link": {"/it": "symlink"}, "directory": {"/it": "dir", "/it/inner": "file"},
    }.get(kind, {})  # fmt: skip


@pytest.mark.parametrize("after", KINDS)
@pytest.mark.parametrize("before", ["file", "link", "directory"])
async def test_a_copy_that_changes_while_it_is_compared_is_taken_as_it_is_in_the_end(
    tmp_path, monkeypatch, before: str, after: str
):
    """The first look meets the swap and leaves the rest to the next one, which tells the truth."""
    with branch_of(tmp_path, {"kept": "1"}) as branch:
        view = branch.processes()
        mirror = view.mirror()
        view.bring_in(mirror, 100, 10_000)
        become(mirror.tree / "it", before)
        (mirror.tree / "other").write_text("2")
        with monkeypatch.context() as patched:
            used = swap_at_use(patched, "it", lambda: become(mirror.tree / "it", after))
            view.take_back(mirror)
        assert used, "nobody used the entry after looking at it"
        assert (await branch.read_file("other"))["content"] == "2"
        view.take_back(mirror)
        assert await shown_of(branch) == {"/kept": "file", "/other": "file", **expected(after)}


@pytest.mark.parametrize("after", KINDS)
@pytest.mark.parametrize("before", ["file", "link"])
async def test_a_workspace_that_is_edited_while_it_is_listed_is_shown_as_it_is(
    tmp_path, monkeypatch, before: str, after: str
):
    """A user's editor replaces a link by a file; the listing must not say that nothing is there."""
    with branch_of(tmp_path, {"kept": "1"}) as branch:
        become(tmp_path / "ws/it", before)
        with monkeypatch.context() as patched:
            used = swap_at_use(patched, "it", lambda: become(tmp_path / "ws/it", after))
            shown = {row["name"]: row["type"] for row in (await branch.ls("/", limit=0))["entries"]}
        now = {**expected(after), **({"/it": "special"} if after == "fifo" else {})}
        here = {"/it": before.replace("link", "symlink")} if not used else now
        assert shown == {"kept": "file", **{path[1:]: kind for path, kind in here.items() if path == "/it"}}


@pytest.mark.parametrize("after", KINDS)
@pytest.mark.parametrize("before", ["file", "link", "directory"])
async def test_a_layer_that_changes_while_it_is_captured_is_told_as_it_is_in_the_end(
    tmp_path, monkeypatch, before: str, after: str
):
    """The overlay tier: processes write the open layer itself."""
    with branch_of(tmp_path, {"kept": "1", "it": "old"}) as branch:
        await branch.write_file("other", "2")
        view = branch.processes()
        upper = view.dirs().upper
        become(upper / "it", before)
        with monkeypatch.context() as patched:
            swap_at_use(patched, "it", lambda: become(upper / "it", after))
            view.capture()
        view.capture()
        now = {"nothing": {"/it": "file"}, "fifo": {"/it": "special"}}.get(after, expected(after))
        assert await shown_of(branch) == {"/kept": "file", "/other": "file", **now}


@pytest.mark.parametrize("tier", TIERS)
async def test_changes_that_cannot_be_taken_leave_no_process_and_no_branch_held(
    tmp_path, monkeypatch, tier: str
):
    """Law 7: whoever runs the command is told of a device that fails; the next one finds what was changed."""
    async with bench_of(tmp_path, {"a": "1"}, settings=SandboxSettings(tier=tier), needs=tier) as bench:
        real, broken = os.scandir, [True]

        def scan(path: Any = ".") -> Any:
            if (
                broken[0]
                and isinstance(path, int)
                and Path(f"/proc/self/fd/{path}").readlink().name == "made"
            ):
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            return real(path)

        monkeypatch.setattr(os, "scandir", scan)
        runs = bench.sandbox.background
        task = await runs.start(
            "mkdir made; echo 1 > made/x; echo said; sleep 0.8"
        )  # its disk is looked at meanwhile
        await runs.finished()
        row = runs.poll(task)
        assert row["status"] == "error" and row["output"].startswith(
            "said\n[what it changed could not be taken"
        )
        with pytest.raises(OSError, match="Input/output error"):
            await bench.sandbox.run("echo 2 > made/y")  # it looks first, and does not start
        assert not bench.sandbox.busy and runs.running == ()
        broken[0] = False
        assert (await bench.sandbox.run("cat made/*; echo 3 > z")).output == "1\n"
        assert await shown_of(bench.branch) == {
            "/a": "file", "/made": "dir", "/made/x": "file", "/z": "file"
        }  # fmt: skip


async def test_a_command_may_end_while_a_tool_changes_the_branch(tmp_path):
    """SB-37: the thread of the tool's call found no copy any more, and its change was an AttributeError."""
    with branch_of(tmp_path, {"kept": "1"}) as branch:
        view = branch.processes()
        mirror = view.mirror()
        view.bring_in(mirror, 100, 10_000)
        live = view.live_copy(mirror)
        live.__enter__()
        with branch._state.writing() as stack:  # what every change of a tool does
            live.__exit__(None, None, None)
            stack.put_symlink("/link", "kept")
        view.bring_in(mirror, 100, 10_000)
        assert await shown_of(branch) == {"/kept": "file", "/link": "symlink"}
        assert (mirror.tree / "link").is_symlink()
