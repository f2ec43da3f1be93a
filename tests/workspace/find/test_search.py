"""Searching (WS-20, WS-33; acceptance 7)."""

import asyncio
import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from support.branches import branch_of
from support.patience import HANG_S, patience

from bowerbird.core.errors import InvalidArgument, InvalidPattern, SearchTimeout
from bowerbird.workspace.find.python_search import PythonSearch
from bowerbird.workspace.find.ripgrep import Ripgrep, find_ripgrep
from bowerbird.workspace.find.search import Search, wanted_of
from bowerbird.workspace.find.searchable import SearchMemory

_PAGE = {
    "offset": 1,
    "limit": 100,
    "fixed": False,
    "case_sensitive": True,
    "context": 0,
    "include_ignored": False,
}


@pytest.fixture(params=["ripgrep", "python"])
def engine(request, monkeypatch):
    """Both engines give the same records."""
    chosen = PythonSearch() if request.param == "python" else Ripgrep(find_ripgrep() or "rg")
    monkeypatch.setattr(SearchMemory, "engine", lambda self: chosen)
    return request.param


async def test_a_match_record_has_line_text_and_context(tmp_path, engine):
    """WS-20"""
    with branch_of(
        tmp_path, {"a.py": "one\ntwo x\r\nthree\nfour x", "b.py": "x\n", "c.txt": "nothing\n"}
    ) as branch:
        record = await branch.search_files("x$", "*.py", context=1)
        assert record == {
            "matches": [
                {"path": "/a.py", "line": 2, "text": "two x", "before": ["one"], "after": ["three"]},
                {"path": "/a.py", "line": 4, "text": "four x", "before": ["three"], "after": []},
                {"path": "/b.py", "line": 1, "text": "x", "before": [], "after": []},
            ],
            "total": 3,
            "total_is_minimum": False,
            "offset": 1,
            "truncated": False,
            "skipped": [],
            "pruned": [],
        }


async def test_options_of_a_search(tmp_path, engine):
    """WS-20"""
    with branch_of(tmp_path, {"f": "a.b\nA.B\naxb\n(((\n\u00c9t\u00e9\n"}) as branch:

        async def lines(pattern: str, **options: object) -> list[int]:
            return [match["line"] for match in (await branch.search_files(pattern, **options))["matches"]]

        assert await lines("a.b") == [1, 3]
        assert await lines("a.b", fixed=True) == [1]
        assert await lines("a.b", case_sensitive=False) == [1, 2, 3]
        assert await lines("((", fixed=True) == [4]
        assert await lines("\u00e9t", case_sensitive=False) == [5]
        assert await lines("^$") == []
        assert await lines("") == [1, 2, 3, 4, 5]
        assert await lines("-e") == []
        for bad in ("(", "[", "a{2,1}"):
            with pytest.raises(InvalidPattern):
                await branch.search_files(bad)
        for options in ({"offset": 0}, {"limit": -1}):
            with pytest.raises(InvalidArgument):
                await branch.search_files("x", **options)
        with pytest.raises(InvalidPattern, match="within one line"):
            await branch.search_files("a\nb")


async def test_pages_of_matches_join_to_all_of_them(tmp_path, engine):
    """WS-20: ordered by path bytes, then line; the total is that of every page."""
    files = {f"d{n % 3}/f{n:02}": "x\ny\nx\n" * (n % 4) for n in range(30)}
    with branch_of(tmp_path, files) as branch:
        whole = (await branch.search_files("x", limit=0))["matches"]
        keys = [(os.fsencode(match["path"]), match["line"]) for match in whole]
        assert keys == sorted(keys) and len(keys) == sum(text.count("x") for text in files.values())
        parts = []
        for offset in range(1, len(whole) + 1, 7):
            page = await branch.search_files("x", offset=offset, limit=7)
            assert (page["total"], page["offset"]) == (len(whole), offset)
            assert page["truncated"] is (offset + 6 < len(whole))
            parts += page["matches"]
        assert parts == whole
        assert (await branch.search_files("x", offset=1000))["matches"] == []


async def test_binary_and_large_files_are_skipped_by_name(tmp_path, engine):
    """WS-33: also those that would not match; UTF-16 is text."""
    files = {
        "a.txt": "needle\n",
        "bin": b"needle\n\0\n",
        "none": b"\0\0",
        "late": b"x" * 9000 + b"\nneedle\0\n",
        "wide": "\ufeffneedle\r\n".encode("utf-16-le"),
        "latin": b"caf\xe9 needle\n",
    }
    with branch_of(tmp_path, files) as branch:
        with (tmp_path / "ws/big").open("wb") as file:
            file.write(b"needle\n" * 2_500_000)
        record = await branch.search_files("needle")
        assert record["skipped"] == [
            {"path": "/big", "reason": "larger than 16 MiB"},
            {"path": "/bin", "reason": "binary"},
            {"path": "/none", "reason": "binary"},
        ]
        shown = {match["path"]: match["text"] for match in record["matches"]}
        assert shown == {
            "/a.txt": "needle",
            "/late": "needle\0",
            "/latin": "caf\ufffd needle",
            "/wide": "needle",
        }


async def test_long_lines_are_shortened_and_counting_stops(tmp_path, engine):
    """WS-33"""
    with branch_of(tmp_path, {"a": "y" * 2000 + "needle\n", "b": "needle\n" * 12_000}) as branch:
        record = await branch.search_files("needle", limit=2)
        assert [len(match["text"]) for match in record["matches"]] == [500, 6]
        assert (record["total"], record["total_is_minimum"], record["truncated"]) == (10_000, True, True)


