"""One day of three agents in one repository: on branches of Bowerbird's, and in `git worktree`s (comparison of GI).

    python benchmarks/parallel_agents.py [--files 2000] [--ignored 3000]

The same three pieces of work, the same shell commands, at the same time: two commit, two change one line of a
file, one renames a directory and cleans up more than it should. The user has an edit that is not committed, and
files that git ignores and the project's check needs. Prints the commands that a person types, seconds, bytes on
disk, and what was lost, each found out by looking. The third column stands for a container with a clone in it: no
engine is asked for, but each agent gets a root of its own by bubblewrap, in which the host's /usr takes the place of
an image. So the time and disk of building, pulling and keeping an image are not in it.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from support.fake_models import FakeModels
from support.terminals import COMMAND, clean_environment

CHECK = "python3 check.py"
AGENTS = {
    "one": f"{CHECK}; sed -i 's/^total = .*/total = 1/' src/a.py; git commit -qam 'Count from one'",
    "two": f"{CHECK}; sed -i 's/^last = .*/last = 2/' src/a.py; echo b > src/b.py; mkdir -p build; "
    "for n in $(seq 50); do echo $n > build/$n; done; git add src; git commit -qm 'Add b'; "
    "git config core.pager 'sh -c true'",
    "three": f"{CHECK}; sed -i 's/^total = .*/total = 3/' src/a.py; mv docs manual; "
    "rm -f {project}/notes.txt; echo loose > {home}/loose.txt",
}
CONTAINER = """
Of a container besides: its image has to be built and kept up to date by somebody. With the user's directory mounted
in it, agents change the user's files at once, as in no isolation at all."""


@dataclass
class Day:
    """What it took, and what was found out."""

    steps: list[str] = field(default_factory=list[str])
    seconds: dict[str, float] = field(default_factory=dict[str, float])
    size: int = 0
    found: dict[str, str] = field(default_factory=dict[str, str])

    def timed(self, what: str, work: Callable[[], None]) -> None:
        """Do a part of the day."""
        begun = time.monotonic()
        work()
        self.seconds[what] = time.monotonic() - begun


class Place:
    """A project of the user's, with a home beside it."""

    def __init__(self, base: Path, files: int, ignored: int) -> None:
        self.home, self.root = base / "home", base / "project"
        self.home.mkdir(parents=True)
        (self.home / ".gitconfig").write_text("[user]\n\tname = Ann\n\temail = ann@example.org\n")
        for top, count in (("src", files), ("vendor", ignored)):
            for number in range(count):
                path = self.root / top / f"d{number % 50}" / f"f{number}.py"
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(f"# {number}\n" * 40)
        (self.root / "docs").mkdir()
        for name, text in {
            "src/a.py": "total = 0\n\n\nfirst = 0\n\n\nlast = 0\n", "docs/index.md": "# Docs\n", "mine.txt": "old\n",
            ".gitignore": "vendor/\nbuild/\nnotes.txt\n.env.local\n",
            "check.py": "import pathlib, sys\nsys.exit(not (pathlib.Path('vendor').is_dir() and "
            "pathlib.Path('mine.txt').read_text() == 'new\\n'))\n",
        }.items():  # fmt: skip
            (self.root / name).write_text(text)
        self.git("init", "-q", "-b", "main")
        self.git("add", ".")
        self.git("commit", "-qm", "first")
        (self.root / "notes.txt").write_text("the user's notes\n")
        (self.root / "mine.txt").write_text("new\n")

    def git(self, *words: str, at: Path | None = None) -> int:
        """Run git as the user."""
        environment = clean_environment(self.home)
        return subprocess.run(
            ["git", *words], cwd=at or self.root, env=environment, check=False, capture_output=True
        ).returncode

    def said(self, *words: str) -> str:
        """Return what git prints."""
        environment = clean_environment(self.home)
        return subprocess.run(
            ["git", *words], cwd=self.root, env=environment, check=True, capture_output=True, text=True
        ).stdout.strip()


