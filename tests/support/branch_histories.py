"""Random histories of forks, edits, merges, landings and undos, real beside model.

Here: one history from a seed, compared after every step. Not here: how many run
(`tests/workspace/history/test_histories.py`, `benchmarks/histories.py`).
"""

import asyncio
import os
import random
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from support.branch_model import ModelBranch, ModelLanding, Tree, Version

from bowerbird.core.errors import InvalidArgument, LandingRefused
from bowerbird.workspace import Branch, Landing, Workspace

PATHS = ["a", "b.txt", "d/x", "d/y", "e/f/g", "n/new", "n/other", "o"]
STEPS = 14


class Difference(AssertionError):
    """Model and reality disagree; the message holds seed, step and both sides."""


class History:
    """One history.

    Args:
        place: an empty directory of its own.
        seed: chooses everything.
    """

    def __init__(self, place: Path, seed: int) -> None:
        self.seed = seed
        self.random = random.Random(seed)
        self.log: list[str] = []
        self.unique = 0
        self.root = place / "ws"
        self.root.mkdir(parents=True)
        self.ws: Tree = {}
        for path in PATHS[:5]:
            self._user_put(path, ("file", self._text(self.random.randrange(2, 14)), 0o644))
        self.workspace = Workspace(self.root, data_dir=place / "data")
        self.pairs: list[tuple[Branch, ModelBranch]] = [(self.workspace.branch(), ModelBranch(self.ws))]
        self.landings: list[tuple[Landing, ModelLanding]] = []

    async def run(self) -> None:
        """Do all steps; raises Difference at the first disagreement."""
        steps = [
            self._edit,
            self._edit,
            self._edit,
            self._user,
            self._fork,
            self._merge,
            self._land,
            self._undo,
        ]
        steps += [self._land, self._merge, self._try, self._turn, self._hunks]
        try:
            for _ in range(STEPS):
                await self.random.choice(steps)()
                self._compare()
        finally:
            self.workspace.close()

    # ------------------------------------------------------------ steps

    async def _edit(self) -> None:
        real, model = self.random.choice(self.pairs)
        await self._edit_once(real, model)

    async def _edit_once(self, real: Branch, model: ModelBranch, paths: Sequence[str] = tuple(PATHS)) -> None:
        path = self.random.choice(paths)
        version = self._changed(model.view(path))
        self.log.append(f"edit {self._name(model)} {path} -> {version}")
        model.put(path, version)
        present = read_branch(real, path)
        if present is not None and (version is None or "link" in (version[0], present[0])):
            await real.delete(path)
        if version is None:
            return
        if version[0] == "link":
            put_link(real, path, version[1])
            return
        await real.write_file(path, version[1])
        await real.set_executable(path, version[2] == 0o755)

    async def _user(self) -> None:
        path = self.random.choice(PATHS)
        version = self._changed(self.ws.get(path))
        self.log.append(f"user {path} -> {version}")
        self._user_put(path, version)

    async def _fork(self) -> None:
        real, model = self.random.choice(self.pairs)
        if len(self.pairs) >= 4:
            return
        self.log.append(f"fork {self._name(model)}")
        self.pairs.append((real.fork(), model.fork()))

    async def _merge(self) -> None:
        real, model = self.random.choice(self.pairs)
        above = [pair for pair in self.pairs if pair[1] in model.ancestors()]
        if not above:
            return
        parent, parent_model = self.random.choice(above)
        paths = self.random.sample(PATHS, 3) if self.random.random() < 0.3 else None
        force = self.random.random() < 0.2
        self.log.append(f"merge {self._name(model)} into {self._name(parent_model)} {paths} force={force}")
        wanted = parent_model.merge(model, paths, force)
        done = parent.merge(real, paths, force)
        self._equal(
            "merge",
            {k: [f"/{p}" for p in v] for k, v in wanted.items()},
            {k: list(getattr(done, k)) for k in wanted},
        )

    async def _land(self) -> None:
        real, model = self.random.choice(self.pairs)
        paths = self.random.sample(PATHS, 3) if self.random.random() < 0.3 else None
        force, partial = self.random.random() < 0.2, self.random.random() < 0.6
        self.log.append(f"land {self._name(model)} {paths} force={force} partial={partial}")
        wanted = model.land(paths, force, partial)
        try:
            landing = real.land(paths, force=force, partial=partial, accept=["*"])
        except LandingRefused as error:
            refused = sorted({row["path"][1:] for row in error.refused})
            self._equal("refused", wanted if isinstance(wanted, list) else "landed", refused)
            return
        self._equal("landed", True, isinstance(wanted, ModelLanding))
        if isinstance(wanted, ModelLanding):
            self._equal("left out", wanted.refused, sorted({row.path[1:] for row in landing.refused}))
            self._equal("entries", sorted(e.path for e in wanted.entries), files_of(landing))
            self.landings.append((landing, wanted))

    async def _undo(self) -> None:
        landings = [pair for pair in self.landings if pair[1].entries]
        if not landings:
            return
        landing, model = self.random.choice(landings)
        force = self.random.random() < 0.3
        self.log.append(f"undo {self.landings.index((landing, model))} force={force}")
        wanted = model.undo(force)
        try:
            undone = landing.undo(force=force)
        except LandingRefused as error:
            refused = sorted({row["path"][1:] for row in error.refused})
            self._equal("undo refused", wanted if isinstance(wanted, list) else "undone", refused)
            return
        except InvalidArgument:
            self._equal("nothing left", [], wanted.entries if isinstance(wanted, ModelLanding) else wanted)
            return
        self._equal("undone", True, isinstance(wanted, ModelLanding))
        if isinstance(wanted, ModelLanding):
            self.landings.append((undone, wanted))

    async def _try(self) -> None:
        """Go on from a mark and back, with a fork that stands on what is dropped."""
        real, model = self.random.choice(self.pairs)
        self.log.append(f"try {self._name(model)}")
        own, base = dict(model.own), dict(model.base)
        mark = real.mark()
        model.seal()
        for _ in range(2):
            await self._edit_once(real, model)
        if len(self.pairs) < 4 and self.random.random() < 0.3:
            self.log.append(f"fork {self._name(model)}")
            self.pairs.append((real.fork(), model.fork()))
        real.rollback(mark)
        model.own, model.base = own, {p: model.base.get(p, base[p]) for p in own}
        model.seal()

    async def _turn(self) -> None:
        """End a turn, go on, perhaps return to its snapshot; then the next turn starts."""
        real, model = self.random.choice(self.pairs)
        self.log.append(f"turn {self._name(model)}")
        snapshot, own = real.end_turn(f"t_{len(self.log)}"), dict(model.own)
        model.seal()
        # Restoring deletes a new directory again, for good: the model knows no directories.
        await self._edit_once(real, model, [path for path in PATHS if not path.startswith("n/")])
        if self.random.random() < 0.5:
            self.log.append("restore")
            real.restore(snapshot.id)
            model.restore(own)
        real.begin_turn()
        model.follow()

    async def _hunks(self) -> None:
        """Land one hunk, then the rest: the same as all at once (acceptance 12)."""
        real, model = self.random.choice(self.pairs)
        rows = [r for r in real.diff().written if r.kind == "modify" and len(r.hunks) > 1]
        if not rows:
            return
        row = self.random.choice(rows)
        path = row.path[1:]
        if self.ws.get(path) != model.base[path]:
            return
        hunk = self.random.choice(row.hunks).id
        self.log.append(f"hunk of {path} in {self._name(model)}")
        real.land(hunks=[hunk], accept=["*"])
        real.land([path], accept=["*"])
        wanted = model.land([path], False, False)
        self._equal("hunks", True, isinstance(wanted, ModelLanding))

    # ------------------------------------------------------------ versions

    def _text(self, count: int) -> bytes:
        return b"".join(self._line() for _ in range(count))

    def _line(self) -> bytes:
        self.unique += 1
        return b"%d\n" % self.unique

    def _changed(self, present: Version) -> Version:
        """Another version: mostly an edit of lines, else created, deleted, made a link, made executable."""
        if present is None:
            return (
                "file",
                self._text(self.random.randrange(0, 12)),
                self.random.choice([0o644, 0o644, 0o755]),
            )
        dice = self.random.random()
        if dice < 0.12:
            return None
        if dice < 0.17:
            return ("link", b"to%d" % self.random.randrange(3), 0)
        if present[0] == "link":
            return ("file", self._text(3), 0o644)
        if dice < 0.25:
            return ("file", present[1], 0o755 if present[2] == 0o644 else 0o644)
        lines = [line + b"\n" for line in present[1].split(b"\n")]
        lines[-1] = lines[-1][:-1]
        for _ in range(self.random.randrange(1, 3)):
            at = self.random.randrange(len(lines))
            new = [self._line() for _ in range(self.random.randrange(0, 3))]
            lines[at : at + self.random.randrange(0, 2)] = new
            lines = lines or [b""]
        data = b"".join(lines)
        if self.random.random() < 0.1:
            data = data.removesuffix(b"\n")
        return ("file", data, present[2])

    def _user_put(self, path: str, version: Version) -> None:
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.unlink(missing_ok=True)
        if version is not None and version[0] == "link":
            target.symlink_to(version[1].decode())
        elif version is not None:
            target.write_bytes(version[1])
            target.chmod(version[2])
        self.ws[path] = version

    # ------------------------------------------------------------ comparing

    def _name(self, model: ModelBranch) -> str:
        return f"branch{next(n for n, pair in enumerate(self.pairs) if pair[1] is model)}"

    def _equal(self, what: str, wanted: Any, found: Any) -> None:
        if wanted != found:
            story = "\n".join(self.log)
            raise Difference(f"seed {self.seed}: {what}\nmodel: {wanted}\nreal:  {found}\n{story}")

    def _compare(self) -> None:
        present = {path: version for path in PATHS if (version := read_real(self.root / path)) is not None}
        self._equal("workspace", {p: v for p, v in self.ws.items() if v is not None}, present)
        left = [str(p) for p in self.root.rglob(".bowerbird-*")]
        self._equal("temporary files", [], left)
        for real, model in self.pairs:
            name = self._name(model)
            for path in PATHS:
                self._equal(f"{name} {path}", model.view(path), read_branch(real, path))
            changes = real.changes()
            listed = [p[1:] for p in (*changes.written, *changes.deleted) if p[1:] in PATHS]
            self._equal(f"{name} changes", model.changes(), sorted(listed))


