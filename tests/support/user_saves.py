"""A user who saves at any point of what an agent does, and what must be left of that (random histories).

Here: one history with the file tools, where the user saves between any two of their system calls, and one with
real commands, background processes and saves at any time. Each user's save adds a line of its own; in the end
every such line is in the workspace, unless the agent deleted the very file that held it. Used by the tests (a
few) and by `drills/user_saves.py` (as many as wanted).
"""

import asyncio
import contextlib
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

from support.abuse import Desk, desk_of

from bowerbird.core.errors import BowerbirdError, LandingRefused
from bowerbird.tools import ReadTracker, ToolContext, ToolResult, Toolset
from bowerbird.workspace import Branch, Workspace

_NAMES = ("a.txt", "b.txt", "d/c.txt", "d/e/f.txt", "new.txt")
_START = "".join(f"line {n}\n" for n in range(12))
_EVENTS = frozenset(
    {"open", "os.rename", "os.link", "os.remove", "os.mkdir", "os.listdir", "os.scandir", "os.chmod"}
)
_waiting: list[Callable[[], None]] = []  # the saves that the next events bring
_hooked: list[bool] = []


def _hook(event: str, _: tuple[Any, ...]) -> None:
    if _waiting and event in _EVENTS:
        save = _waiting.pop()  # first: what it does has events too
        held, _waiting[:] = _waiting[:], []
        try:
            save()
        finally:
            _waiting[:] = held


def _listen() -> None:
    if not _hooked:
        _hooked.append(True)
        sys.addaudithook(_hook)


class User:
    """Saves files of a workspace in the ways that programs do it; each save adds one line."""

    def __init__(self, root: Path, chance: random.Random) -> None:
        self.root, self._chance = root, chance
        self.lines: list[str] = []
        self._given_up: set[str] = set()

    def save(self, name: str | None = None) -> None:
        """Add a line to a file, made if it is missing; now and then a directory becomes a file, or one again."""
        if name is None and self._chance.random() < 0.03:
            self._turn(self.root / "d")
            return
        path = self.root / (name or self._chance.choice(_NAMES))
        line = f"user {len(self.lines)} {self._chance.randrange(10**9)}\n"
        unsaved = (FileNotFoundError, NotADirectoryError, FileExistsError, IsADirectoryError)
        with contextlib.suppress(
            *unsaved, subprocess.CalledProcessError
        ):  # git refuses what changed meanwhile
            path.parent.mkdir(parents=True, exist_ok=True)
            lines = (path.read_text() if path.exists() else "").splitlines(keepends=True)
            lines.insert(self._chance.randint(0, len(lines)), line)
            self._put(path, "".join(lines), self._chance.choice(("in place", "rename", "anew", "merge")))
            self.lines.append(line)

    def _turn(self, path: Path) -> None:
        aside = self.root.parent / "aside"
        with contextlib.suppress(FileNotFoundError):
            path.rename(aside)
            files = aside.rglob("*") if aside.is_dir() else (aside,)
            self._given_up.update(
                line
                for file in files
                if file.is_file()
                for line in file.read_text().splitlines(keepends=True)
            )
            if aside.is_dir():
                shutil.rmtree(aside)
                self.save(path.name)
            else:
                aside.unlink()

    def _put(self, path: Path, text: str, how: str) -> None:
        if how == "rename" or (how == "merge" and self._chance.random() < 0.9):  # starting git takes long
            beside = path.with_name(f".{path.name}.tmp")
            beside.write_text(text)
            beside.replace(path)
        elif how == "merge":
            _merge(self.root, path, text)
        elif how == "anew":
            path.unlink(missing_ok=True)
            path.write_text(text)
        else:
            path.write_text(text)

    def lost(self, gone: set[str]) -> list[str]:
        """Return the saved lines that are nowhere in the workspace, and were not deleted by the agent."""
        kept = "".join(
            found.read_text()
            for found in self.root.rglob("*")
            if found.is_file() and ".git" not in found.parts
        )
        return [line for line in self.lines if line not in kept and line not in gone | self._given_up]


def _merge(root: Path, path: Path, text: str) -> None:
    """Put a version as `git merge` does, in a repository that is gone again afterwards."""

    def git(*words: str) -> None:
        who = ("-c", "user.name=u", "-c", "user.email=u@example.org", "-c", "gc.auto=0")
        subprocess.run(["git", "--git-dir", str(place), "--work-tree", str(root), *who, *words], check=True,
                       cwd=root, capture_output=True)  # fmt: skip

    place = root.parent / f"{root.name}.git"
    subprocess.run(["rm", "-rf", str(place)], check=True)
    name = str(path.relative_to(root))
    git("init", "-q", "-b", "main")
    if path.exists():
        git("add", name)
    git("commit", "-q", "--allow-empty", "-m", "one")
    blob = subprocess.run(
        ["git", "--git-dir", str(place), "hash-object", "-w", "--stdin"], input=text.encode(), check=True,
        capture_output=True,
    ).stdout.decode().strip()  # fmt: skip
    git("update-index", "--add", "--cacheinfo", f"100644,{blob},{name}")
    tree = subprocess.run(
        ["git", "--git-dir", str(place), "write-tree"], check=True, capture_output=True
    ).stdout.decode().strip()  # fmt: skip
    git("reset", "-q")
    made = subprocess.run(
        ["git", "--git-dir", str(place), "-c", "user.name=u", "-c", "user.email=u@example.org", "commit-tree",
         tree, "-p", "HEAD", "-m", "two"], check=True, capture_output=True,
    ).stdout.decode().strip()  # fmt: skip
    git("merge", "-q", made)


