"""GI-10, GI-11, GI-13: git where the repository lies outside the workspace, in both tiers."""

import subprocess
from pathlib import Path

import pytest
from support.git_layouts import ENVIRONMENT, LAYOUTS, compare, git, repository
from support.sandboxes import Bench, bench_of

from bowerbird.core.events import Notice
from bowerbird.sandbox.settings import SandboxSettings
from bowerbird.workspace import Branch, Workspace
from bowerbird.workspace.marks.git_elsewhere import git_elsewhere, not_shown

COMMIT = "echo two >> f.txt && git commit -qam two && git log -1 --format=%s"


def secret_repository(place: Path) -> Path:
    repository(place)
    git(place, "config", "remote.origin.url", "https://ann:s3cret@example.org/x.git")
    git(place, "config", "http.extraheader", "Authorization: s3cret")
    git(place, "config", "core.fsmonitor", "/bin/false")
    git(place, "config", "core.autocrlf", "input")
    (place / ".git/hooks/note").write_text("s3cret")
    return place


def worktree(base: Path) -> tuple[Path, Path]:
    """A repository and a linked worktree of it, `ws`."""
    top = secret_repository(base / "top")
    git(top, "worktree", "add", "-q", str(base / "ws"), "-b", "side")
    return top, base / "ws"


async def run(bench: Bench, command: str) -> str:
    ran = await bench.sandbox.run(command, env=ENVIRONMENT)
    assert ran.exit_code == 0, ran.output
    return ran.output.strip()


@pytest.mark.parametrize("tier", ["overlay", "copy"])
@pytest.mark.parametrize(
    "layout",
    [
        "linked worktree",
        "package",
        "submodule",
        "bare, worktrees",
        "worktree, submodule",
        "package, submodule",
    ],
)
async def test_git_acts_as_outside(tmp_path: Path, layout: str, tier: str):
    """Acceptance 3; all layouts: `benchmarks/git_layouts.py`."""
    outcome = await compare(tmp_path, layout, tier)
    assert outcome.differing == {}


async def test_nothing_of_the_repository_is_shown_but_its_history(tmp_path: Path):
    top, _ = worktree(tmp_path)
    async with bench_of(tmp_path) as bench:
        assert await run(bench, "git config core.autocrlf; git log --format=%s") == "input\none\nzero"
        shown = await run(
            bench, f"git config -l; grep -rs s3cret {top} .git; ls -A {top} {top}/.git .git; true"
        )
        assert "s3cret" not in shown and "fsmonitor" not in shown and "hooks" not in shown, shown
        assert "f.txt" not in shown.split("\n")
        blocked = await bench.sandbox.run(f"touch {top}/.git/objects/x")
        assert blocked.exit_code != 0
        assert bench.branch.changes().written == ()


@pytest.mark.parametrize("tier", ["overlay", "copy"])
async def test_a_commit_survives_a_restart_and_follows_the_user_only_while_there_is_none(
    tmp_path: Path, tier: str
):
    """GI-4: with an own commit the branch keeps the refs it began from; before, it has the user's newest."""
    _, ws = worktree(tmp_path)
    settings = SandboxSettings(tier=tier)  # pyright: ignore[reportArgumentType]
    async with bench_of(tmp_path, settings=settings, needs=tier) as bench:
        assert await run(bench, "git status --short; git log -1 --format=%s") == "one"
        (ws / "g.txt").write_text("user\n")
        git(ws, "add", "g.txt")
        git(ws, "commit", "-qm", "by the user")
        bench.branch.begin_turn()
        await bench.sandbox.new_turn()
        assert await run(bench, "git log -1 --format=%s; git status --short") == "by the user"
        assert await run(bench, COMMIT) == "two"
        git(ws, "commit", "-q", "--allow-empty", "-m", "again")
        branch = bench.branch.id
    with Workspace(ws, data_dir=tmp_path / "data") as workspace:
        opened = workspace.open(branch)
        opened.begin_turn()
        (story,) = opened.git_story().repositories
        assert [(ref.ref, [c.subject for c in ref.subjects]) for ref in story.refs] == [
            ("refs/heads/side", ["two"])
        ]
        (found,) = opened.land(commits="fast_forward", session="s_1").history
        assert [(ref.state, ref.said) for ref in found.refs] == [
            ("stays", "it has moved on in your repository")
        ]
    assert git(ws, "log", "--format=%s", "-3") == "again\nby the user\none"
    assert git(ws, "log", "--format=%s", "-2", "refs/bowerbird/s_1/heads/side") == "two\nby the user"
    assert git(ws, "fsck", "--full") == ""


async def test_planted_git_configuration_stays_on_the_branch(tmp_path: Path):
    """Law 3, D-5: whatever is accepted; the story says what stays."""
    top, ws = worktree(tmp_path)
    before = {path: path.read_bytes() for path in (top / ".git").rglob("*") if path.is_file()}
    pointer = (ws / ".git").read_bytes()
    async with bench_of(tmp_path) as bench:
        await run(
            bench,
            "git config core.fsmonitor 'touch /tmp/owned'; mkdir -p .git/hooks; "
            "echo 'touch /tmp/owned' > .git/hooks/post-checkout; chmod +x .git/hooks/post-checkout; "
            "echo /etc >> .git/objects/info/alternates; echo more > new.txt",
        )
        (story,) = bench.branch.git_story().repositories
        assert story.settings == ()
        assert "config" in story.troubles[0] and "stays on the branch" in story.troubles[0], story
        landed = bench.branch.land(accept=["*"], force=True, partial=True, commits="fast_forward")
        assert [entry.path for entry in landed.entries] == ["/new.txt"]
    after = {path: path.read_bytes() for path in (top / ".git").rglob("*") if path.is_file()}
    assert after == before and (ws / ".git").read_bytes() == pointer


