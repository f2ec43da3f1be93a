"""Branches of the user that are packed, and an agent whose git packs or deletes them in the command that commits."""

from pathlib import Path

import pytest
from support.git_layouts import ENVIRONMENT, git, repository
from support.sandboxes import Bench, bench_of

from bowerbird.sandbox.settings import SandboxSettings

COMMITS = "echo two > f.txt && git commit -qam 'by the agent'"


async def run(bench: Bench, command: str) -> str:
    ran = await bench.sandbox.run(command, env=ENVIRONMENT)
    assert ran.exit_code == 0, ran.output
    return ran.output.strip()


@pytest.mark.parametrize("tier", ["overlay", "copy"])
@pytest.mark.parametrize("packs", ["git pack-refs --all", "git gc -q"])
async def test_a_commit_is_not_lost_when_the_same_command_packs_refs(tmp_path: Path, tier: str, packs: str):
    """The branch's own went back to where it began: the commit was in its reflog only, and never landed."""
    root = repository(tmp_path / "ws")
    git(root, "pack-refs", "--all")
    settings = SandboxSettings(tier=tier)  # pyright: ignore[reportArgumentType]
    async with bench_of(tmp_path, settings=settings, needs=tier) as bench:
        await run(bench, f"{COMMITS} && {packs}")
        (root / "u.txt").write_text("user\n")
        git(root, "add", "u.txt")
        git(root, "commit", "-qm", "by the user")
        assert await run(bench, "git log -1 --format=%s; git diff --stat HEAD") == "by the agent"
        bench.branch.begin_turn()
        assert await run(bench, "git log -1 --format=%s") == "by the agent"
        landing = bench.branch.land(session="s_1", commits="fetch")
        assert git(root, "log", "-1", "--format=%s", "refs/bowerbird/s_1/heads/main") == "by the agent"
        assert landing.history and git(root, "log", "-1", "--format=%s") == "by the user"


@pytest.mark.parametrize("tier", ["overlay", "copy"])
async def test_a_packed_branch_that_the_agent_deletes_stays_deleted_on_its_branch(tmp_path: Path, tier: str):
    root = repository(tmp_path / "ws")
    git(root, "branch", "old")
    git(root, "pack-refs", "--all")
    settings = SandboxSettings(tier=tier)  # pyright: ignore[reportArgumentType]
    async with bench_of(tmp_path, settings=settings, needs=tier) as bench:
        await run(bench, "git branch -qD old")
        assert await run(bench, "git branch --format='%(refname)'") == "refs/heads/main"
        [story] = bench.branch.git_story().repositories
        assert [(ref.ref, ref.change) for ref in story.refs] == [("refs/heads/old", "deleted")]
        bench.branch.land(session="s_1", commits="fast_forward")
        assert git(root, "branch", "--format=%(refname)").split() == ["refs/heads/main", "refs/heads/old"]