def size_of(place: Path) -> int:
    """Bytes on disk below a directory, each file once."""
    return int(
        subprocess.run(["du", "-s", "-B1", str(place)], capture_output=True, check=True).stdout.split()[0]
    )


def common(day: Day, place: Place) -> None:
    """Look at what both have to show."""
    day.found["the user's notes are there"] = _yes((place.root / "notes.txt").is_file())
    day.found["the user's edit is there"] = _yes((place.root / "mine.txt").read_text() == "new\n")
    day.found["an agent wrote into the user's home"] = _yes((place.home / "loose.txt").exists())
    pager = "pager" in (place.root / ".git/config").read_text()
    day.found["an agent changed the user's git configuration"] = _yes(pager)
    commits = place.said("log", "--all", "--format=%s")
    day.found["commits of agents that can be reached"] = str(
        sum(s in commits for s in ("Count from one", "Add b"))
    )
    landed = (place.root / "src/a.py").read_text()
    day.found["both changes of one file are there"] = _yes("total = 3" in landed and "last = 2" in landed)
    day.found["the renamed directory is there"] = _yes((place.root / "manual/index.md").is_file())


def decide(day: Day, place: Place) -> None:
    """The one line that two agents changed is the user's to decide, in either case."""
    day.steps.append("decide the conflict in src/a.py")
    file = place.root / "src/a.py"
    text = file.read_text()
    if "<<<<<<<" in text:
        head, _, rest = text.partition("<<<<<<< ")
        text = (
            head
            + rest.partition("=======\n")[2].partition(">>>>>>> ")[0]
            + rest.partition(">>>>>>> ")[2].partition("\n")[2]
        )
    file.write_text(text.replace("total = 1", "total = 3"))


def _yes(what: bool) -> str:
    return "yes" if what else "no"


# ------------------------------------------------------------ on branches


def with_bowerbird(base: Path, fake: FakeModels, files: int, ignored: int) -> Day:
    """Three sessions, landed one after the other; one is taken back and landed again."""
    place, day = Place(base, files, ignored), Day()
    environment = clean_environment(place.home, ANTHROPIC_API_KEY="k", ANTHROPIC_BASE_URL=fake.anthropic_url)

    def run(*words: str, shown: str = "") -> str:
        day.steps.append(f"bowerbird {shown or ' '.join(words)}")
        ran = subprocess.run(
            [*COMMAND, *words], cwd=place.root, env=environment, stdin=subprocess.DEVNULL, capture_output=True,
            text=True, check=False,
        )  # fmt: skip
        return ran.stdout + ran.stderr

    def agents() -> None:
        started: list[subprocess.Popen[bytes]] = []
        for name, work in AGENTS.items():
            command = work.replace("{project}", str(place.root)).replace("{home}", str(place.home))
            call = {
                "name": "bash",
                "input": {"command": f"{command.replace(CHECK, CHECK + '; echo check $?')}"},
            }
            script = json.dumps({"steps": [{"tools": [call]}, {"text": "Done."}]})
            day.steps.append(f"bowerbird run '{name} …'")
            words = [*COMMAND, "run", f"{name} [[fake {script}]]", "--quiet"]
            started.append(
                subprocess.Popen(words, cwd=place.root, env=environment, stdout=subprocess.DEVNULL)
            )
        assert [each.wait() for each in started] == [0, 0, 0], "the agents' work"

    def results() -> dict[str, str]:
        listed = json.loads(
            subprocess.run(
                [*COMMAND, "sessions", "--json"],
                cwd=place.root,
                env=environment,
                capture_output=True,
                check=True,
            ).stdout
        )
        return {str(row["title"]).split()[0]: row["id"] for row in listed}

    before = size_of(place.home)
    day.timed("agents work", agents)
    day.size = size_of(place.home) - before
    day.found["the check passed before any set-up"] = _checked(fake)
    ids = results()

    def land() -> None:
        for name, which in (("one", ()), ("two", ()), ("three", ("src", "docs", "manual", "--partial"))):
            run("land", ids[name], *which, "--yes", shown=f"land {name.upper()} {' '.join(which)}")

        decide(day, place)

    day.timed("bring in", land)
    common(day, place)

    def undo() -> None:
        run("undo")

    day.timed("take the last one back", undo)
    day.found["taking the last one back kept the others"] = _yes(
        "last = 2" in (place.root / "src/a.py").read_text() and (place.root / "docs/index.md").is_file()
    )
    return day