async def test_a_fork_has_the_same_repository_and_its_commits_are_merged(tmp_path: Path):
    worktree(tmp_path)
    async with bench_of(tmp_path) as bench:
        child = bench.branch.fork("child")
        theirs = Bench(bench.root, child, bench.host, opened=await bench.host.sandbox(child))
        assert await run(theirs, COMMIT) == "two"
        await bench.host.release(child.id)
        result = bench.branch.merge(child)
        assert not result.conflicts
        assert await run(bench, "git log -1 --format=%s; git status --short") == "two"
        assert _commits(bench.branch) == ["two"]


def _commits(branch: Branch) -> list[str]:
    return [c.subject for one in branch.git_story().repositories for ref in one.refs for c in ref.subjects]


async def test_a_package_is_shown_no_file_beside_it_and_its_commits_of_others_move_nothing(tmp_path: Path):
    top = repository(tmp_path / "top", {"f.txt": "", "pkg/f.txt": ""})
    (top / ".env").write_text("s3cret")
    before = (top / ".git/index").read_bytes()
    (tmp_path / "ws").symlink_to(top / "pkg")
    async with bench_of(tmp_path) as bench:
        shown = await run(bench, f"git status --short; git rev-parse --show-prefix; ls -A {top} {top}/pkg")
        assert ".env" not in shown and shown.startswith("pkg/"), shown
        assert (top / ".git/index").read_bytes() == before
        (notice,) = [event for event in bench.events if isinstance(event, Notice)]
        assert "no file beside the workspace" in notice.text
        await run(bench, "git rm -q --cached --sparse ../f.txt && git commit -qm apart")
        (found,) = bench.branch.land(commits="fast_forward").history
        assert found.refs[0].state == "stays" and "outside of the workspace" in found.refs[0].said, found
    assert git(top, "log", "-1", "--format=%s") == "one" and git(top, "status", "--short") == "?? .env"


async def test_what_is_not_shown_is_said_at_the_start_and_where_git_fails(tmp_path: Path):
    """GI-11: a git directory that does not name the workspace is nobody's word but the pointer's."""
    top = LAYOUTS["separate git dir"](tmp_path).workspace
    (tmp_path / "ws").symlink_to(top)
    async with bench_of(tmp_path) as bench:
        (notice,) = [event for event in bench.events if isinstance(event, Notice)]
        assert notice.kind == "git" and "does not name this directory" in notice.text
        failed = await bench.sandbox.run("git status")
        assert failed.note is not None and notice.text in failed.note
    command = notice.text.split("`")[1]
    subprocess.run(command, shell=True, check=True)
    assert not_shown(top, tmp_path / "data") == ""


@pytest.mark.parametrize("kind", ["untracked", "home", "data", "link", "damaged"])
def test_a_repository_above_is_shown_only_to_what_it_tracks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
):
    """A repository of a whole home, of dotfiles for one, is nothing to show to a project in it."""
    top = repository(tmp_path / "top", {"f.txt": "", "pkg/f.txt": ""})
    ws, data = top / "pkg", tmp_path / "data"
    assert git_elsewhere(ws, data) is not None
    if kind == "untracked":
        ws = top / "other"
        ws.mkdir()
    elif kind == "home":
        monkeypatch.setenv("HOME", str(top))
    elif kind == "data":
        data = tmp_path
    elif kind == "link":
        (top / ".git").rename(tmp_path / "moved")
        (top / ".git").symlink_to(tmp_path / "moved")
    elif kind == "damaged":
        (top / ".git/index").write_bytes(b"no index")
    assert git_elsewhere(ws, data) is None and not_shown(ws, data)
    # Nobody who starts a session in a directory of no repository's is told of one that lies above.
    assert (not_shown(ws, data, asked=False) == "") == (kind in ("untracked", "damaged"))


@pytest.mark.parametrize("kind", ["home", "no-backlink", "other-worktree", "link", "data", "objects"])
def test_a_planted_pointer_opens_nothing(tmp_path: Path, kind: str):
    """A `.git` file is content like any other: only a directory that names the workspace is shown."""
    top, real = worktree(tmp_path)
    ws, data = tmp_path / "planted", tmp_path / "data"
    ws.mkdir()
    target = {"home": tmp_path, "no-backlink": top / ".git"}.get(kind, top / ".git/worktrees/ws")
    (ws / ".git").write_text(f"gitdir: {target}\n")
    if kind == "link":
        (ws / ".git").unlink()
        (ws / ".git").symlink_to(real / ".git")
    elif kind == "data":
        ws, data = real, tmp_path
    elif kind == "objects":
        (top / ".git/objects").rename(tmp_path / "private")
        (top / ".git/objects").symlink_to(tmp_path / "private")
        ws = real
    assert git_elsewhere(ws, data) is None and not_shown(ws, data)


async def test_links_in_a_git_directory_lead_to_nothing(tmp_path: Path):
    """Whoever made the directory that a downloaded `.git` file names may have put links in it."""
    top, _ = worktree(tmp_path)
    private = tmp_path / "private"
    private.mkdir()
    (private / "exclude").write_text("s3cret\n")
    (private / "key").write_text("s3cret\n")
    for name in ("info", "logs", "refs/tags"):
        place = top / ".git" / name
        place.rename(tmp_path / f"moved-{place.name}")
        place.symlink_to(private)
    (top / ".git/packed-refs").symlink_to(private / "key")
    async with bench_of(tmp_path) as bench:
        assert "s3cret" not in await run(bench, "git log -1 --format=%s; cat -- $(find .git -type f)")
