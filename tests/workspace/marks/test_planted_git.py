"""Security 1, 2 (issue 10, point 7): nothing planted runs, and no link leads out, after a landing that nobody
accepted by name. Real git is run in every directory of what landed, as a prompt or an editor does."""

import asyncio
import itertools
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.patience import HANG_S

from bowerbird.core.errors import LandingRefused
from bowerbird.workspace import Branch, Workspace

GIT = ["git", "-c", "user.name=u", "-c", "user.email=u@example.org"]
ASKED = (
    ["status", "--short"], ["log", "-1", "-p"], ["diff"], ["stash", "list"], ["branch"], ["rev-parse", "HEAD"],
    ["ls-files"], ["describe", "--always"], ["config", "--get", "core.pager"], ["add", "-n", "."], ["st"], ["-p", "log"],
    ["fetch", "--dry-run"], ["diff", "--ext-diff"],
)  # fmt: skip


def planted(shell: str, top: str | None = None) -> str:
    """A configuration that runs `shell` in every way that git knows of; `top` makes a bare repository's tree."""
    return f"""[core]
\trepositoryformatversion = 0
\tbare = false{"" if top is None else f"{chr(10)}worktree = {top}"}
\tfsmonitor = "{shell}"
\tpager = "{shell}"
\teditor = "{shell}"
\tsshCommand = "{shell}"
\thooksPath = hooks
\taskPass = "{shell}"
[pager]
\tstatus = "{shell}"
\tlog = "{shell}"
\tdiff = "{shell}"
\tbranch = "{shell}"
[diff]
\texternal = "{shell}"
[filter "f"]
\tclean = "{shell}"
\tsmudge = "{shell}"
\tprocess = "{shell}"
\trequired = true
[alias]
\tst = "!{shell}"
[credential]
\thelper = "!{shell}"
[include]
\tpath = more
[remote "origin"]
\turl = ext::sh -c {shell.split(";", maxsplit=1)[0].replace(" ", "% ")}
\tuploadpack = "{shell}"
[uploadpack]
\tpackObjectsHook = "{shell}"
"""


class Plants:
    """A workspace with a repository, a branch of it, and the mark that a planted command leaves."""

    def __init__(self, base: Path) -> None:
        self.root, self.mark = base / "ws", base / "PWNED"
        self.home = base / "home"
        self.home.mkdir()
        self.root.mkdir()
        self.git("init", "-q", "-b", "main")
        (self.root / "a.txt").write_text("a\n")
        self.git("add", ".")
        self.git("commit", "-q", "-m", "one")
        self.workspace = Workspace(self.root, data_dir=base / "data")
        self.branch: Branch = self.workspace.branch()
        self.shell = f"touch {self.mark}; false"

    def files(self, way: str) -> dict[str, str]:
        top = "." if "bare" in way else None
        return WAYS[way](planted(self.shell, top))

    def git(self, *arguments: str, at: Path | None = None) -> subprocess.CompletedProcess[bytes]:
        environment = {"HOME": str(self.home), "PATH": os.environ["PATH"], "GIT_TERMINAL_PROMPT": "0"}
        return subprocess.run(
            [*GIT, *arguments], cwd=at or self.root, env=environment, check=False, capture_output=True,
            stdin=subprocess.DEVNULL, timeout=HANG_S,
        )  # fmt: skip

    def write(self, files: dict[str, str]) -> None:
        async def all_of_them() -> None:
            for path, text in files.items():
                if text.startswith("->"):
                    view = self.branch.processes()
                    view.mounting()
                    link = view.dirs().upper / path
                    link.parent.mkdir(parents=True, exist_ok=True)
                    link.symlink_to(text[2:])
                    view.capture()
                else:
                    await self.branch.write_file(path, text)

        asyncio.run(all_of_them())

    def commands_everywhere(self) -> None:
        """What prompts, editors and people ask of git, in every directory."""
        places = [Path(place) for place, _, _ in os.walk(self.root)]
        for place in places:
            if (self.root / ".git") in (place, *place.parents) and place != self.root / ".git":
                continue
            for asked in ASKED[:3] if place != self.root else ASKED:
                self.git(*asked, at=place)
                if self.mark.exists():
                    raise AssertionError(f"git {asked} in {place} ran what was planted")
            if (place / ".git").exists():
                self.git("commit", "-q", "--allow-empty", "-m", "by the person", at=place)


