"""Random changes made by a process in a sandbox, compared with what the branch says of them (SB-11).

Here: one trial: a random tree, random commands, file tools in between; after each command the mounted view as
the process sees it equals the branch's own view, and the base with the captured changes applied. Used by the
tests (a few dozen) and by `benchmarks/capture_trials.py` (as many as wanted).
"""

import base64
import hashlib
import json
import os
import random
import shutil
import tarfile
from pathlib import Path
from typing import Any

from support.abuse import desk_of

from bowerbird.core.errors import InvalidArgument, WorkspaceError
from bowerbird.workspace import Branch

_NAMES = [b"a", b"b", b"c.txt", b"d", b"\xff\xfe", "ü".encode(), b"new\nline", b".wh.x", b"n" * 255]
_KINDS = (
    "write write write append truncate mkdir mkdir rmtree unlink rename rename symlink hardlink chmod touch "
    "fifo replace_dir replace_file copy rewrite_same"
).split()

# Runs inside: does the operations, then tells what stands there. Failing operations are part of the game.
_PROGRAM = """
import base64, hashlib, json, os, shutil, stat, sys
def at(word):
    return base64.b64decode(word)
def do(kind, one, two, data, mode):
    if os.path.exists(one) and stat.S_ISFIFO(os.stat(one).st_mode) and kind not in ("unlink", "rename"):
        return  # would wait for a reader
    if kind == "write":
        with open(one, "wb") as f: f.write(data)
    elif kind == "append":
        with open(one, "ab") as f: f.write(data)
    elif kind == "truncate": os.truncate(one, mode % 7)
    elif kind == "mkdir": os.makedirs(one)
    elif kind == "rmtree": shutil.rmtree(one)
    elif kind == "unlink": os.unlink(one)
    elif kind == "rename": os.rename(one, two)
    elif kind == "symlink": os.symlink(two, one)
    elif kind == "hardlink": os.link(one, two, follow_symlinks=False)
    elif kind == "chmod": os.chmod(one, (0o700 if os.path.isdir(one) else 0o600) | mode)
    elif kind == "touch": os.utime(one)
    elif kind == "fifo": os.mkfifo(one)
    elif kind == "replace_dir":
        shutil.rmtree(one); os.mkdir(one)
        with open(one + b"/in", "wb") as f: f.write(data)
    elif kind == "replace_file":
        os.unlink(one); os.mkdir(one)
    elif kind == "copy": shutil.copytree(one, two, symlinks=True)
    elif kind == "rewrite_same":
        with open(one, "rb") as f: old = f.read()
        with open(one + b".tmp", "wb") as f: f.write(old)
        os.chmod(one + b".tmp", stat.S_IMODE(os.stat(one).st_mode)); os.rename(one + b".tmp", one)
def look(top):
    found = {}
    todo = [b""]
    while todo:
        above = todo.pop()
        for name in os.listdir(top + above or b"."):
            path = above + b"/" + name
            seen = os.lstat(top + path)
            if stat.S_ISDIR(seen.st_mode):
                what = ["dir"]
                todo.append(path)
            elif stat.S_ISLNK(seen.st_mode):
                what = ["symlink", base64.b64encode(os.readlink(top + path)).decode()]
            elif stat.S_ISREG(seen.st_mode):
                with open(top + path, "rb") as file: data = file.read()
                what = ["file", seen.st_mode & 0o777, hashlib.sha256(data).hexdigest()]
            else:
                what = ["special"]
            found[base64.b64encode(path).decode()] = what
    return found
if __name__ == "__main__":
    for kind, one, two, data, mode in json.load(sys.stdin):
        try:
            do(kind, at(one), at(two), at(data), mode)
        except OSError:
            pass
    print(json.dumps(look(b".")))
"""

View = dict[str, list[Any]]


class Difference(AssertionError):
    """What a process saw and what the branch says differ."""


def _path(rng: random.Random) -> bytes:
    return b"/".join(rng.choice(_NAMES) for _ in range(rng.choice((1, 1, 2, 2, 3))))


def _operations(rng: random.Random) -> list[list[Any]]:
    made: list[list[Any]] = []
    for _ in range(rng.randrange(1, 14)):
        words = (_path(rng), _path(rng), rng.randbytes(rng.choice((0, 1, 3, 5000))))
        encoded = [base64.b64encode(word).decode() for word in words]
        made.append([rng.choice(_KINDS), *encoded, rng.choice((0, 0o44, 0o100, 0o155, 0o22))])
    return made


def _base_tree(place: Path, rng: random.Random) -> None:
    root = place / "ws"
    root.mkdir(parents=True)
    for _ in range(12):
        path = Path(os.fsdecode(os.fsencode(root) + b"/" + _path(rng)))
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            kind = rng.randrange(8)
            if kind == 0:
                path.mkdir()
            elif kind == 1:
                path.symlink_to(os.fsdecode(_path(rng)))
            else:
                path.write_bytes(rng.randbytes(rng.choice((0, 3, 5000))))
                path.chmod(rng.choice((0o644, 0o755, 0o600)))
        except OSError:
            continue
    shutil.copytree(root, place / "base", symlinks=True)


async def _branch_view(branch: Branch) -> View:
    found: View = {}
    for path, entry in branch._state.reading().view.subtree("/").items():
        key = base64.b64encode(os.fsencode(path)).decode()
        if entry.kind == "dir":
            found[key] = ["dir"]
        elif entry.kind == "symlink":
            found[key] = ["symlink", base64.b64encode(os.fsencode(entry.target or "")).decode()]
        elif entry.kind == "special":
            found[key] = ["special"]
        else:
            data = await branch.read_bytes(path)
            found[key] = ["file", entry.mode & 0o777, hashlib.sha256(data).hexdigest()]
    return found


