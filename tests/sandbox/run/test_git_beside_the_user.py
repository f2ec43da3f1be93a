"""GI-3, GI-4: what the agent commits in the sandbox takes nothing back that the user committed meanwhile."""

import asyncio
import subprocess
from pathlib import Path
from typing import Literal

import pytest
from support.sandboxes import bench_of

from bowerbird.sandbox.settings import SandboxSettings

WHO = ["-c", "user.name=Ann", "-c", "user.email=ann@example.org"]
COMMIT = "git -c user.name=a -c user.email=a@example.org commit -qm agent"


def git(place: Path, *words: str) -> str:
    done = subprocess.run(["git", *WHO, *words], cwd=place, check=True, capture_output=True)
    return done.stdout.decode().strip()


@pytest.mark.parametrize("tier", ["overlay", "copy"])
@pytest.mark.parametrize("within", [False, True], ids=["between commands", "beside one command"])
async def test_a_staged_change_is_committed_on_what_it_was_staged_on(
    tmp_path: Path, tier: Literal["overlay", "copy"], within: bool
):
    files = {"a.txt": "a\n", "b.txt": "b\n"}
    async with bench_of(tmp_path, files, settings=SandboxSettings(tier=tier), needs=tier) as bench:
        git(bench.root, "init", "-q", "-b", "main", ".")
        git(bench.root, "add", ".")
        git(bench.root, "commit", "-qm", "first")

        waits = "; touch on; until test -e go; do sleep 0.02; done" if within else ""
        staging = asyncio.create_task(bench.sandbox.run(f"echo A > a.txt; git add a.txt{waits}"))
        if within:
            await bench.shows("/on")
        else:
            await staging
        (bench.root / "b.txt").write_text("user\n")
        git(bench.root, "commit", "-qam", "user")
        await bench.branch.write_file("go", "")
        assert (await staging).exit_code == 0
        done = await bench.sandbox.run(f"{COMMIT} && git show --name-only --format=%s")
        assert done.output == "agent\n\na.txt\n", done.output
        bench.branch.land(session="s")
    assert git(bench.root, "log", "-1", "--format=%s") == "user"
    git(bench.root, "commit", "-qam", "landed")
    git(bench.root, "merge", "-q", "-m", "both", "refs/bowerbird/s/heads/main")
    assert (bench.root / "b.txt").read_text() == "user\n"