async def test_a_search_of_merged_layers_equals_one_of_the_plain_view(tmp_path, engine):
    """WS-33: against ripgrep's answer on the exported view."""
    files = {f"p{n % 5}/f{n}.txt": f"line {n}\nneedle {n}\n" for n in range(60)}
    with branch_of(tmp_path, files) as branch:
        await branch.edit_file("p1/f1.txt", "needle", "thread")
        await branch.write_file("p2/new.txt", "a needle\n")
        await branch.delete("p3", recursive=True)
        child = branch.fork()
        await child.move("p4", "p9")
        await child.write_file("p1/f1.txt", "needle again\n")
        grand = child.fork()
        await grand.delete("p2/new.txt")
        (tmp_path / "ws/p0/f0.txt").write_text("the user's needle\n")
        grand.export(tmp_path / "plain", "dir")
        done = subprocess.run([find_ripgrep() or "rg", "-n", "--null", "needle", "."], cwd=tmp_path / "plain",
                              capture_output=True, text=True, check=True)  # fmt: skip
        rows = [re.fullmatch(r"\.(.*)\0(\d+):(.*)", line) for line in done.stdout.splitlines()]
        expected = sorted((row[1], int(row[2]), row[3]) for row in rows if row)
        found = (await grand.search_files("needle", limit=0))["matches"]
        assert [(match["path"], match["line"], match["text"]) for match in found] == expected


async def test_a_large_tree_is_searched_the_same_when_ripgrep_walks(tmp_path):
    """WS-33: over 500 files, with ignored, overridden, deleted, large and new ones among them."""
    files = {f"p{n % 30}/f{n}.txt": f"needle {n}\n" for n in range(900)} | {
        ".gitignore": "p7/\n*.log\n",
        "x.log": "needle\n",
        ".git/config": "needle\n",
        "bin": b"needle\0",
    }
    with branch_of(tmp_path, files, hide=["p5/**"]) as branch:
        ws = tmp_path / "ws"
        (ws / "out").symlink_to("/etc")
        await branch.write_file("p1/f1.txt", "no match now\n")
        await branch.write_file("new/f.txt", "needle new\n")
        await branch.delete("p2", recursive=True)
        expected = {f"/p{n % 30}/f{n}.txt" for n in range(900) if n % 30 not in (2, 5, 7) and n != 1}
        for _ in range(2):  # the second time, large files are known before
            record = await branch.search_files("needle", limit=0)
            assert record["total"] == len(expected) + 1
            assert {match["path"] for match in record["matches"]} == expected | {"/new/f.txt"}
            assert record["pruned"] == ["/.git", "/p7"]
            assert [row["path"] for row in record["skipped"]] == ["/bin", "/sparse"][: len(record["skipped"])]
            with (ws / "sparse").open("wb") as file:
                file.truncate(1 << 40)
        everything = await branch.search_files("needle", include_ignored=True, limit=0)
        assert everything["total"] == len(expected) + 1 + 30 + 2


async def test_constructs_that_ripgrep_lacks_are_named(tmp_path):
    """WS-33"""
    with branch_of(tmp_path, {"f": "x\n"}) as branch:
        for pattern, construct in ((r"a(?=b)", "look-around"), (r"(a)\1", "backreferences")):
            with pytest.raises(InvalidPattern, match=construct):
                await branch.search_files(pattern)


async def test_a_trap_pattern_ends_while_others_go_on(tmp_path):
    """Acceptance 7: linear with ripgrep; another coroutine ticks on."""
    with branch_of(tmp_path, {"trap": "a" * 34 + "b"}) as branch:
        ticks = 0

        async def tick() -> None:
            nonlocal ticks
            while True:
                await asyncio.sleep(0.02)
                ticks += 1

        ticking = asyncio.create_task(tick())
        async with asyncio.timeout(HANG_S):
            assert (await branch.search_files("(a+)+$"))["total"] == 0
        ticking.cancel()


async def test_a_search_that_takes_too_long_is_ended_with_what_was_found(tmp_path):
    """WS-33: the Python engine backtracks for ever, and is killed."""
    with branch_of(tmp_path, {"a": "aaaa\n", "trap": "a" * 60 + "b\n"}) as branch:
        memory = SearchMemory()
        memory.use(PythonSearch())
        search = Search(
            branch._state.reading().view, wanted_of("(a+)+$", "**/*", **_PAGE), memory, timeout_s=patience(5)
        )
        with pytest.raises(SearchTimeout) as error:
            await asyncio.to_thread(search.run)
        partial = error.value.partial
        assert [match["path"] for match in partial["matches"]] == ["/a"]
        assert partial["total_is_minimum"] is True


async def test_a_cancelled_search_leaves_no_process(tmp_path):
    with branch_of(tmp_path, {"trap": "a" * 60 + "b\n"}) as branch:
        branch._state.memory.use(PythonSearch())
        task = asyncio.create_task(branch.search_files("(a+)+$"))
        await _until(lambda: _searching() > 0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await _until(lambda: _searching() == 0)


async def _until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(HANG_S):
        while not condition():  # the state of another process has no event
            await asyncio.sleep(0.01)


def _searching() -> int:
    """Count the search processes among our children."""
    tasks = Path("/proc/self/task").glob("*/children")
    pids = [int(pid) for task in tasks for pid in _read(task).split()]
    return sum(b"search_child" in _read(Path(f"/proc/{pid}/cmdline")) for pid in pids)


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError:
        return b""  # that thread or process ended between listing and reading