def _host_view(root: Path) -> View:
    scope: dict[str, Any] = {"__name__": "look"}
    exec(_PROGRAM, scope)
    return scope["look"](os.fsencode(root))


def _applied(branch: Branch, base: Path, place: Path) -> View:
    """Apply the branch's changes, as it exports them, to a copy of the base."""
    target, archive = place / "applied", place / "changes.tar"
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(base, target, symlinks=True)
    branch.export(archive, "tar")
    with tarfile.open(archive, errors="surrogateescape") as changes:
        members = changes.getmembers()
        opaque = [m.name.rpartition("/")[0] for m in members if m.name.endswith(".wh..wh..opq")]
        gone = [m.name for m in members if _deletes(m.name)]
        for name in gone:
            above, _, hidden = name.rpartition("/")
            _remove(target / above / hidden.removeprefix(".wh."))
        for name in opaque:
            _remove(target / name)
        for member in members:
            if not _deletes(member.name) and not member.name.endswith(".wh..wh..opq"):
                _put(changes, member, target / member.name)
    return _host_view(target)


def _deletes(name: str) -> bool:
    last = name.rpartition("/")[2]
    # A file may really be called so; the only such name in these trees is `.wh.x` itself.
    return last.startswith(".wh.") and last not in (".wh..wh..opq", ".wh.x")


def _put(changes: tarfile.TarFile, member: tarfile.TarInfo, path: Path) -> None:
    if member.isdir():
        if path.is_symlink() or not path.is_dir():
            _remove(path)
            path.mkdir(parents=True)
        return
    _remove(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    if member.issym():
        path.symlink_to(member.linkname)
    else:
        stream = changes.extractfile(member)
        path.write_bytes(stream.read() if stream is not None else b"")
        path.chmod(member.mode)


def _remove(path: Path) -> None:
    if path.is_symlink() or not path.is_dir():
        path.unlink(missing_ok=True)
    else:
        shutil.rmtree(path)


def _compare(what: str, seed: int, mounted: View, other: View) -> None:
    special = {path for path, found in mounted.items() if found == ["special"]}
    special |= {path for path, found in other.items() if found == ["special"]}
    special |= _holding_only(special, mounted)
    one = {path: found for path, found in mounted.items() if path not in special}
    two = {path: found for path, found in other.items() if path not in special}
    if one != two:
        names = [p for p in one.keys() | two.keys() if one.get(p) != two.get(p)]
        rows = [(base64.b64decode(p), one.get(p), two.get(p)) for p in sorted(names)][:5]
        raise Difference(f"seed {seed}, {what}: {rows}")


def _holding_only(special: set[str], mounted: View) -> set[str]:
    """Return the directories in which nothing stands but special files: a branch keeps neither."""
    plain = [base64.b64decode(path) for path in mounted if path not in special]
    inside = {base64.b64decode(path) for path in special}
    above = {path.rpartition(b"/")[0] for path in inside} - {b""}
    kept = {path for path in above if not any(other.startswith(path + b"/") for other in plain)}
    return {base64.b64encode(path).decode() for path in kept}


async def run_trial(place: Path, seed: int, tier: str) -> int:
    """Run one trial below `place` and return how many commands it had; raises Difference."""
    rng = random.Random(seed)
    _base_tree(place, rng)
    commands = rng.randrange(1, 4)
    async with desk_of(place, tier) as desk:
        before = _host_view(place / "base")
        for number in range(commands):
            if rng.random() < 0.4:
                desk.branch.mark()
            operations = _operations(rng)
            result = await desk.python(_PROGRAM, stdin=json.dumps(operations).encode())
            if result.exit_code != 0:
                raise Difference(f"seed {seed}: the program failed: {result}")
            mounted: View = json.loads(result.output)
            _compare(f"view after command {number}", seed, mounted, await _branch_view(desk.branch))
            _compare(
                f"changes after command {number}", seed, mounted, _applied(desk.branch, place / "base", place)
            )
            _compare_told(seed, before, mounted, result.written, result.deleted)
            before = mounted
            if rng.random() < 0.5:
                await _use_tools(desk.branch, rng)
                before = await _branch_view(desk.branch)
        if _host_view(place / "ws") != _host_view(place / "base"):
            raise Difference(f"seed {seed}: the workspace changed")
    return commands


def _compare_told(seed: int, before: View, after: View, written: list[str], deleted: list[str]) -> None:
    """What the record names is what differs; nothing else but directories whose mode changed."""
    told = {base64.b64encode(os.fsencode(p)).decode() for p in written}
    gone = {base64.b64encode(os.fsencode(p)).decode() for p in deleted}
    plain = {p: w for p, w in after.items() if w != ["special"]}
    changed = {p for p, what in plain.items() if before.get(p) != what}
    lost = {p for p, what in before.items() if p not in after and what != ["special"]}
    missing = [base64.b64decode(p) for p in (changed - told) | (lost - gone)]
    wrong = [base64.b64decode(p) for p in gone if p in plain]
    if missing or wrong:
        raise Difference(f"seed {seed}: not told {missing}, wrongly deleted {wrong}")


async def _use_tools(branch: Branch, rng: random.Random) -> None:
    for _ in range(rng.randrange(1, 4)):
        one, two = os.fsdecode(_path(rng)), os.fsdecode(_path(rng))
        try:
            match rng.randrange(4):
                case 0:
                    await branch.write_file(one, rng.randbytes(9))
                case 1:
                    await branch.delete(one, recursive=True)
                case 2:
                    await branch.move(one, two)
                case _:
                    await branch.mkdir(one)
        except (WorkspaceError, InvalidArgument):
            continue
