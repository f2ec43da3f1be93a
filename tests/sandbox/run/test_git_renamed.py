"""GI-1: an agent that renames `.git`, or makes a repository of another name, keeps no file from landing."""

import subprocess
from pathlib import Path
from typing import Literal

import pytest
from support.sandboxes import bench_of

from bowerbird.cli.review.git_lines import git_lines
from bowerbird.sandbox.settings import SandboxSettings

WHO = ["-c", "user.name=Ann", "-c", "user.email=ann@example.org"]
DEEDS = {
    "renamed": "mv .git old",
    "renamed, and a file in its place": "mv .git old && echo 'gitdir: old' > .git",
    "renamed, and used": (
        "mv .git old && echo 'gitdir: old' > .git && echo b > b.txt && git add b.txt"
        " && git -c user.name=a -c user.email=a@example.org commit -qm agent"
    ),
    "renamed, and a link in its place": "mv .git old && ln -s old .git",
    "renamed, and another one": "mv .git old && git init -q .",
    "a bare repository": "git init -q --bare old",
    "a bare clone": "git clone -q --bare --no-hardlinks . old",
}

NEW = "a new repository, lands with --accept"


def git(place: Path, *words: str) -> str:
    done = subprocess.run(["git", *WHO, *words], cwd=place, check=True, capture_output=True)
    return done.stdout.decode().strip()


@pytest.mark.parametrize("tier", ["overlay", "copy"])
@pytest.mark.parametrize("deed", list(DEEDS))
async def test_files_land_and_the_renamed_repository_is_one_line(
    tmp_path: Path, tier: Literal["overlay", "copy"], deed: str
):
    async with bench_of(tmp_path, {"a.txt": "a\n"}, settings=SandboxSettings(tier=tier), needs=tier) as bench:
        git(bench.root, "init", "-q", "-b", "main", ".")
        git(bench.root, "add", ".")
        git(bench.root, "commit", "-qm", "first")
        before = git(bench.root, "for-each-ref")
        done = await bench.sandbox.run(f"{DEEDS[deed]} && echo A > a.txt && mkdir new && echo n > new/n.txt")
        assert done.exit_code == 0, done.output
        branch = bench.branch
        files = {"/a.txt", "/new/n.txt", *(["/b.txt"] if "used" in deed else [])}
        assert {path for path in branch.changes().paths if not path.endswith("new")} == files
        assert branch.count() == len(files) and "old" not in branch.unified()
        lines = git_lines([row.record() for row in branch.git_story().repositories])
        assert "git in old: a new repository, lands with --accept old" in lines, lines
        assert len(lines) <= 3, lines
        landing = branch.land(commits="fast_forward")
        assert {entry.path for entry in landing.entries if entry.op != "mkdir"} == files
        assert {row.path for row in landing.refused} <= {"/old", "/.git", "/.git/config"}
        assert not (bench.root / "old").exists()
        assert git(bench.root, "log", "-1", "--format=%s") == "first"
        assert git(bench.root, "for-each-ref", "refs/heads") == before
        assert git(bench.root, "fsck", "--full") == ""
        branch.land(accept=["old"], partial=True)
        assert git(bench.root / "old", "rev-parse", "--git-dir") == "."
        assert git(bench.root, "log", "-1", "--format=%s") == "first"


@pytest.mark.parametrize(
    ("deed", "made", "lines"),
    [
        ("mv .git old", "old", ["git: removed on the branch; yours stays", f"git in old: {NEW} old"]),
        (
            "cp -a . $TMPDIR/copy && mv $TMPDIR/copy lib",
            "lib/.git",
            [f"git in lib: {NEW} lib/.git", f"git in lib/sub: {NEW} lib/sub/.git"],
        ),
    ],
)
async def test_its_submodules_are_part_of_it(tmp_path: Path, deed: str, made: str, lines: list[str]):
    async with bench_of(tmp_path, {"a.txt": "a\n"}) as bench:
        for place in (tmp_path / "other", bench.root):
            git(tmp_path, "init", "-q", "-b", "main", str(place))
            (place / "s.txt").write_text("s\n")
            git(place, "add", ".")
            git(place, "commit", "-qm", "first")
        other = str(tmp_path / "other")
        git(bench.root, "-c", "protocol.file.allow=always", "submodule", "add", "-q", other, "sub")
        git(bench.root, "commit", "-qm", "submodule")
        done = await bench.sandbox.run(f"{deed} && echo A > a.txt")
        assert done.exit_code == 0, done.output
        told = git_lines([row.record() for row in bench.branch.git_story().repositories])
        assert told == lines
        landing = bench.branch.land(accept=[made], partial=True)
        assert git(bench.root, "submodule", "status")[-12:] == "(heads/main)"
        assert (bench.root / made / "modules/sub/HEAD").is_file(), landing.refused


@pytest.mark.parametrize("tier", ["overlay", "copy"])
@pytest.mark.parametrize("deed", ["rm -rf sub", "mv sub lib"])
async def test_a_nested_repository_that_is_gone_stays_the_users_and_holds_nothing_up(
    tmp_path: Path, tier: Literal["overlay", "copy"], deed: str
):
    files = {"a.txt": "a\n", "sub/s.txt": "s\n"}
    async with bench_of(tmp_path, files, settings=SandboxSettings(tier=tier), needs=tier) as bench:
        for place in (bench.root / "sub", bench.root):
            git(place, "init", "-q", ".")
            git(place, "add", "--", "*.txt")
            git(place, "commit", "-qm", "first")
        assert (await bench.sandbox.run(f"{deed} && echo A > a.txt")).exit_code == 0
        landing = bench.branch.land()
        landed = {entry.path for entry in landing.entries if entry.op != "mkdir"}
        assert landed == {"/a.txt", "/sub/s.txt"} | ({"/lib/s.txt"} if "lib" in deed else set())
        assert ("/sub", "dir_gained") in {(row.path, row.reason) for row in landing.refused}
        assert git(bench.root / "sub", "log", "--format=%s") == "first"
        landing.undo()
        assert git(bench.root / "sub", "status", "--porcelain") == ""
