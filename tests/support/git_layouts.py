"""Where a repository's parts may lie (GI-10), and git's commands in each: inside the sandbox as outside.

Here: making the layouts, one table of commands, running it on a branch and on a twin that no sandbox is
around. Names, times and addresses are fixed, so that both have the same commit ids and say the same.
"""

import os
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from support.patience import HANG_S

from bowerbird.sandbox.host import SandboxHost
from bowerbird.sandbox.settings import SandboxSettings
from bowerbird.workspace import Branch, Workspace

ENVIRONMENT = {
    "GIT_AUTHOR_NAME": "Ann", "GIT_AUTHOR_EMAIL": "ann@example.org",
    "GIT_COMMITTER_NAME": "Ann", "GIT_COMMITTER_EMAIL": "ann@example.org",
    "GIT_AUTHOR_DATE": "2024-05-06T07:08:09Z", "GIT_COMMITTER_DATE": "2024-05-06T07:08:09Z",
    "GIT_EDITOR": "true", "GIT_TERMINAL_PROMPT": "0", "GIT_CONFIG_NOSYSTEM": "1", "LC_ALL": "C",
}  # fmt: skip
_SETTINGS = {
    "GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "safe.directory", "GIT_CONFIG_VALUE_0": "*",
}  # fmt: skip
_ALLOWED = ("-c", "safe.directory=*", "-c", "protocol.file.allow=always", "-c", "init.defaultBranch=main")
COMMANDS = {
    "status": "git status --short --branch",
    "diff": "echo two >> f.txt; git diff",
    "log": "git log --format='%H %s' -3",
    "add": "echo new > n.txt; git add f.txt n.txt; git status --short",
    "commit": "git commit -qm work && git log --format='%H %s' -1 && git status --short",
    "branch": "git branch topic && git rev-parse topic",
    "switch": "git switch -qc feature && echo f > feat.txt && git add feat.txt && git commit -qm feat && "
    "git log --format=%H",
    "stash": "echo s >> f.txt; git stash -q && git stash list && git stash pop -q && git status --short; "
    "git checkout -q f.txt",
    "rebase": "git switch -q topic && echo t > t.txt && git add t.txt && git commit -qm t && "
    "git rebase -q feature && git log --format=%H",
    "merge": "git switch -qc again HEAD~1 && echo m > m.txt && git add m.txt && git commit -qm m && "
    "git merge -q --no-edit topic && git log --format=%H && git switch -q - && git switch -q {start} && "
    "git merge -q again && git status --short",
    "worktree add": "git worktree add -q wt -b wt && git -C wt log --format=%H -1 && git -C wt status --short"
    " && git worktree remove --force wt && git branch -qD wt",
    "submodule update": "git submodule update --no-fetch && git submodule status",
}


@dataclass
class Layout:
    """A directory that somebody works in; `start` is the branch that is checked out."""

    workspace: Path
    start: str = "main"


def git(place: Path, *words: str, fails: bool = False) -> str:
    """Run git as the user; returns what it prints."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(place.anchor), **ENVIRONMENT}
    done = subprocess.run(
        ["git", *_ALLOWED, *words], cwd=place, env=environment, capture_output=True, timeout=HANG_S,
        stdin=subprocess.DEVNULL, check=False,
    )  # fmt: skip
    if done.returncode and not fails:
        raise AssertionError(f"git {words}: {done.stderr.decode()}")
    return done.stdout.decode("utf-8", "replace").strip()


def repository(place: Path, files: dict[str, str] | None = None) -> Path:
    """Make a repository of two commits."""
    place.mkdir(parents=True)
    git(place, "init", "-q", ".")
    for text in ("zero\n", "one\n"):
        for name in files or {"f.txt": ""}:
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            (place / name).write_text(text)
        git(place, "add", ".")
        git(place, "commit", "-qm", text.strip())
    return place


def ordinary(base: Path) -> Layout:
    return Layout(repository(base / "top"))


def linked_worktree(base: Path) -> Layout:
    git(repository(base / "top"), "worktree", "add", "-q", str(base / "tree"), "-b", "side")
    return Layout(base / "tree", "side")


def package(base: Path) -> Layout:
    top = repository(base / "top", {"f.txt": "", "libs/pkg/f.txt": "", "libs/other/f.txt": ""})
    return Layout(top / "libs/pkg")


def submodule(base: Path) -> Layout:
    layout = with_submodule(base)
    git(layout.workspace / "sub", "switch", "-q", "main")
    return Layout(layout.workspace / "sub")


def with_submodule(base: Path) -> Layout:
    repository(base / "other")
    top = repository(base / "top")
    git(top, "submodule", "add", "-q", "../other", "sub")
    git(top, "commit", "-qm", "submodule")
    return Layout(top)


def linked_with_submodule(base: Path) -> Layout:
    """The git directory of a submodule lies in the worktree's own, outside of the workspace."""
    git(_with_named_submodule(base, "sub"), "worktree", "add", "-q", str(base / "tree"), "-b", "side")
    git(base / "tree", "submodule", "update", "-q", "--init")
    git(base / "tree/sub", "switch", "-q", "main")
    return Layout(base / "tree", "side")


