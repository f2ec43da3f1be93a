"""Files that git tracks and `workspace.hide` hides: commands see a clean tree, and no commit takes them away."""

from pathlib import Path
from typing import Literal

import pytest
from support.git_layouts import ENVIRONMENT, git, repository
from support.sandboxes import Bench, bench_of

from bowerbird.sandbox.settings import SandboxSettings

Tier = Literal["overlay", "copy"]
HIDE = (".env", "secrets/")
FILES = {"f.txt": "", ".env": "", "secrets/key": "", "pkg/.env": ""}
ALL = "echo work >> f.txt; git add -A && git commit -qam two && git show --name-only --format=%s; git status --short"


async def run(bench: Bench, command: str) -> str:
    ran = await bench.sandbox.run(command, env=ENVIRONMENT)
    assert ran.exit_code == 0, ran.output
    return ran.output.strip()


@pytest.mark.parametrize("tier", ["overlay", "copy"])
@pytest.mark.parametrize("layout", ["in the workspace", "linked worktree"])
async def test_a_commit_of_everything_leaves_hidden_files_in_the_history(
    tmp_path: Path, layout: str, tier: Tier
):
    """D-10: they looked deleted, so `git commit -a` took them out of what everybody else checks out."""
    ws = repository(tmp_path / ("ws" if layout == "in the workspace" else "top"), FILES)
    if layout == "linked worktree":
        git(ws, "worktree", "add", "-q", str(tmp_path / "ws"), "-b", "side")
        ws = tmp_path / "ws"
    async with bench_of(tmp_path, settings=SandboxSettings(tier=tier), needs=tier, hide=HIDE) as bench:
        assert await run(bench, "git status --short; git diff HEAD; ls -A") == ".git\nf.txt\npkg"
        bench.branch.begin_turn()
        assert bench.branch.plan_landing().entries == ()
        git(ws, "commit", "-q", "--allow-empty", "-m", "by the user")
        bench.branch.begin_turn()
        await bench.sandbox.new_turn()
        assert await run(bench, "git status --short; git log -1 --format=%s") == "by the user"
        assert await run(bench, ALL) == "two\n\nf.txt"
        bench.branch.begin_turn()
        landed = bench.branch.land(commits="fast_forward", session="s_1")
        assert [ref.state for one in landed.history for ref in one.refs] == ["moved"], landed.history
    assert git(ws, "log", "--format=%s", "-2") == "two\nby the user"
    assert git(ws, "ls-files").split() == sorted(FILES) and git(ws, "status", "--short") == ""
    assert (ws / ".env").read_text() == "one\n"


async def test_commits_that_change_hidden_files_all_the_same_move_nothing(tmp_path: Path):
    """Law 3: no landing touches what is hidden; git's plumbing needs no file to commit another content."""
    ws = repository(tmp_path / "ws", FILES)
    async with bench_of(tmp_path, hide=HIDE) as bench:
        await run(
            bench, "id=$(echo planted | git hash-object -w --stdin); "
            "git update-index --cacheinfo 100644,$id,.env && git commit -qm planted",
        )  # fmt: skip
        bench.branch.begin_turn()
        (found,) = bench.branch.land(commits="fast_forward", session="s_1").history
        assert [(ref.state, ref.said) for ref in found.refs] == [
            ("stays", "its commits change what is hidden from the agent: .env")
        ]
    assert git(ws, "log", "-1", "--format=%s") == "one" and git(ws, "status", "--short") == ""


async def test_an_index_that_cannot_be_read_is_met_as_it_is(tmp_path: Path):
    ws = repository(tmp_path / "ws", FILES)
    (ws / ".git/index").write_bytes(b"no index")
    async with bench_of(tmp_path, hide=HIDE) as bench:
        ran = await bench.sandbox.run("git status --short", env=ENVIRONMENT)
        assert ran.exit_code != 0 and "index" in ran.output
        assert await run(bench, "cat f.txt") == "one"
