"""Virtual paths: input forms, links, `..`, names (WS-10 … WS-16)."""

import asyncio
import base64
import os
import threading
from contextlib import contextmanager

import pytest
from support.branches import branch_of
from support.patience import HANG_S

from bowerbird.core.errors import (
    InvalidPath,
    IsDirectory,
    NotDirectory,
    NotFound,
    PathEscape,
    SpecialFile,
    TooManyLinks,
    WorkspaceError,
)
from bowerbird.workspace.tree import handles


@pytest.mark.parametrize(
    "form", ["src/a.py", "./src/a.py", "/src/a.py", "src//a.py", "src/x/../a.py", "{ws}/src/a.py"]
)
async def test_every_form_of_a_path_names_the_same_file(tmp_path, form):
    """WS-10"""
    with branch_of(tmp_path, {"src/a.py": "1\n", "src/x/": ""}) as branch:
        record = await branch.read_file(form.format(ws=tmp_path / "ws"))
        assert (record["path"], record["content"]) == ("/src/a.py", "1\n")


@pytest.mark.parametrize("path", ["..", "a/../../x", "/../etc/passwd", "out/passwd", "abs", "up/up/etc"])
async def test_a_path_that_leaves_the_workspace_is_refused_not_clamped(tmp_path, path):
    """WS-11, WS-12, acceptance 6"""
    with branch_of(tmp_path, {"a/f": "x"}) as branch:
        (tmp_path / "ws/out").symlink_to("/etc")
        (tmp_path / "ws/abs").symlink_to("/etc/passwd")
        (tmp_path / "ws/up").symlink_to("..")
        for call in (branch.read_file(path), branch.write_file(path, "x"), branch.edit_file(path, "a", "b")):
            with pytest.raises(PathEscape, match="leaves the workspace"):
                await call
        assert branch.changes().record() == {"written": [], "deleted": []}


async def test_dotdot_goes_up_from_where_a_link_leads(tmp_path):
    """WS-11: as the kernel resolves it, not by text."""
    with branch_of(tmp_path, {"deep/er/f": "right", "f": "wrong", "deep/f": "right too"}) as branch:
        (tmp_path / "ws/link").symlink_to("deep/er")
        assert (await branch.read_file("link/../f"))["content"] == "right too"
        with pytest.raises(NotFound):
            await branch.read_file("missing/../f")
        with pytest.raises(NotDirectory):
            await branch.read_file("f/../deep/f")


async def test_links_inside_the_tree_are_followed_by_reads_and_writes_only(tmp_path):
    """WS-12"""
    with branch_of(tmp_path, {"real/f": "one\n"}) as branch:
        ws = tmp_path / "ws"
        (ws / "rel").symlink_to("real")
        (ws / "abs").symlink_to(ws / "real/f")
        assert (await branch.read_file("rel/f"))["path"] == "/real/f"
        assert (await branch.write_file("abs", "two\n"))["written"] == "/real/f"
        assert (await branch.read_file("rel/f"))["content"] == "two\n"
        [row] = (await branch.ls("rel"))["entries"]
        assert (row["type"], row["target"]) == ("symlink", "real")
        assert (await branch.delete("rel"))["deleted"] == ["/rel"]
        assert (await branch.move("abs", "moved"))["to"] == "/moved"
        assert branch.changes().record() == {"written": ["/moved", "/real/f"], "deleted": ["/abs", "/rel"]}
        assert (ws / "real/f").read_text() == "one\n"


async def test_a_loop_of_links_ends(tmp_path):
    """WS-12, acceptance 6"""
    with branch_of(tmp_path, {"f.txt": "x"}) as branch:
        ws = tmp_path / "ws"
        (ws / "loop").symlink_to(".")
        (ws / "a").symlink_to("b")
        (ws / "b").symlink_to("a")
        assert (await branch.read_file("loop/loop/loop/f.txt"))["content"] == "x"
        assert (await branch.list_files())["files"] == ["/a", "/b", "/f.txt"]
        with pytest.raises(TooManyLinks):
            await branch.read_file("a")
        with pytest.raises(TooManyLinks):
            await branch.read_file("loop/" * 41 + "f.txt")


