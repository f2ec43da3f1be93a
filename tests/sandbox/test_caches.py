"""GI-15: caches that builds without a network need are shown copy-on-write; nothing of them lands."""

from pathlib import Path

import pytest
from support.abuse import desk_of
from support.trees import read_tree, write_tree

from bowerbird.sandbox.run.caches import VARIABLES, find_caches

SECRET = "s3cr3t-of-the-user"
HOME = {
    ".cargo/registry/cache/index/serde.crate": "crate", ".cargo/credentials.toml": SECRET, ".cargo/config": SECRET,
    "go/pkg/mod/cache/download/x.zip": "module", "go/src/mine.go": SECRET,
    ".m2/repository/a/b.jar": "jar", ".m2/settings.xml": SECRET, ".m2/repository/settings.xml": SECRET,
    ".gradle/caches/modules-2/x": "dependency", ".gradle/gradle.properties": SECRET,
    ".npm/_cacache/index-v5/x": "package", ".npmrc": SECRET,
    ".cache/uv/simple-v1/x": "index", ".cache/uv/git-v0/db/config": SECRET, "go/pkg/mod/cache/vcs/x/config": SECRET,
    ".cargo/registry/cache/.netrc": SECRET, ".config/pip/pip.conf": SECRET, ".cache/browser/cookies": SECRET,
}  # fmt: skip


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    made = tmp_path / "home"
    write_tree(made, HOME)
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(made))
    return made


async def test_commands_read_and_fill_caches_and_the_user_s_stay_as_they_are(tmp_path: Path, home: Path):
    """Each where its tool looks for it; what a command adds or removes is the branch's, and there the next time."""
    before = read_tree(home)
    async with desk_of(tmp_path, "overlay", caches="auto") as desk:
        read = await desk.run(
            "cat ~/.cargo/registry/cache/index/serde.crate ~/go/pkg/mod/cache/download/x.zip ~/.m2/repository/a/b.jar "
            "~/.gradle/caches/modules-2/x ~/.npm/_cacache/index-v5/x"
        )
        assert (read.exit_code, read.output) == (0, "cratemodulejardependencypackage"), read
        changed = await desk.run(
            "cd ~/.cargo/registry; echo new > more; rm -r cache; echo a > ~/.m2/repository/a/b.jar"
        )
        assert (changed.exit_code, changed.written) == (0, []), changed
        await desk.branch.write_file("beside", "x")  # the branch is mounted anew
        again = await desk.run("cd ~/.cargo/registry; ls; cat more ~/.m2/repository/a/b.jar")
        assert again.output == "more\nnew\na\n", again
        assert desk.branch.changes().paths == ("/beside",)
    assert read_tree(home) == before


async def test_no_cache_shows_what_lies_beside_it_or_has_a_name_of_secrets(tmp_path: Path, home: Path):
    """Credentials, settings and projects of the same directories are not there."""
    async with desk_of(tmp_path, "overlay", caches="auto") as desk:
        hunt = await desk.run(f"grep -rs {SECRET} ~/ /var/cache/bowerbird {home}; ls ~/.m2/repository")
        assert SECRET not in hunt.output and hunt.output.split() == ["a"], hunt


async def test_secrets_that_come_later_are_not_shown_either(tmp_path: Path, home: Path):
    """What is hidden is looked for at each start of a sandbox, whatever commands made of the cache before."""
    async with desk_of(tmp_path, "overlay", caches="auto") as desk:
        await desk.run(
            "mkdir ~/.m2/repository/a/c; rm -r ~/.cargo/registry/cache; ln -s / ~/.cargo/registry/cache"
        )
        write_tree(home, {".m2/repository/a/.netrc": SECRET, ".cargo/registry/.npmrc": SECRET})
        await desk.host.release(desk.branch.id)
        again = await desk.host.sandbox(desk.branch)
        hunt = await again.run(f"grep -rs {SECRET} ~/.m2 ~/.cargo/registry/; ls -A ~/.m2/repository/a")
        assert hunt.output == "b.jar\nc\n", hunt


async def test_the_copy_tier_shows_what_tools_only_read_and_nobody_writes_it(tmp_path: Path, home: Path):
    """Go's modules and Cargo's registry, where they are; the others are not there, nor is what lies beside."""
    before = read_tree(home)
    async with desk_of(tmp_path, "copy", caches="auto") as desk:
        read = await desk.run(
            "cat ~/.cargo/registry/cache/index/serde.crate ~/go/pkg/mod/cache/download/x.zip; ls -A ~/.m2 ~/.npm"
        )
        assert read.output.startswith("cratemodule"), read
        assert "b.jar" not in read.output and "index-v5" not in read.output, read
        hunt = await desk.run(f"grep -rs {SECRET} ~/.cargo/registry/ ~/go/pkg/mod/ {home}; cat {home}/.npmrc")
        assert SECRET not in hunt.output, hunt
        wrote = await desk.run(
            "cd ~/.cargo/registry && { echo x > more; rm -r cache; mkdir d; chmod 777 .; }"
        )
        assert wrote.exit_code != 0, wrote
    assert read_tree(home) == before


async def test_a_branch_that_changes_its_tier_finds_caches_as_they_are_there(tmp_path: Path, home: Path):
    """Links of the other tier lead nowhere, so they are replaced; what a command put in their place stays."""
    async with desk_of(tmp_path, "overlay", caches="auto") as desk:
        await desk.run("rm ~/.npm/_cacache; echo mine > ~/.npm/_cacache; ls ~/.cache/uv")
        (tmp_path / "b").write_text(desk.branch.id)
    async with desk_of(tmp_path, "copy", caches="auto") as desk:
        branch = desk.workspace.open((tmp_path / "b").read_text())
        box = await desk.host.sandbox(branch)
        ran = await box.run(
            "cat ~/.cargo/registry/cache/index/serde.crate ~/.npm/_cacache; ls -d ~/.m2/repository; mkdir ~/.cache/uv"
        )
        assert ran.exit_code == 0 and ran.output.startswith("cratemine\n"), ran


async def test_caches_can_be_left_out(tmp_path: Path, home: Path):
    """`sandbox.caches: off`."""
    async with desk_of(tmp_path, "overlay", caches="off") as desk:
        assert (await desk.run("ls -A ~; ls /var/cache/bowerbird")).output.count("\n") <= 1


def test_caches_are_found_where_variables_say_and_never_the_home_itself(tmp_path: Path):
    """Only directories of the user's own; one that is around the home is none."""
    (tmp_path / "home/.cache/uv").mkdir(parents=True)
    (tmp_path / "elsewhere/registry").mkdir(parents=True)
    environ = {
        "CARGO_HOME": f"{tmp_path}/elsewhere", "PIP_CACHE_DIR": str(tmp_path), "GOCACHE": "off",
        "GOMODCACHE": f"{tmp_path}/home/.cache", "npm_config_cache": "relative",
    }  # fmt: skip
    assert find_caches(environ, tmp_path / "home") == {
        "cargo": f"{tmp_path}/elsewhere/registry", "uv": f"{tmp_path}/home/.cache/uv",
    }  # fmt: skip
