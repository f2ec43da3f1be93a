"""Changing every file of a directory of the workspace: nobody waits for the disk file by file (overlay tier)."""

import os
import time
from pathlib import Path

import pytest
from support.sandboxes import bench_of

FILES = {f"tree/d{number % 20}/f{number}": f"{number}\n" for number in range(500)}
TIMED = "date +%s%N; $1; date +%s%N; find tree -type f -perm $2 | wc -l"


def seconds_of_waiting(place: Path) -> float:
    """Return how long it takes here to write as many files and wait for the disk with each."""
    start = time.perf_counter()
    for number in range(len(FILES)):
        with (place / f"waited{number}").open("w") as file:
            file.write(f"{number}\n")
            os.fsync(file.fileno())
    return time.perf_counter() - start


@pytest.mark.parametrize(
    ("command", "mode"),
    [
        pytest.param("chmod -R 664 tree/*/*", "664", id="chmod"),
        pytest.param("touch tree/*/*", "644", id="touch"),
    ],
)
async def test_changing_all_files_of_a_directory_does_not_wait_for_each(
    tmp_path: Path, command: str, mode: str
):
    """Each was copied up and put on the disk by the kernel: 100 times as long as outside."""
    async with bench_of(tmp_path, FILES) as bench:
        ran = await bench.sandbox.run(["sh", "-c", TIMED, "sh", command, mode])
        began, ended, count = ran.output.split()
        took, waiting = (int(ended) - int(began)) / 1e9, seconds_of_waiting(tmp_path)
        assert (ran.exit_code, int(count)) == (0, len(FILES)), ran.output
        assert took < 0.3 + waiting / 2, f"{took} s, waiting for the disk with each takes {waiting} s"


async def test_what_a_power_cut_leaves_of_a_mount_does_not_hold_the_next_one_up(tmp_path: Path):
    async with bench_of(tmp_path, FILES) as bench:
        assert (await bench.sandbox.run(["sh", "-c", "chmod g+w tree/d1/f1; echo new > made"])).exit_code == 0
        [work] = (tmp_path / "data").glob("branches/*/work")
        assert not (work / "work/incompat").exists(), "an older version mounts these directories, too"
        (work / "work/incompat/volatile").mkdir(parents=True)
        (work / "work/incompat/volatile/dirty").touch()
        bench.branch.begin_turn()
        ran = await bench.sandbox.run(["sh", "-c", "cat made; stat -c %A tree/d1/f1"])
        assert ran.output.split() == ["new", "-rw-rw-r--"]
