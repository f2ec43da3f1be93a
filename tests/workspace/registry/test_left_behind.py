"""Branches are listed once they are whole; forks made for a moment do not outlive their process (DE-22)."""

import os
import subprocess
import sys
import time
from pathlib import Path

from bowerbird.workspace import Workspace

SCRIPT = """
import asyncio, sys, time
from bowerbird.workspace import Workspace
workspace = Workspace(sys.argv[1], data_dir=sys.argv[2])
branch = workspace.branch(name="work")
asyncio.run(branch.write_file("a", "work\\n"))
kept, apart = branch.fork("kept"), branch.fork("check", throwaway=True)
asyncio.run(apart.write_file("b", "of a check\\n"))
print(apart.id, flush=True)
time.sleep(600)
"""

FORKING = """
import sys
from bowerbird.workspace import Workspace
branch = Workspace(sys.argv[1], data_dir=sys.argv[2]).branch(name="work")
for n in range(150):
    branch.fork(f"fork {n}")
"""


def names(workspace: Workspace) -> set[str | None]:
    return {row.name for row in workspace.branches()}


def test_a_throwaway_fork_goes_once_its_process_is_dead_and_nothing_else_does(tmp_path: Path) -> None:
    """`check` and `baseline` of a killed tournament stayed for ever."""
    root, data = tmp_path / "project", tmp_path / "data"
    root.mkdir()
    command = [sys.executable, "-c", SCRIPT, str(root), str(data)]
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process,
        Workspace(root, data_dir=data) as workspace,
    ):
        assert process.stdout is not None
        apart = process.stdout.readline().strip()
        registry = workspace._shared.registry  # pyright: ignore -- a minute passes by an argument
        later = time.time() + 100
        assert registry.remove_left(later) == [], "its process lives"
        process.kill()
        process.wait()
        assert workspace.remove_left() == [], "somebody may just be making it"
        assert registry.remove_left(later) == [apart]
        assert names(workspace) == {"work", "kept"}
        assert registry.remove_left(later) == []


def test_a_list_of_branches_harms_none_that_another_process_is_making(tmp_path: Path) -> None:
    """The lister took a record that was just being written for a broken one, and replaced it: the fork failed."""
    root, data = tmp_path / "project", tmp_path / "data"
    root.mkdir()
    command = [sys.executable, "-c", FORKING, str(root), str(data)]
    with (
        Workspace(root, data_dir=data) as workspace,
        subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process,
    ):
        seen: set[str | None] = set()
        while process.poll() is None:
            seen |= names(workspace)
        assert process.stderr is not None and process.stderr.read() == ""
        assert process.returncode == 0
        assert names(workspace) == {"work", *(f"fork {n}" for n in range(150))}
        assert None not in seen


def test_what_a_process_was_killed_in_the_middle_of_making_is_no_branch_and_goes(tmp_path: Path) -> None:
    root, data = tmp_path / "project", tmp_path / "data"
    root.mkdir()
    with Workspace(root, data_dir=data) as workspace:
        workspace.branch(name="work")
        half = data / "branches" / ".new-b_01m8fh9mkt3a4n1zjk549k7mdn"
        half.mkdir()
        (half / "manifest.json.tmp").write_text("{")
        assert names(workspace) == {"work"}
        registry = workspace._shared.registry  # pyright: ignore -- days pass by an argument
        registry.empty_trash(time.time() + 60)
        assert half.is_dir(), "somebody may just be making it"
        os.utime(half, (time.time() - 7_200,) * 2)
        registry.empty_trash()
        assert not half.exists() and names(workspace) == {"work"}