@pytest.fixture
def plants(tmp_path: Path) -> Iterator[Plants]:
    made = Plants(tmp_path)
    yield made
    made.workspace.close()


def meta(place: str, config: str) -> dict[str, str]:
    """A directory that git takes for a repository's common one."""
    return {
        f"{place}/config": config, f"{place}/objects/x": "x", f"{place}/refs/x": "x", f"{place}/more": "[core]\n",
        f"{place}/hooks/post-index-change": "#!/bin/sh\n", f"{place}/hooks/pre-commit": "#!/bin/sh\n",
    }  # fmt: skip


HEAD = "ref: refs/heads/main\n"
WAYS = {
    "the repository's common directory elsewhere": lambda c: {".git/commondir": "../docs/assets\n", **meta("docs/assets", c)},
    "its configuration": lambda c: {".git/config": c},
    "its configuration of this working tree": lambda c: {".git/config.worktree": c},
    "hooks": lambda c: {".git/hooks/pre-commit": "#!/bin/sh\n", ".git/hooks/post-index-change": "#!/bin/sh\n"},
    "attributes of the repository": lambda c: {".git/info/attributes": "* filter=f\n", ".git/config": c},
    "attributes": lambda c: {".gitattributes": "* filter=f diff=f\n"},
    "objects from elsewhere": lambda c: {".git/objects/info/alternates": "/etc\n"},
    "a nested repository": lambda c: {"sub/.git/HEAD": HEAD, **meta("sub/.git", c)},
    "a nested one in capitals": lambda c: {"sub/.GIT/HEAD": HEAD, **meta("sub/.GIT", c)},
    "a nested one of mixed case": lambda c: {"sub/.Git/HEAD": HEAD, **meta("sub/.Git", c)},
    "a nested one for HFS": lambda c: {"sub/.g\u200cit/HEAD": HEAD, **meta("sub/.g\u200cit", c)},
    "a nested one for NTFS": lambda c: {"sub/git~1/HEAD": HEAD, **meta("sub/git~1", c)},
    "a nested one with its common directory elsewhere": lambda c: {
        "sub/.git/HEAD": HEAD, "sub/.git/commondir": "../meta\n", **meta("sub/meta", c)},
    "a bare repository": lambda c: {"vendor/lib/HEAD": HEAD, **meta("vendor/lib", c)},
    "a bare one named like a repository": lambda c: {"fixtures/x.git/HEAD": HEAD, **meta("fixtures/x.git", c)},
    "a bare one with its common directory elsewhere": lambda c: {
        "vendor/lib/HEAD": HEAD, "vendor/lib/commondir": "../m\n", **meta("vendor/m", c)},
    "a bare one by links": lambda c: {
        "v/HEAD": HEAD, "v/config": c, "v/objects": "->../.git/objects", "v/refs": "->../.git/refs"},
    "the workspace as a bare repository": lambda c: {"HEAD": HEAD, "config": c, "objects/x": "x", "refs/x": "x"},
    "a file in place of a repository": lambda c: {"sub/.git": "gitdir: ../meta\n", "meta/HEAD": HEAD, **meta("meta", c)},
    "a link in place of a repository": lambda c: {"sub/.git": "->../meta", "meta/HEAD": HEAD, **meta("meta", c)},
    "a submodule": lambda c: {
        ".gitmodules": '[submodule "m"]\n\tpath = m\n\turl = ./m\n\tupdate = !touch x\n',
        "m/.git": "gitdir: ../.git/modules/m\n", ".git/modules/m/HEAD": HEAD, **meta(".git/modules/m", c)},
    "a linked working tree": lambda c: {
        "w/.git": "gitdir: ../.git/worktrees/w\n", ".git/worktrees/w/HEAD": HEAD,
        ".git/worktrees/w/commondir": "../../../m\n", ".git/worktrees/w/gitdir": "../../../w/.git\n",
        "m/HEAD": HEAD, **meta("m", c)},
    "a repository among the refs": lambda c: {".git/refs/r/HEAD": HEAD, **meta(".git/refs/r", c)},
    "a todo of a rebase": lambda c: {".git/rebase-merge/git-rebase-todo": "exec touch x\n", ".git/rebase-merge/done": ""},
}  # fmt: skip