def package_with_submodule(base: Path) -> Layout:
    top = _with_named_submodule(base, "libs/pkg/deep/sub")
    git(top / "libs/pkg/deep/sub", "switch", "-q", "main")
    return Layout(top / "libs/pkg")


def _with_named_submodule(base: Path, name: str) -> Path:
    """A submodule with an address in `.gitmodules`, so that git does not ask for the repository's own."""
    repository(base / "other")
    top = repository(base / "top", {"f.txt": "", "libs/pkg/f.txt": ""})
    git(top, "submodule", "add", "-q", "../other", name)
    git(top, "config", "-f", ".gitmodules", f"submodule.{name}.url", "https://example.org/other.git")
    git(top, "commit", "-qam", "submodule")
    return top


def core_worktree(base: Path) -> Layout:
    """`GIT_DIR` apart, `core.worktree` names the files."""
    top = repository(base / "top")
    (top / ".git").rename(base / "apart.git")
    (top / ".git").write_text(f"gitdir: {base / 'apart.git'}\n")
    git(top, "config", "core.worktree", str(top))
    return Layout(top)


def separate(base: Path) -> Layout:
    """`git init --separate-git-dir`: nothing in the git directory names the files."""
    top = repository(base / "top")
    git(top, "init", "-q", "--separate-git-dir", str(base / "apart.git"))
    return Layout(top)


def bare(base: Path) -> Layout:
    top = repository(base / "top")
    git(base, "clone", "-q", "--bare", str(top), "bare.git")
    git(base / "bare.git", "worktree", "add", "-q", str(base / "tree"), "main")
    return Layout(base / "tree")


def bare_inside(base: Path) -> Layout:
    """`proj/.bare`, `proj/.git` naming it, a working tree beside: the working tree is the workspace."""
    top = repository(base / "top")
    (base / "proj").mkdir()
    git(base / "proj", "clone", "-q", "--bare", str(top), ".bare")
    (base / "proj/.git").write_text("gitdir: ./.bare\n")
    git(base / "proj", "worktree", "add", "-q", "tree", "main")
    return Layout(base / "proj/tree")


def sparse(base: Path) -> Layout:
    top = repository(base / "top", {"f.txt": "", "shown/f.txt": "", "left/f.txt": ""})
    git(top, "sparse-checkout", "set", "shown")
    return Layout(top)


def sparse_worktree(base: Path) -> Layout:
    layout = linked_worktree(base)
    (base / "top/left").mkdir()
    git(layout.workspace, "sparse-checkout", "set", "shown")
    return layout


def shallow(base: Path) -> Layout:
    git(base, "clone", "-q", "--depth", "1", repository(base / "top").as_uri(), "clone")
    return Layout(base / "clone")


def partial(base: Path) -> Layout:
    top = repository(base / "top")
    git(top, "config", "uploadpack.allowfilter", "true")
    git(base, "clone", "-q", "--filter=blob:none", top.as_uri(), "clone")
    return Layout(base / "clone")


def pointers(base: Path) -> Layout:
    """Files that LFS keeps elsewhere, without LFS: pointers stay what they are."""
    top = repository(base / "top", {"f.txt": "", ".gitattributes": ""})
    (top / ".gitattributes").write_text("*.bin filter=lfs diff=lfs merge=lfs -text\n")
    (top / "a.bin").write_text(
        f"version https://git-lfs.github.com/spec/v1\noid sha256:{'a' * 64}\nsize 12\n"
    )
    git(top, "add", ".")
    git(top, "commit", "-qm", "pointer")
    return Layout(top)


def others(base: Path) -> Layout:
    """A repository of another user's, where one is root."""
    layout = ordinary(base)
    if os.geteuid() == 0:
        for path in (layout.workspace, *layout.workspace.rglob("*")):
            os.chown(path, 65534, 65534)
    return layout


LAYOUTS: dict[str, Callable[[Path], Layout]] = {
    "ordinary": ordinary, "linked worktree": linked_worktree, "package": package, "submodule": submodule,
    "with a submodule": with_submodule, "worktree, submodule": linked_with_submodule,
    "package, submodule": package_with_submodule, "core.worktree": core_worktree, "separate git dir": separate,
    "bare, worktrees": bare, "bare within": bare_inside, "sparse": sparse, "sparse worktree": sparse_worktree,
    "shallow": shallow, "partial": partial, "LFS pointers": pointers, "another's": others,
}  # fmt: skip


