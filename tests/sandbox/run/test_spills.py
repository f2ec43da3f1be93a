"""SB-16: whole outputs under one name for commands and file tools, for 7 days and 1 GiB."""

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.branches import branch_of
from support.sandboxes import bench_of

from bowerbird.core.errors import InvalidPattern, NotFound
from bowerbird.sandbox.run.spill_files import KEPT_BYTES, prune_spills

DAY_S = 86_400


async def test_the_marker_names_what_read_file_and_search_files_and_commands_read(tmp_path):
    """Acceptance 4, with less output: how much is stored is in test_output."""
    async with bench_of(tmp_path) as bench:
        result = await bench.sandbox.run("seq 1 300000; echo last", max_output_bytes=5000, call="call_1")
        path = "/run/bowerbird/out/call_1.txt"
        assert result.spill == path and path in result.output and not result.spill_truncated
        assert len(result.output.encode()) <= 5000 and result.output.endswith("300000\nlast\n")
        read = await bench.branch.read_file(path, 200_000, 2)
        assert read["content"] == "200000\n200001\n" and read["path"] == path
        found = await bench.branch.search_files("7", path, offset=2, limit=2)
        assert [m["line"] for m in found["matches"]] == [17, 27]
        assert found["total_is_minimum"] and found["truncated"]
        assert (await bench.sandbox.run(f"tail -n 1 {path}")).output == "last\n"
        listed = await bench.branch.list_files("**/*", include_ignored=True)
        assert listed["files"] == [] and bench.branch.changes().written == ()


async def test_bytes_that_are_no_text_are_read_as_text(tmp_path):
    async with bench_of(tmp_path) as bench:
        await bench.sandbox.run(
            r"printf 'one\n\0two\xff\nthree\n'; seq 1 1000", max_output_bytes=1000, call="c"
        )
        record = await bench.branch.read_file("/run/bowerbird/out/c.txt", 2, 2)
        assert not record["binary"] and record["content"].endswith("three\n")
        found = await bench.branch.search_files("three", "run/bowerbird/out/c.txt", context=1)
        assert found["matches"][0]["after"] == ["1"]


def test_only_stored_outputs_are_found_under_that_name(tmp_path):
    with branch_of(tmp_path, {"a": "1"}) as branch:
        directory = branch.processes().directory
        (directory / "out").mkdir()
        (directory / "out/x.txt").write_text("whole\n")
        (directory / "out/link.txt").symlink_to(directory / "manifest.json")
        (directory / "out/dir.txt").mkdir()
        (directory / "out/raw.py").write_text("no")
        run = "/run/bowerbird/out"
        assert _read(branch, f"{run}/x.txt") == "whole\n"
        assert _read(branch, f"{run[1:]}/x.txt") == "whole\n"
        for name in ("link.txt", "dir.txt", "raw.py", "../manifest.json", "../out/x.txt", ".x.txt", "y.txt"):
            with pytest.raises(NotFound):
                _read(branch, f"{run}/{name}")


def _read(branch, path):
    import asyncio

    return asyncio.run(branch.read_file(path))["content"]


async def test_a_search_over_several_outputs_pages_across_them(tmp_path):
    with branch_of(tmp_path) as branch:
        out = branch.processes().directory / "out"
        out.mkdir()
        for name in "abc":
            (out / f"{name}.txt").write_text("hit\nmiss\nhit\n")
        first = await branch.search_files("^hit$", "/run/bowerbird/out/*.txt", 1, 3)
        second = await branch.search_files("^hit$", "/run/bowerbird/out/*.txt", 4, 3)
        found = [(m["path"].rsplit("/", 1)[1], m["line"]) for m in first["matches"] + second["matches"]]
        assert found == [(f"{n}.txt", line) for n in "abc" for line in (1, 3)]
        assert first["total"] == 6 and first["truncated"] and not second["truncated"]
        assert (await branch.search_files("x", "/run/bowerbird/out/none.txt"))["matches"] == []
        with pytest.raises(InvalidPattern):
            await branch.search_files("(", "/run/bowerbird/out/*.txt")


@given(
    ages=st.lists(st.integers(0, 20), max_size=8, unique=True),
    sizes=st.lists(st.integers(1, 5), min_size=8, max_size=8),
)
def test_what_is_kept_is_young_and_fits(tmp_path_factory, ages, sizes):
    folder = tmp_path_factory.mktemp("out")
    now = 1_800_000_000.0
    for n, age in enumerate(ages):
        path = folder / f"{n}.txt"
        path.touch()
        os.truncate(path, sizes[n] * (KEPT_BYTES // 8))
        os.utime(path, (now, now - age * DAY_S))
    gone = prune_spills(folder, keep=["0.txt"], now=now)
    left = {p.name for p in folder.iterdir()}
    assert left.isdisjoint(gone) and len(left) + len(gone) == len(ages)
    others = [n for n in range(1, len(ages)) if f"{n}.txt" in left]
    assert all(ages[n] <= 7 for n in others)
    assert sum(sizes[n] for n in others) <= 8
    assert "0.txt" not in gone
    for n in range(1, len(ages)):  # nothing that is younger than a kept one was taken, unless it had to be
        if f"{n}.txt" in gone and ages[n] <= 7:
            assert all(ages[m] < ages[n] for m in others)


def test_a_missing_folder_holds_nothing(tmp_path):
    assert prune_spills(tmp_path / "none") == []