@pytest.mark.parametrize("way", list(WAYS))
@pytest.mark.parametrize("landing", ["by itself", "by a person"])
def test_nothing_planted_runs_after_a_landing_that_nobody_accepted(
    plants: Plants, way: str, landing: str
) -> None:
    """Security 1: three of these ran before, and none of the bare ones was even flagged."""
    plants.write(plants.files(way))
    plants.write({"plain.txt": "p\n"})
    plants.branch.land(partial=True, automatic=landing == "by itself", actor="u", door="cli")
    assert (plants.root / "plain.txt").exists()  # the rest of the work is not held up
    plants.commands_everywhere()
    assert not plants.mark.exists()


@pytest.mark.parametrize("way", ["a bare repository", "a nested repository", "a bare one by links"])
def test_no_order_of_landings_puts_a_repository_together(plants: Plants, way: str) -> None:
    """Each piece by itself is harmless; the last one is not, whichever it is."""
    files = list(plants.files(way).items())
    for turn in (files, files[::-1]):
        for path, text in turn:
            plants.write({path: text})
            plants.branch.land(partial=True, automatic=True)
    plants.commands_everywhere()
    assert not plants.mark.exists()


# Those that this machine's file system and git take for what they claim to be.
DANGEROUS = [
    way for way in WAYS
    if not any(word in way for word in (
        "capitals", "mixed", "HFS", "NTFS", "elsewhere", "attributes", "todo", "refs", "hooks", "this working", "links", "the workspace",
    ))
] + ["the repository's common directory elsewhere"]  # fmt: skip


@pytest.mark.parametrize("way", DANGEROUS)
def test_planting_does_run_once_a_person_accepts_it(plants: Plants, way: str) -> None:
    """So that the tests above prove something: the same files are dangerous."""
    plants.write(plants.files(way))
    plants.branch.land(accept=["*"], partial=True)
    with pytest.raises(AssertionError, match="ran what was planted"):
        plants.commands_everywhere()


def test_a_new_repository_is_one_thing_with_one_name(plants: Plants) -> None:
    plants.write(plants.files("a nested repository"))
    with pytest.raises(LandingRefused):
        plants.branch.land(accept=["sub/.git/config"])
    assert not (plants.root / "sub").exists()
    plants.branch.land(accept=["sub/.git"])
    assert (plants.root / "sub/.git/HEAD").exists()


def test_a_directory_that_git_was_told_of_is_like_its_own(plants: Plants) -> None:
    """core.hooksPath, include.path and the like name paths of the workspace."""
    plants.git("config", "core.hooksPath", "tools/hooks")
    plants.git("config", "include.path", "../team.cfg")
    plants.git("config", "core.fsmonitor", f"{plants.root}/scripts/watch.sh --quiet")
    plants.write(
        {"tools/hooks/pre-commit": "x", "team.cfg": "x", "scripts/watch.sh": "x", "scripts/other.sh": "x"}
    )
    with pytest.raises(LandingRefused) as refused:
        plants.branch.land()
    assert {row["path"] for row in refused.value.refused} == {
        "/tools/hooks/pre-commit", "/team.cfg", "/scripts/watch.sh"
    }  # fmt: skip