@dataclass
class Outcome:
    """What each command and landing came to; "as outside" or what differs; `states`: of the user's, after each."""

    cells: dict[str, str] = field(default_factory=dict[str, str])
    details: dict[str, str] = field(default_factory=dict[str, str])
    states: dict[str, "State"] = field(default_factory=dict[str, "State"])

    def note(self, step: str, found: object, wanted: object, why: str = "") -> None:
        """Note what a step came to."""
        self.cells[step] = "=" if found == wanted else "≠"
        if found != wanted:
            self.details[step] = why or f"{found} | outside {wanted}"

    @property
    def differing(self) -> dict[str, str]:
        """The cells that are not as they should be."""
        return {name: self.details.get(name, cell) for name, cell in self.cells.items() if cell != "="}


async def compare(base: Path, name: str, tier: str) -> Outcome:
    """Make a layout twice, run all commands on a branch of one and outside in the other, land and undo."""
    outcome = Outcome()
    inside, outside = base / "inside", base / "outside"
    for place in (inside, outside):
        place.mkdir(parents=True)
    mine, twin = LAYOUTS[name](inside), LAYOUTS[name](outside)
    outcome.states["before"] = State.of(mine.workspace)
    with Workspace(mine.workspace, data_dir=base / "data") as workspace:
        host = SandboxHost(base / "data", SandboxSettings(tier=tier))  # pyright: ignore[reportArgumentType]
        branch = workspace.branch()
        try:
            sandbox = await host.sandbox(branch)
            for step, command in COMMANDS.items():
                words = command.replace("{start}", mine.start)
                ran = await sandbox.run(words, env={**ENVIRONMENT, **_SETTINGS})
                here = (ran.exit_code, _plain(ran.output, sandbox.root, inside))
                outcome.note(step, here, _outside(words, twin.workspace, outside))
            branch.begin_turn()
        finally:
            await host.close()
        outcome.states["committed on the branch"] = State.of(mine.workspace)
        _land_and_undo(branch, mine, twin, outcome)
    return outcome


def _outside(words: str, place: Path, base: Path) -> tuple[int, str]:
    environment = {"PATH": os.environ["PATH"], "HOME": str(base), **ENVIRONMENT, **_SETTINGS}
    done = subprocess.run(
        ["bash", "-c", words], cwd=place, timeout=HANG_S, check=False, env=environment,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    return done.returncode, _plain(done.stdout.decode("utf-8", "replace"), str(place), base)


@dataclass(frozen=True)
class State:
    """What the user has: where HEAD is, what status, log and reflog say, all commits that can be reached."""

    tip: str
    status: str
    commits: frozenset[str]
    log: tuple[str, ...]
    reflog: tuple[str, ...]

    @classmethod
    def of(cls, place: Path) -> "State":
        commits = git(place, "rev-list", "--all", "--reflog", "HEAD").split()
        status = git(place, "status", "--porcelain", "--branch")
        log = git(place, "log", "--all", "--format=%h %s%d").splitlines()
        reflog = git(place, "reflog", "--format=%h %gs").splitlines()
        return cls(git(place, "rev-parse", "HEAD"), status, frozenset(commits), tuple(log), tuple(reflog))


def _land_and_undo(branch: Branch, mine: Layout, twin: Layout, outcome: Outcome) -> None:
    place, before = mine.workspace, outcome.states["before"]
    story = branch.git_story()
    refs = {ref.ref for one in story.repositories for ref in one.refs}
    outcome.note(
        "history shown", refs >= {f"refs/heads/{mine.start}", "refs/heads/feature"}, True, str(story)
    )
    files = branch.land(session="s_1", commits="never")
    outcome.note("land files", (place / "t.txt").is_file() and not files.refused, True, str(files.refused))
    outcome.states["files landed"] = State.of(place)
    landing = branch.land(session="s_1", commits="fast_forward")
    wanted = State.of(twin.workspace).tip
    kept = git(place, "rev-parse", f"refs/bowerbird/s_1/heads/{mine.start}", fails=True)
    outcome.note("land commits", kept, wanted, str(landing.history))
    after = outcome.states["commits landed"] = State.of(place)
    clean = git(place, "status", "--porcelain") == ""
    outcome.note("fast-forward", (after.tip, clean), (wanted, True), f"{after.status} {landing.history}")
    landing.undo()
    files.undo()
    after = outcome.states["both undone"] = State.of(place)
    outcome.note("undo", (after.tip, after.status), (before.tip, before.status))
    outcome.note("reachable", before.commits <= after.commits, True)
    broken = git(place, "fsck", "--full", "--no-dangling", fails=True)
    outcome.note("fsck", "error" not in broken and "missing" not in broken, True, broken)


def _plain(text: str, root: str, base: Path) -> str:
    return text.replace(root, "ROOT").replace(str(base), "BASE").strip()
