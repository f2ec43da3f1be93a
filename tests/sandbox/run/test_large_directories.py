"""Changing every file of a directory of the workspace: nobody waits for the disk file by file (overlay tier)."""

from pathlib import Path

import pytest
from support.sandboxes import bench_of

FILES = {f"tree/d{number % 20}/f{number}": f"{number}\n" for number in range(500)}


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
    """Each was copied up and put on the disk by the kernel: 100 times as long as outside.

    Seconds say nothing on a busy machine, so the mount is asked; `benchmarks/directory_changes.py` measures.
    """
    async with bench_of(tmp_path, FILES) as bench:
        look = 'grep -c " $PWD .*overlay.*volatile" /proc/self/mountinfo'
        ran = await bench.sandbox.run(f"{command}; find tree -type f -perm {mode} | wc -l; {look}")
        count, mounts = ran.output.split()
        assert (ran.exit_code, int(count)) == (0, len(FILES)), ran.output
        assert int(mounts) == 1


async def test_what_a_power_cut_leaves_of_a_mount_does_not_hold_the_next_one_up(tmp_path: Path):
    async with bench_of(tmp_path, FILES) as bench:
        assert (await bench.sandbox.run(["sh", "-c", "chmod g+w tree/d1/f1; echo new > made"])).exit_code == 0
        [work] = (tmp_path / "data").glob("branches/*/work")
        (work / "work").chmod(0o700)  # as the kernel leaves it, nobody but root may look
        assert not (work / "work/incompat").exists(), "an older version mounts these directories, too"
        (work / "work/incompat/volatile").mkdir(parents=True)
        (work / "work/incompat/volatile/dirty").touch()
        bench.branch.begin_turn()
        ran = await bench.sandbox.run(["sh", "-c", "cat made; stat -c %A tree/d1/f1"])
        assert ran.output.split() == ["new", "-rw-rw-r--"]
