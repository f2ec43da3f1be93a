"""A repository of our own around the new objects of a branch, where git may look at them.

Here: linking objects into it, asking about commits there, making one pack of what is new. Not here: which
refs changed (`refs.py`), the user's repository (`arrival.py`).

Nothing of the branch's git directory comes in but files that are named like objects, and of packs only the
objects: git makes the index of a pack itself. Objects are named by their content; whoever receives them
checks that. What the user's repository has already is borrowed from there.
"""

import fcntl
import os
import re
import shutil
import tempfile
import time
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import IO

from bowerbird.workspace.git.repository import Repository
from bowerbird.workspace.git.running import Git, GitFailed, alternate
from bowerbird.workspace.tree.content import Content

_LOOSE = re.compile(r"objects/([0-9a-f]{2})/([0-9a-f]{38}|[0-9a-f]{62})")
_PACK = re.compile(r"objects/pack/(pack-[0-9a-f]{40,64})\.pack")
_PREFIX = "quarantine-"
_YOUNG_S = 60.0
_MOST_KNOWN = 5_000
_MOST_SUBJECTS = 50


class Quarantine:
    """Use it as a context manager; it is removed at the end.

    Args:
        place: a directory on the branch's file system, for a temporary one in it.
        most_bytes: of objects, together.

    Raises:
        GitFailed: the objects are larger, or a pack is damaged.
    """

    def __init__(self, repository: Repository, place: Path, most_bytes: int) -> None:
        self.repository = repository
        self._place = place
        self._most_bytes = self._left = most_bytes
        self._known: list[str] | None = None
        self.nowhere: set[str] = set()

    def __enter__(self) -> "Quarantine":
        self._path = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=self._place))
        self._lock = _locked(self._path)
        self._git = Git(self._path)
        try:
            self._make()
        except BaseException:
            self._remove()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._remove()

    def _remove(self) -> None:
        shutil.rmtree(self._path, ignore_errors=True)
        os.close(self._lock)

    # ------------------------------------------------------------ making

    def _make(self) -> None:
        theirs = Git(self.repository.git_dir)
        form = theirs.run("rev-parse", "--show-object-format").decode().strip()
        (self._path / "refs").mkdir()
        (self._path / "objects/info").mkdir(parents=True)
        (self._path / "objects/pack").mkdir()
        (self._path / "HEAD").write_text("ref: refs/heads/none\n")
        extension = f"[extensions]\n\tobjectFormat = {form}\n" if form != "sha1" else ""
        version = 1 if extension else 0
        config = f"[core]\n\trepositoryformatversion = {version}\n\tbare = true\n{extension}"
        (self._path / "config").write_text(config)
        common = theirs.run("rev-parse", "--path-format=absolute", "--git-common-dir")
        objects = Path(os.fsdecode(common.removesuffix(b"\n"))) / "objects"
        (self._path / "objects/info/alternates").write_bytes(alternate(objects))
        shallow = objects.with_name("shallow")
        if shallow.is_file():
            shutil.copyfile(shallow, self._path / "shallow")
        self._link()

    def _link(self) -> None:
        packs: list[str] = []
        for name, change in self.repository.changed.items():
            if change.new is None or change.new.kind != "file" or change.new.content is None:
                continue
            pack = _PACK.fullmatch(name)
            if pack is None and _LOOSE.fullmatch(name) is None:
                continue
            self._left -= change.new.content.size
            if self._left < 0:
                raise GitFailed(f"the new objects are larger than {self._most_bytes:,} bytes (git.max_bytes)")
            there = self._path / name
            there.parent.mkdir(exist_ok=True)
            _copy(change.new.content, there)
            if pack is not None:
                packs.append(name)
        for name in packs:
            git = self._git.with_time_for((self._path / name).stat().st_size)
            git.run("index-pack", name)

    # ------------------------------------------------------------ asking

    def known(self) -> list[str]:
        """Return what the user's refs point to, the newest of them where there are very many.

        What is not there, `nowhere` names: git would refuse to pack beside it.
        """
        if self._known is None:
            theirs = Git(self.repository.git_dir)
            wanted = ("--format=%(objectname)", f"--count={_MOST_KNOWN}")
            parts = ("refs/heads", "refs/tags", "refs/remotes", "refs/bowerbird")
            found = dict.fromkeys(theirs.run("for-each-ref", *wanted, *parts).decode().split())
            self.nowhere = self.missing(found)
            self._known = [each for each in found if each not in self.nowhere]
        return self._known

    def missing(self, ids: Collection[str]) -> set[str]:
        """Return those of some objects that are not there."""
        asked = "".join(f"{each}\n" for each in ids).encode()
        lines = (
            self._git.run("cat-file", "--batch-check", stdin=asked).decode("utf-8", "replace").splitlines()
        )
        return {line.split(" ")[0] for line in lines if line.endswith(" missing")}

    def commits(self, new: str, without: Iterable[str]) -> tuple[int, list[tuple[str, str]]]:
        """Return how many commits lead to `new` and to none of the others, and (id, subject) of some."""
        base = "".join(f"{line}\n" for line in (new, *(f"^{each}" for each in without))).encode()
        count = int(self._git.run("rev-list", "--count", "--ignore-missing", "--stdin", stdin=base))
        if count == 0:
            return 0, []
        form = ("--no-walk=unsorted", "--no-decorate", "-z", "--format=%h%x09%s")
        ids = self._git.run(
            "rev-list", f"--max-count={_MOST_SUBJECTS}", "--ignore-missing", "--stdin", stdin=base
        )
        rows = self._git.run("log", *form, "--stdin", stdin=ids).decode("utf-8", "replace").split("\0")
        found = [row.partition("\t") for row in rows if row]
        return count, [(short, subject) for short, _, subject in found]

    def is_after(self, old: str, new: str) -> bool:
        """Whether a commit has another among those before it."""
        return self._git.says("merge-base", "--is-ancestor", old, new)

    def is_commit(self, name: str) -> bool:
        """Whether an object is a commit, not a tag or a file."""
        return self._git.run("cat-file", "-t", name).strip() == b"commit"

    def paths_between(self, old: str | None, new: str) -> list[str]:
        """Return the paths whose files differ between two commits, relative to the repository's top."""
        sides = (old, new) if old is not None else (self._empty_tree(), new)
        found = self._git.run("diff-tree", "-r", "-z", "--name-only", "--no-renames", *sides)
        return [part.decode("utf-8", "surrogateescape") for part in found.split(b"\0") if part]

    def _empty_tree(self) -> str:
        return self._git.run("hash-object", "-t", "tree", "-w", "--stdin").decode().strip()

    # ------------------------------------------------------------ packing

    def lacking(self, tips: Sequence[str]) -> bytes:
        """Return what asks git for all that leads to some objects and not to the user's refs."""
        return "".join(f"{line}\n" for line in (*tips, *(f"^{known}" for known in self.known()))).encode()

    def pack(self, tips: Sequence[str], out: IO[bytes]) -> int:
        """Write what leads to `tips` and the user's refs lack as one pack; returns how many objects."""
        asked = self.lacking(tips)
        how = ("--revs", "--stdout", "--delta-base-offset", "-q", "--threads=1")
        git = self._git.with_time_for(self._most_bytes - self._left)
        git.run_to(out, "pack-objects", *how, stdin=asked, most=self._most_bytes)
        out.flush()
        out.seek(8)
        return int.from_bytes(out.read(4), "big")


def sweep(place: Path) -> None:
    """Remove the repositories that a killed process left in a branch's directory.

    Those in use are locked; a young one may be about to be.
    """
    for left in place.glob(f"{_PREFIX}*"):
        with suppress(OSError):  # in use, or gone meanwhile
            if time.time() - left.stat().st_mtime < _YOUNG_S:
                continue
            lock = _locked(left)
            shutil.rmtree(left, ignore_errors=True)
            os.close(lock)


def _locked(directory: Path) -> int:
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(fd)
        raise
    return fd


def _copy(content: Content, there: Path) -> None:
    if content.frozen is not None:
        try:
            there.hardlink_to(content.frozen)
            return
        except OSError:
            pass  # another file system, or its limit of links: copy
    with there.open("xb") as file:
        content.write_to(file.fileno())
