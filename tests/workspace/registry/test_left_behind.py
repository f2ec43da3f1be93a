"""Forks that are made for a moment do not outlive the process that made them (DE-22)."""

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