async def test_writing_through_a_dangling_link_makes_its_target(tmp_path):
    with branch_of(tmp_path) as branch:
        (tmp_path / "ws/link").symlink_to("sub/new.txt")
        assert (await branch.write_file("link", "x"))["written"] == "/sub/new.txt"
        assert branch.changes().written == ("/sub/new.txt",)


@pytest.mark.parametrize("path", ["", "a\0b", "x" * 256, "d/" * 2050, "\ud800", {"b64": "!"}, {"hex": "00"}])
async def test_a_path_that_no_file_can_have_is_invalid(tmp_path, path):
    """WS-13"""
    with branch_of(tmp_path) as branch, pytest.raises(InvalidPath):
        await branch.read_file(path)


async def test_a_missing_file_names_the_sibling_that_differs_by_case_or_normalisation(tmp_path):
    """WS-13"""
    with branch_of(tmp_path, {"src/Readme.md": "", "src/caf\u00e9.txt": ""}) as branch:
        with pytest.raises(NotFound, match=r"did you mean src/Readme\.md\?"):
            await branch.read_file("src/README.md")
        with pytest.raises(NotFound, match="did you mean src/caf\u00e9"):
            await branch.edit_file("src/cafe\u0301.txt", "a", "b")
        with pytest.raises(NotFound) as error:
            await branch.read_file("src/other")
        assert error.value.path == "/src/other" and "did you mean" not in str(error.value)


async def test_names_that_are_not_utf8_and_newlines_survive_every_operation(tmp_path):
    """WS-14"""
    odd = b"caf\xe9\nline"
    given = {"b64": base64.b64encode(b"/d/" + odd).decode()}
    with branch_of(tmp_path, {"d/plain": "needle\n"}) as branch:
        (tmp_path / "ws/d" / os.fsdecode(odd)).write_text("needle\n")
        shown = "caf\\xe9\nline"
        row = next(r for r in (await branch.ls("d"))["entries"] if r["name"] == shown)
        assert base64.b64decode(row["path_b64"]) == odd
        listing = await branch.list_files("d/**")
        assert listing["files"] == [f"/d/{shown}", "/d/plain"]
        assert base64.b64decode(listing["path_b64"][f"/d/{shown}"]) == b"/d/" + odd
        record = await branch.read_file(given)
        assert (record["path"], record["path_b64"]) == (f"/d/{shown}", given["b64"])
        matches = (await branch.search_files("needle"))["matches"]
        assert [m["path"] for m in matches] == [f"/d/{shown}", "/d/plain"]
        await branch.edit_file(given, "needle", "thread")
        assert [m["path"] for m in (await branch.search_files("thread"))["matches"]] == [f"/d/{shown}"]
        await branch.move(given, "d2/new\nname")
        assert (await branch.read_bytes("d2/new\nname")) == b"thread\n"
        assert (await branch.delete({"b64": base64.b64encode(b"d2/new\nname").decode()}))["count"] == 1
        assert branch.journal()[-1]["path"] == "/d2/new\nname"


async def test_special_files_are_shown_and_never_opened(tmp_path):
    """WS-15: opening the FIFO would hang for ever."""
    with branch_of(tmp_path, {"d/f": "x"}) as branch:
        os.mkfifo(tmp_path / "ws/d/pipe")
        rows = {r["name"]: r["type"] for r in (await branch.ls("d"))["entries"]}
        assert rows == {"f": "file", "pipe": "special"}
        calls = [
            branch.read_file("d/pipe"),
            branch.read_bytes("d/pipe"),
            branch.write_file("d/pipe", "x"),
            branch.edit_file("d/pipe", "a", "b"),
            branch.set_executable("d/pipe", True),
            branch.move("d/pipe", "e"),
            branch.move("d", "e"),
        ]
        for call in calls:
            with pytest.raises(SpecialFile):
                await call
        assert (await branch.list_files())["files"] == ["/d/f"]
        assert branch.changes().record() == {"written": [], "deleted": []}


async def test_reading_a_directory_says_so(tmp_path):
    with branch_of(tmp_path, {"d/f": "x"}) as branch:
        with pytest.raises(IsDirectory):
            await branch.read_file("d")
        with pytest.raises(NotDirectory):
            await branch.read_file("d/f/g")
        with pytest.raises(NotDirectory):
            await branch.ls("d/f")
        with pytest.raises(NotFound):
            await branch.ls("nope")