class Agent:
    """One agent's file tools on one branch; it never drops a line that it has read."""

    def __init__(self, branch: Branch, chance: random.Random, gone: set[str]) -> None:
        self.branch, self._chance, self.gone = branch, chance, gone
        self.tools = Toolset.builtin("files")
        self.reads, self.calls = ReadTracker(), 0
        self.texts: dict[str, str] = {}

    async def use(self, tool: str, **arguments: Any) -> ToolResult:
        """Call a tool as a turn does."""
        self.calls += 1
        call = f"call_{self.calls}"
        found = self.tools.get(tool)
        assert found is not None
        context = ToolContext(branch=self.branch.bound("t_1", call), turn="t_1", call=call, reads=self.reads)
        return await found.call(arguments, context)

    async def step(self) -> None:
        """Do one thing that a model could do."""
        name = self._chance.choice(_NAMES)
        kinds = (
            "read",
            "read",
            "write",
            "write",
            "edit",
            "edit",
            "patch",
            "delete",
            "move",
            "chmod",
            "unlink_patch",
        )
        with contextlib.suppress(BowerbirdError):
            await getattr(self, f"_{self._chance.choice(kinds)}")(name)

    async def _read(self, name: str) -> str | None:
        result = await self.use("read_file", path=name)
        if result.is_error or result.data is None or result.data.get("content") is None:
            return None
        self.texts[name] = str(result.data["content"])
        return self.texts[name]

    async def _write(self, name: str) -> None:
        text = self.texts.get(name)
        if text is None and await self.branch.stat(name) is not None:
            return  # it replaces nothing that it has not read
        for _ in range(2):  # told that it is stale, it insists
            result = await self.use("write_file", path=name, content=(text or "") + f"agent {self.calls}\n")
            if not result.is_error:
                self.texts[name] = (text or "") + f"agent {self.calls}\n"
                return
            if self._chance.random() < 0.5:
                return

    async def _edit(self, name: str) -> None:
        number = self._chance.randrange(12)
        await self.use(
            "edit_file", path=name, old=f"line {number}\n", new=f"agent {self.calls}\nline {number}\n"
        )

    async def _patch(self, name: str) -> None:
        text = await self._read(name)
        lines = (text or "").splitlines()
        if not lines:
            return
        at = self._chance.randrange(len(lines))
        hunk = f"@@ -{at + 1},1 +{at + 1},2 @@\n {lines[at]}\n+agent {self.calls}\n"
        to = self._chance.choice((name, name, "moved.txt"))
        await self.use("apply_patch", patch=f"--- a/{name}\n+++ b/{to}\n{hunk}")

    async def _unlink_patch(self, name: str) -> None:
        text = await self._read(name)
        lines = (text or "").splitlines()
        if not lines:
            return
        body = "".join(f"-{line}\n" for line in lines)
        result = await self.use(
            "apply_patch", patch=f"--- a/{name}\n+++ /dev/null\n@@ -1,{len(lines)} +0,0 @@\n{body}"
        )
        if not result.is_error:
            self.gone.update(f"{line}\n" for line in lines)
            self.texts.pop(name, None)

    async def _delete(self, name: str) -> None:
        path = self._chance.choice((name, name, name.rpartition("/")[0] or name))
        shown = [path, *(p for p in _NAMES if p.startswith(f"{path}/"))]
        before: list[str] = []  # on the branch, perhaps moved there
        for each in shown:
            with contextlib.suppress(BowerbirdError):
                before += (await self.branch.read_bytes(each)).decode().splitlines(keepends=True)
        result = await self.use("delete_file", path=path, recursive=True)
        if result.is_error:
            return
        self.gone.update(before)
        for each in shown:
            self._took_away(each)
            self.texts.pop(each, None)

    def _took_away(self, name: str) -> None:
        """These very bytes are what the branch says it deletes or replaces."""
        with contextlib.suppress(BowerbirdError):
            base = self.branch.open_base(name)
            with os.fdopen(base.fd) as file:
                self.gone.update(file.read().splitlines(keepends=True))

    async def _move(self, name: str) -> None:
        to = self._chance.choice((*_NAMES, "moved.txt"))
        if not (await self.use("move_file", src=name, dst=to)).is_error:
            self.texts.pop(to, None)
            self._took_away(to)  # of something as alike as these files nobody can tell that it is another

    async def _chmod(self, name: str) -> None:
        await self.branch.bound("t_1", "x").set_executable(name, self._chance.random() < 0.5)