def _checked(fake: FakeModels) -> str:
    said = [
        json.dumps(block)
        for request in fake.requests
        for message in request["messages"]
        for block in (message["content"] if isinstance(message["content"], list) else ())
        if block["type"] == "tool_result"
    ]
    return _yes(bool(said) and all("check 0" in each for each in said))


# ------------------------------------------------------------ in worktrees


def with_worktrees(base: Path, files: int, ignored: int) -> Day:
    """Three linked worktrees, merged one after the other."""
    place, day = Place(base, files, ignored), Day()
    trees = {name: base / f"tree-{name}" for name in AGENTS}
    environment = clean_environment(place.home)
    passed: list[bool] = []

    def git(*words: str) -> int:
        day.steps.append(f"git {' '.join(words)}".replace(str(base), ".."))
        return place.git(*words)

    def shell(command: str, at: Path) -> int:
        return subprocess.run(
            ["bash", "-c", command], cwd=at, env=environment, capture_output=True, check=False
        ).returncode

    def prepare() -> None:
        for name, tree in trees.items():
            git("worktree", "add", "-q", str(tree), "-b", name)
            passed.append(shell(CHECK, tree) == 0)
            day.steps.append(f"cp -a vendor mine.txt ../tree-{name}/")
            shell(f"cp -a vendor mine.txt {tree}/", place.root)

    def agents() -> None:
        started: list[subprocess.Popen[bytes]] = []
        for name, tree in trees.items():
            command = AGENTS[name].replace("{project}", str(place.root)).replace("{home}", str(place.home))
            day.steps.append(f"(cd ../tree-{name}; agent …)")
            started.append(subprocess.Popen(["bash", "-c", command], cwd=tree, env=environment))
        for each in started:
            each.wait()

    def merge() -> None:
        day.steps.append("(cd ../tree-three; git add -A; git reset -q mine.txt; git commit …)")
        shell("git add -A; git reset -q mine.txt; git commit -qm three", trees["three"])
        _merged(git, list(AGENTS), day, place)
        for tree in trees.values():
            git("worktree", "remove", "--force", str(tree))

    day.timed("set up", prepare)
    day.timed("agents work", agents)
    day.size = sum(size_of(tree) for tree in trees.values())
    return _ended(day, place, passed, merge)


def _merged(git: Callable[..., int], names: list[str], day: Day, place: Place) -> None:
    git(
        "stash"
    )  # the edit that is not committed is in the way of a merge of what agent one committed with -a
    for name in names:
        if git("merge", "-q", "--no-edit", name):
            decide(day, place)
            git("commit", "-qam", "merged")
    git("stash", "pop")


# ------------------------------------------------------------ in roots of their own, as in containers