async def test_a_link_swapped_in_during_calls_never_leads_outside(tmp_path):
    """WS-12, acceptance 6: a thread swaps file, directory and links while calls run."""
    secret = tmp_path / "outside"
    secret.mkdir()
    (secret / "f").write_text("secret\n")
    with branch_of(tmp_path, {"d/f": "inside\n"}) as branch:
        ws = tmp_path / "ws"
        (ws / "evil").symlink_to(secret)
        stop = threading.Event()

        def swap() -> None:
            while not stop.is_set():
                (ws / "d").rename(ws / "kept")
                (ws / "evil").rename(ws / "d")
                (ws / "d").rename(ws / "evil")
                (ws / "kept").rename(ws / "d")

        thread = threading.Thread(target=swap)
        thread.start()
        try:
            for number in range(400):
                for call in (branch.read_file("d/f"), branch.write_file(f"d/n{number % 5}", "mine\n")):
                    try:
                        record = await call
                        assert record.get("content", "inside\n") == "inside\n"
                    except WorkspaceError:
                        continue
            for _ in range(5):
                matches = (await branch.search_files("secret|inside"))["matches"]
                assert all(match["text"] == "inside" for match in matches)
        finally:
            stop.set()
            thread.join()
        assert sorted(p.name for p in secret.iterdir()) == ["f"]


async def test_without_openat2_the_same_paths_are_reached_and_the_same_refused(tmp_path, monkeypatch):
    """WS-12: kernels and filters that lack the call."""
    monkeypatch.setattr(handles, "_openat2", lambda: None)
    with branch_of(tmp_path, {"d/e/f": "inside"}) as branch:
        (tmp_path / "ws/out").symlink_to("/etc")
        (tmp_path / "ws/in").symlink_to("d/e")
        assert (await branch.read_file("in/f"))["content"] == "inside"
        await branch.write_file("in/g", "x")
        assert (await branch.list_files())["files"] == ["/d/e/f", "/d/e/g", "/out"]
        with pytest.raises(PathEscape):
            await branch.read_file("out/passwd")
        with _handle(tmp_path) as root:
            assert handles.look(root, b"out") is not None
            assert handles.look(root, b"out/passwd") is None


@contextmanager
def _handle(tmp_path):
    fd = os.open(tmp_path / "ws", handles.ROOT)
    try:
        yield fd
    finally:
        os.close(fd)


async def test_a_sparse_terabyte_costs_nothing(tmp_path):
    """WS-16, acceptance 8"""
    import resource

    with branch_of(tmp_path, {"a.txt": "needle\n"}) as branch:
        with (tmp_path / "ws/huge").open("wb") as file:
            file.truncate(1 << 40)
        with (tmp_path / "ws/log").open("wb") as file:
            file.write(b"first\nsecond\n" + b"x" * 10_000 + b"\n")
            file.truncate(1 << 40)
            file.seek(0, os.SEEK_END)
            file.write(b"\nlast line\n")
        os.mkfifo(tmp_path / "ws/pipe")
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        async with asyncio.timeout(HANG_S):
            assert (await branch.list_files())["total"] == 3
            found = await branch.search_files("needle")
            assert [m["path"] for m in found["matches"]] == ["/a.txt"]
            assert [s["path"] for s in found["skipped"]] == ["/huge", "/log"]
            record = await branch.read_file("log", offset=2, limit=1)
            assert (record["content"], record["total_lines"], record["hash"]) == ("second\n", None, None)
            assert (await branch.read_file("log", offset=5))["content"] == "last line\n"
            assert (await branch.read_file("huge"))["binary"] is True
            assert await branch.read_bytes("huge", 1 << 39, 4) == bytes(4)
            with pytest.raises(WorkspaceError, match="read it in parts"):
                await branch.read_bytes("huge")
            assert branch.diff().written == ()
            child = branch.fork()
            assert (await child.delete("huge"))["count"] == 1
            assert child.changes().deleted == ("/huge",)
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        assert grown < 50 * 1024, f"{grown} KiB more"
