"""GI-10 … GI-12 in part: reading history where the repository lies outside the workspace (finding 6)."""

import subprocess
from pathlib import Path

import pytest
from support.sandboxes import bench_of

from bowerbird.sandbox.run.git_shown import git_shown

WHO = ["-c", "user.name=Ann", "-c", "user.email=ann@example.org", "-c", "protocol.file.allow=always"]


def git(place: Path, *words: str) -> None:
    subprocess.run(["git", *WHO, *words], cwd=place, check=True, capture_output=True)


def repository(place: Path) -> Path:
    place.mkdir()
    git(place, "init", "-q", "-b", "main", ".")
    (place / "f.txt").write_text("one\n")
    git(place, "add", ".")
    git(place, "commit", "-qm", "first of all")
    git(place, "config", "remote.origin.url", "https://ann:s3cret@example.org/x.git")
    git(place, "config", "http.extraheader", "Authorization: s3cret")
    git(place, "config", "core.fsmonitor", "/bin/false")
    git(place, "config", "core.autocrlf", "input")
    (place / ".git" / "hooks" / "note").write_text("s3cret")
    return place


async def test_a_linked_worktree_reads_its_history_and_nothing_secret(tmp_path: Path):
    top = repository(tmp_path / "top")
    git(top, "worktree", "add", "-q", str(tmp_path / "ws"), "-b", "side")
    async with bench_of(tmp_path) as bench:
        ran = await bench.sandbox.run(
            "git log --format=%s; echo two >> f.txt; git status --short; git diff --stat | tail -1; "
            "git blame f.txt | wc -l; git branch --show-current; git config core.autocrlf"
        )
        assert ran.output == ("first of all\n M f.txt\n 1 file changed, 1 insertion(+)\n2\nside\ninput\n"), (
            ran.output
        )
        secret = await bench.sandbox.run(f"git config -l; grep -rs s3cret {top}; ls {top}; ls {top}/.git")
        assert "s3cret" not in secret.output and "fsmonitor" not in secret.output, secret.output
        assert "hooks" not in secret.output and "f.txt" not in secret.output.split("\n")
        commit = await bench.sandbox.run("git commit -qam two")
        assert commit.exit_code != 0 and commit.note is not None and "shown read-only" in commit.note, commit
        assert bench.branch.changes().written == ("/f.txt",)


async def test_a_submodule_reads_its_history(tmp_path: Path):
    other = repository(tmp_path / "other")
    top = repository(tmp_path / "top")
    git(top, "submodule", "add", "-q", str(other), "sub")
    shown = git_shown(top / "sub", tmp_path / "data")
    assert shown is not None and shown.config == str(top / ".git/modules/sub/config")
    (tmp_path / "ws").symlink_to(top / "sub")
    async with bench_of(tmp_path) as bench:
        assert (
            await bench.sandbox.run("git log --format=%s && git status --short")
        ).output == "first of all\n"


async def test_a_package_reads_the_history_of_its_repository_and_sees_no_other_file(tmp_path: Path):
    """GI-10: a package below the top of a monorepo."""
    top = repository(tmp_path / "top")
    (top / "pkg").mkdir()
    (top / "pkg" / "a.txt").write_text("one\n")
    (top / ".env").write_text("s3cret")
    git(top, "add", "pkg")
    git(top, "commit", "-qm", "package")
    before = (top / ".git" / "index").read_bytes()
    (tmp_path / "ws").symlink_to(top / "pkg")
    async with bench_of(tmp_path) as bench:
        ran = await bench.sandbox.run(
            "git log --format=%s -- .; git status --short; echo two >> a.txt; git status --short; "
            "git diff | tail -1; git blame a.txt | wc -l; git rev-parse --show-prefix; git show HEAD:f.txt"
        )
        assert ran.output == "package\n M a.txt\n+two\n2\npkg/\none\n", ran.output
        secret = await bench.sandbox.run(f"git config -l; grep -rs s3cret {top}; ls -A {top} {top}/.git")
        assert "s3cret" not in secret.output and ".env" not in secret.output, secret.output
        assert "hooks" not in secret.output and "f.txt" not in secret.output
        commit = await bench.sandbox.run("git commit -qam two")
        assert commit.exit_code != 0 and commit.note is not None and "shown read-only" in commit.note, commit
        assert bench.branch.changes().written == ("/a.txt",)
    assert (top / ".git" / "index").read_bytes() == before


@pytest.mark.parametrize("kind", ["untracked", "home", "data", "link", "damaged"])
def test_a_repository_above_is_shown_only_to_what_it_tracks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
):
    """A repository of a whole home, of dotfiles for one, is nothing to show to a project in it."""
    top = repository(tmp_path / "top")
    ws, data = top / "pkg", tmp_path / "data"
    ws.mkdir()
    (ws / "a.txt").write_text("one\n")
    if kind != "untracked":
        git(top, "add", "pkg")
        git(top, "commit", "-qm", "package")
        assert git_shown(ws, data) is not None
    if kind == "home":
        monkeypatch.setenv("HOME", str(top))
    elif kind == "data":
        data = tmp_path
    elif kind == "link":
        (top / ".git").rename(tmp_path / "moved")
        (top / ".git").symlink_to(tmp_path / "moved")
    elif kind == "damaged":
        (top / ".git" / "index").write_bytes(b"no index")
    assert git_shown(ws, data) is None


async def test_a_package_of_a_repository_is_told_where_git_works(tmp_path: Path):
    (tmp_path / ".git").mkdir()
    async with bench_of(tmp_path, {"a": "1"}) as bench:
        result = await bench.sandbox.run("git status")
        assert result.note is not None and f"the repository at {tmp_path} lies above" in result.note


@pytest.mark.parametrize("kind", ["home", "no-backlink", "other-worktree", "link", "data"])
def test_a_planted_pointer_opens_nothing(tmp_path: Path, kind: str):
    """A `.git` file is content like any other: only a directory that names the workspace is shown."""
    top = repository(tmp_path / "top")
    git(top, "worktree", "add", "-q", str(tmp_path / "real"))
    ws = tmp_path / "ws"
    ws.mkdir()
    target = {"home": tmp_path, "no-backlink": top / ".git"}.get(kind, top / ".git/worktrees/real")
    if kind == "link":
        (ws / ".git").symlink_to(tmp_path / "real" / ".git")
    elif kind == "data":
        assert git_shown(tmp_path / "real", tmp_path) is None
    else:
        (ws / ".git").write_text(f"gitdir: {target}\n")
    assert git_shown(ws, tmp_path / "data") is None