def with_roots(base: Path, files: int, ignored: int) -> Day:
    """Three roots with a clone in each, fetched and merged one after the other."""
    place, day = Place(base, files, ignored), Day()
    roots = {name: base / f"root-{name}" for name in AGENTS}
    passed: list[bool] = []

    def git(*words: str) -> int:
        day.steps.append(f"git {' '.join(words)}".replace(str(base), ".."))
        return place.git(*words)

    def inside(name: str, command: str) -> list[str]:
        tops = [f"/{top}" for top in ("usr", "etc", "bin", "lib", "lib64")]
        shown = [word for top in tops for word in ("--ro-bind-try", top, top)]
        return [
            "bwrap", *shown, "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--unshare-all", "--die-with-parent",
            "--bind", str(roots[name]), "/home", "--setenv", "HOME", "/home", "--chdir", "/home/project",
            "bash", "-c", command,
        ]  # fmt: skip

    def prepare() -> None:
        for name, root in roots.items():
            root.mkdir()
            day.steps.append(f"container create {name}")
            shutil.copy(place.home / ".gitconfig", root)
            git("clone", "-q", "--no-hardlinks", str(place.root), str(root / "project"))
            passed.append(
                subprocess.run(inside(name, CHECK), capture_output=True, check=False).returncode == 0
            )
            day.steps.append(f"container cp vendor mine.txt {name}:project/")
            words = ["cp", "-a", "vendor", "mine.txt", str(root / "project")]
            subprocess.run(words, cwd=place.root, check=True)
            day.steps.append(f"container exec {name} python3 -m venv …")
            made = inside(name, "python3 -m venv --without-pip /home/venv")
            subprocess.run(made, capture_output=True, check=True)

    def agents() -> None:
        started: list[subprocess.Popen[bytes]] = []
        for name, work in AGENTS.items():
            command = work.replace("{project}", str(place.root)).replace("{home}", str(place.home))
            day.steps.append(f"container exec {name} agent …")
            started.append(subprocess.Popen(inside(name, command), stderr=subprocess.DEVNULL))
        for each in started:
            each.wait()

    def merge() -> None:
        day.steps.append("container exec three 'git add -A; git reset -q mine.txt; git commit …'")
        subprocess.run(
            inside("three", "git add -A; git reset -q mine.txt; git commit -qm three"), check=False
        )
        for name, root in roots.items():
            git("fetch", "-q", str(root / "project"), f"main:{name}")
        _merged(git, list(AGENTS), day, place)
        day.steps.append("container rm one two three")
        for root in roots.values():
            shutil.rmtree(root)

    day.timed("set up", prepare)
    day.timed("agents work", agents)
    day.size = sum(size_of(root) for root in roots.values())
    return _ended(day, place, passed, merge)


def _ended(day: Day, place: Place, passed: list[bool], merge: Callable[[], None]) -> Day:
    """Bring in what the agents did, look at it, and take the last one back."""
    day.found["the check passed before any set-up"] = _yes(all(passed))
    day.timed("bring in", merge)
    common(day, place)
    day.timed("take the last one back", lambda: _revert(place, day))
    day.found["taking the last one back kept the others"] = _yes(
        "last = 2" in (place.root / "src/a.py").read_text() and (place.root / "docs/index.md").is_file()
    )
    return day


def _revert(place: Place, day: Day) -> None:
    day.steps.append("git revert -m 1 HEAD")
    place.git("revert", "--no-edit", "-m", "1", "HEAD")


def show(days: dict[str, Day]) -> None:
    """Print one beside the other."""
    names = list(days)
    print(f"| | {' | '.join(names)} |\n|---|{'---|' * len(names)}")
    print(f"| steps of a person | {' | '.join(str(len(day.steps)) for day in days.values())} |")
    for part in ("set up", "agents work", "bring in", "take the last one back"):
        print(f"| {part}, s | {' | '.join(f'{day.seconds.get(part, 0):.1f}' for day in days.values())} |")
    print(f"| disk while they work, MiB | {' | '.join(f'{day.size / 2**20:.1f}' for day in days.values())} |")
    for what in days[names[0]].found:
        print(f"| {what} | {' | '.join(day.found.get(what, '–') for day in days.values())} |")
    for name, day in days.items():
        print(f"\n{name}:\n" + "\n".join(f"    {step}" for step in day.steps))
    print(CONTAINER)


def main() -> None:
    """Play both days."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--files", type=int, default=2_000)
    parser.add_argument("--ignored", type=int, default=3_000)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="parallel-") as folder, FakeModels() as fake:
        base = Path(os.path.realpath(folder))
        show(
            {
                "Bowerbird": with_bowerbird(base / "bowerbird", fake, given.files, given.ignored),
                "git worktree": with_worktrees(base / "worktree", given.files, given.ignored),
                "a root of its own": with_roots(base / "roots", given.files, given.ignored),
            }
        )


if __name__ == "__main__":
    main()
