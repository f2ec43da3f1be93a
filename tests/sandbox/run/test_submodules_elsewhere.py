"""Submodules of a linked worktree and of a package: their git directories lie outside of the workspace (GI-10)."""

import shlex
import subprocess
from pathlib import Path

import pytest
from support.git_layouts import ENVIRONMENT, git, repository
from support.sandboxes import Bench, bench_of

from bowerbird.sandbox.settings import SandboxSettings


def linked(base: Path) -> Path:
    """A repository with a submodule that has one of its own, and a worktree of it, `ws`."""
    repository(base / "inner")
    within = repository(base / "other")
    git(within, "submodule", "add", "-q", str(base / "inner"), "in")
    git(within, "commit", "-qm", "inner")
    top = repository(base / "top")
    git(top, "submodule", "add", "-q", "--name", "of/slashes", str(base / "other"), "sub")
    git(top, "commit", "-qm", "submodule")
    git(top, "worktree", "add", "-q", str(base / "ws"), "-b", "side")
    git(base / "ws", "submodule", "update", "-q", "--init", "--recursive")
    for place in ("sub", "sub/in"):
        git(base / "ws" / place, "switch", "-q", "main")
    return base / "ws"


async def run(bench: Bench, command: str) -> str:
    ran = await bench.sandbox.run(command, env=ENVIRONMENT)
    assert ran.exit_code == 0, ran.output
    return ran.output.strip()


COMMIT = (
    "set -e; cd sub/in; echo new > n.txt; git add n.txt; git commit -qm deepest; cd ..; git commit -qam middle; "
    "cd ..; git commit -qam top; git status --short; git submodule status --recursive | cut -c1"
)


@pytest.mark.parametrize("tier", ["overlay", "copy"])
async def test_commits_in_them_land_at_all_depths_and_come_back(tmp_path: Path, tier: str):
    """Git did not work in them at all: "not a git repository"."""
    ws = linked(tmp_path)
    places = (ws, ws / "sub", ws / "sub/in")
    before = [git(place, "rev-parse", "HEAD") for place in places]
    settings = SandboxSettings(tier=tier)  # pyright: ignore[reportArgumentType]
    async with bench_of(tmp_path, settings=settings, needs=tier) as bench:
        assert await run(bench, COMMIT) == ""
        assert bench.branch.changes().written == ("/sub/in/n.txt",)
        story = {one.path: [ref.ref for ref in one.refs] for one in bench.branch.git_story().repositories}
        assert story.keys() == {
            f"/.git{each}" for each in ("", "/modules/of/slashes", "/modules/of/slashes/modules/in")
        }
        landing = bench.branch.land(session="s_1", commits="fast_forward")
        assert not landing.refused and not any(one.troubles for one in landing.history), landing.history
        assert [git(place, "log", "-1", "--format=%s") for place in places] == ["top", "middle", "deepest"]
        assert [git(place, "status", "--porcelain") for place in places] == ["", "", ""]
        assert not bench.branch.changes().written
        landing.undo()
        assert [git(place, "rev-parse", "HEAD") for place in places] == before
        assert [git(place, "status", "--porcelain") for place in places] == ["", "", ""]


async def test_what_arrives_beside_the_users_branch_comes_in_by_the_commands_that_are_named(tmp_path: Path):
    ws = linked(tmp_path)
    async with bench_of(tmp_path) as bench:
        await run(bench, "git -C sub commit -q --allow-empty -m there")
        landing = bench.branch.land(session="s_1", commits="fetch")
        [merge] = [
            ref["commands"][0] for one in landing.history for ref in one.to_data()["refs"] if ref["commands"]
        ]
        assert shlex.split(merge)[:3] == ["git", "-C", "sub"], merge
        subprocess.run(shlex.split(merge), cwd=ws, check=True, capture_output=True)
        assert git(ws / "sub", "log", "-1", "--format=%s") == "there"


async def test_the_branch_follows_the_users_commits_in_them_while_it_has_none_of_its_own(tmp_path: Path):
    ws = linked(tmp_path)
    async with bench_of(tmp_path) as bench:
        assert await run(bench, "git -C sub log -1 --format=%s; git -C sub status --short") == "inner"
        (ws / "sub/u.txt").write_text("user\n")
        git(ws / "sub", "add", "u.txt")
        git(ws / "sub", "commit", "-qm", "by the user")
        bench.branch.begin_turn()
        assert await run(bench, "git -C sub log -1 --format=%s; git -C sub status --short") == "by the user"
        assert await run(bench, "git submodule status | cut -c1") == "+"


async def test_a_planted_submodule_opens_nothing(tmp_path: Path):
    """A git directory counts only where it and the files name each other."""
    ws = linked(tmp_path)
    strange = repository(tmp_path / "strange")
    module = Path(git(ws / "sub", "rev-parse", "--absolute-git-dir"))
    git(module, "config", "core.worktree", str(strange))
    async with bench_of(tmp_path) as bench:
        ran = await bench.sandbox.run("git -C sub log", env=ENVIRONMENT)
        assert ran.exit_code != 0 and "not a git repository" in ran.output