def files_of(landing: Landing) -> list[str]:
    """The landed paths that the model knows (it knows no directories)."""
    return sorted(row.path[1:] for row in landing.entries if row.path[1:] in PATHS)


def read_real(path: Path) -> Version:
    """What stands at a real path."""
    if path.is_symlink():
        return ("link", str(path.readlink()).encode(), 0)
    return ("file", path.read_bytes(), path.stat().st_mode & 0o777) if path.is_file() else None


def read_branch(branch: Branch, path: str) -> Version:
    """What stands at a path of a branch, through its merged view."""
    view = branch._state.reading().view  # pyright: ignore -- one look without a thread, thousands of times
    entry = view.lookup(f"/{path}")
    if entry is None:
        return None
    if entry.kind == "symlink":
        return ("link", (entry.target or "").encode(), 0)
    fd = view.open(f"/{path}", entry)
    try:
        return ("file", os.read(fd, 1 << 20), entry.mode)
    finally:
        os.close(fd)


def put_link(branch: Branch, path: str, target: bytes) -> None:
    """Make a symbolic link, as a process on the branch would."""
    with branch._state.writing() as stack:  # pyright: ignore -- no file tool makes links
        stack.put_symlink(f"/{path}", target.decode())


def run_history(place: Path, seed: int) -> None:
    """Run one history in `place` (made and removed); raises Difference."""
    try:
        asyncio.run(History(place, seed).run())
    finally:
        shutil.rmtree(place, ignore_errors=True)