async def run_file_history(place: Path, seed: int) -> list[str]:
    """Run one history of file tools; return the user's lines that were lost."""
    chance = random.Random(seed)
    _listen()
    root = place / "ws"
    for name in _NAMES[:-1]:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(_START)
    user, gone = User(root, chance), set[str]()
    with Workspace(root, data_dir=place / "data") as workspace:
        agents = [Agent(workspace.branch(), chance, gone)]
        for _ in range(chance.randint(3, 9)):
            agent = chance.choice(agents)
            with _saves_inside(user, chance):
                if len(agents) < 3 and chance.random() < 0.15:
                    agents.append(Agent(agents[0].branch.fork(), chance, gone))
                elif chance.random() < 0.2:
                    _bring_home(agents[0].branch, agent.branch, chance, gone)
                else:
                    await agent.step()
            if chance.random() < 0.3:
                user.save()
        for agent in agents:
            _bring_home(agents[0].branch, agent.branch, chance, gone)
        _bring_home(agents[0].branch, agents[0].branch, chance, gone)
        return user.lost(gone)


def _nothing() -> None:
    return


@contextlib.contextmanager
def save_at(event: int, save: Callable[[], None]) -> Generator[Callable[[], bool]]:
    """Let the user save before the system call of this number that is made inside; gives whether it came to that."""
    _listen()
    _waiting[:] = [save, *[_nothing] * event]
    try:
        yield lambda: not _waiting
    finally:
        _waiting[:] = []


@contextlib.contextmanager
def _saves_inside(user: User, chance: random.Random) -> Generator[None]:
    """Let the user save at random events of what is done inside."""

    _waiting[:] = []
    for _ in range(chance.randint(0, 2)):
        _waiting.extend([user.save, *[_nothing] * chance.randint(0, 25)])
    try:
        yield
    finally:
        _waiting[:] = []


def _bring_home(first: Branch, branch: Branch, chance: random.Random, gone: set[str]) -> None:
    """Land a branch, or merge a fork into the first one; what a forced merge names as lost was given up."""
    with contextlib.suppress(BowerbirdError, LandingRefused):
        if branch is first:
            first.land(partial=True)
            return
        merged = first.merge(branch, force=chance.random() < 0.3)
        for conflict in merged.details.values():
            for hunk in conflict.lost:
                lines = hunk.body.decode().splitlines(keepends=True)
                gone.update(line[1:] for line in lines if line.startswith("+"))


async def run_command_history(place: Path, seed: int, tier: str) -> list[str]:
    """Run one history of real commands beside saves; return the user's lines that were lost."""
    chance = random.Random(seed)
    async with desk_of(place, tier, dict.fromkeys(_NAMES[:-1], _START)) as desk:
        user = User(desk.root, chance)
        saving = asyncio.create_task(_saves_meanwhile(user, chance))
        running: list[Any] = []
        try:
            for number in range(chance.randint(2, 5)):
                if chance.random() < 0.4 and not running:
                    line = f"cat {' '.join(_NAMES)} > /dev/null 2>&1; sleep 0.2; sed -i '1i back {number}' {_NAMES[0]}; sleep 30"
                    running.append(await desk.sandbox.begin(desk.sandbox.request(line, timeout=60)))
                await _command(desk, chance, number)
                if running and chance.random() < 0.4:
                    await _end(desk, running)
                if chance.random() < 0.3:
                    _bring_home(desk.branch, desk.branch, chance, set())
        finally:
            await _end(desk, running)
            saving.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await saving
        _bring_home(desk.branch, desk.branch, chance, set())
        return user.lost(set())


async def _command(desk: Desk, chance: random.Random, number: int) -> None:
    name = chance.choice(_NAMES)
    line = chance.choice(
        (
            f"sed -i '1i agent {number}' {name}",
            f"echo agent {number} >> {name}",
            f'old=$(cat {name}); sleep 0.05; (echo "$old"; echo agent {number}) > {name}',
            f"cp {name} tmp && echo agent {number} >> tmp && mv tmp {name}",
            f"mv {name} moved.txt; cp moved.txt {name}",
            f"chmod +x {name}",
            "mv d d2 && mv d2 d",
        )
    )
    await desk.run(line)
    if chance.random() < 0.3:
        with contextlib.suppress(BowerbirdError):
            await desk.branch.edit_file(name, "line 3\n", f"tool {number}\nline 3\n")


async def _saves_meanwhile(user: User, chance: random.Random) -> None:
    while True:
        await asyncio.sleep(chance.random() * 0.08)
        await asyncio.to_thread(user.save)


async def _end(desk: Desk, running: list[Any]) -> None:
    while running:
        live = running.pop()
        live.stop("cancel")
        await live.wait()
        await desk.sandbox.end(live)