def test_a_commit_of_the_agent_keeps_no_file_from_landing(plants: Plants) -> None:
    """GI-1: objects, refs, index and logs are no files, under no policy."""
    view = plants.branch.processes()
    copy = view.dirs().upper.parent / "copy"
    subprocess.run(["cp", "-a", plants.root, copy], check=True)
    (copy / "b.txt").write_text("b\n")
    for arguments in (["add", "."], ["commit", "-q", "-m", "by the agent"]):
        plants.git(*arguments, at=copy)
    files = {str(p.relative_to(copy)): p for p in copy.rglob("*") if p.is_file()}

    async def take() -> None:
        for name, source in files.items():
            there = plants.root / name
            if not there.exists() or there.read_bytes() != source.read_bytes():
                await plants.branch.write_file(name, source.read_bytes())

    asyncio.run(take())
    held = plants.branch.land(partial=True, automatic=True)
    assert [row.path for row in held.entries] == ["/b.txt"]
    assert held.refused == () and plants.branch.plan_landing().entries == ()
    assert b"by the agent" not in plants.git("log", "-1").stdout
    assert plants.git("status", "--short").stdout == b"?? b.txt\n"


# ---------------------------------------------------------------- links


LINKS = {
    "through a link to itself": {"s": "->.", "build.log": "->s/s/s/s/s/s/../../../../../../../{out}"},
    "through a link's link": {"deep/er/l": "->..", "x": "->deep/er/l/../../{out}"},
    "straight": {"x": "->../{out}"},
    "by its whole path": {"x": "->/etc/passwd"},
    "by a link that comes later": {"x": "->d/e/../../../{out}"},
    "through a link of the user": {"x": "->outside/passwd"},
    "in a circle": {"x": "->y", "y": "->x"},
}


@pytest.mark.parametrize("way", list(LINKS))
def test_no_link_that_leads_out_lands_unaccepted(plants: Plants, way: str) -> None:
    """Security 2: `ln -s . s; ln -s s/s/../../../.bashrc build.log` landed unflagged."""
    (plants.root / "outside").symlink_to("/etc")
    plants.write({path: text.replace("{out}", "PRECIOUS") for path, text in LINKS[way].items()})
    plants.branch.land(partial=True)
    for path in LINKS[way]:
        link = plants.root / path
        if link.is_symlink():
            assert Path(os.path.realpath(link)).is_relative_to(plants.root), way


def test_links_that_stay_inside_land(plants: Plants) -> None:
    (plants.root / "lib").mkdir()
    (plants.root / "lib/x.so.1").write_text("x")
    plants.write({"lib/x.so": "->x.so.1", "bin/x": "->../lib/x.so", "here": "->.", "docs/top": "->../a.txt"})
    landed = plants.branch.land()
    assert {row.path for row in landed.entries} == {"/lib/x.so", "/bin/x", "/here", "/docs/top"}


def test_a_later_link_cannot_bend_an_earlier_one(plants: Plants) -> None:
    """`d/e` is a directory when the link lands, and a link out of the way afterwards."""
    plants.write({"d/e/f": "x", "x": "->d/e/../../PRECIOUS"})
    plants.branch.land(partial=True)
    plants.write({"s": "->."})
    plants.branch.land(partial=True)
    assert not (plants.root / "x").is_symlink()


def test_every_pair_of_ways_at_once(plants: Plants) -> None:
    """One landing with everything in it."""
    config = planted(plants.shell)
    for first, second in itertools.pairwise(w for w in WAYS if "by links" not in w and "a link in" not in w):
        for way in (first, second):
            files = {
                f"{way.replace(' ', '_')}/{p}": t
                for p, t in WAYS[way](config).items()
                if not p.startswith(".git/")
            }
            plants.write({p: t for p, t in files.items() if not t.startswith("->")})
    plants.branch.land(partial=True)
    plants.commands_everywhere()
    assert not plants.mark.exists()
