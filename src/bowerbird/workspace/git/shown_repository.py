"""A repository outside of the workspace, as a branch has it: a git directory of its own.

At the first command the branch gets `.git` as a directory: HEAD, refs, logs and index as they are outside, a
configuration of values about content, and objects borrowed from outside, which are never written. From then
on it is the branch's like that of any repository in a workspace: with its snapshots, forks, both tiers.

Here: making it, following the user while the branch has nothing of its own; and, wherever the repository
lies, an index in which hidden files are not checked out, so that no commit of everything deletes them. Not
here: finding the repository (`marks/git_elsewhere.py`), how commits land (`arrival.py`).
"""

import os
import re
import stat
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path

from bowerbird.workspace.git.running import Git, GitFailed, alternate, git_program
from bowerbird.workspace.git.shown_values import config_text, repository_values
from bowerbird.workspace.history.history import History, set_base_to_view
from bowerbird.workspace.marks.git_elsewhere import ROOT, Elsewhere, git_elsewhere, submodules_elsewhere
from bowerbird.workspace.registry.frozen_refs import follow_refs
from bowerbird.workspace.registry.state import BranchState
from bowerbird.workspace.tree.changes import Change, Tops, stored_side
from bowerbird.workspace.tree.content import Content
from bowerbird.workspace.tree.real_directory import Beneath
from bowerbird.workspace.tree.stack import Stack
from bowerbird.workspace.tree.threeway import Side, same_side

_OWN = (
    "HEAD", "ORIG_HEAD", "MERGE_HEAD", "MERGE_MSG", "MERGE_MODE", "CHERRY_PICK_HEAD", "REVERT_HEAD",
    "logs/HEAD", "info/sparse-checkout",
)  # fmt: skip
_SHARED = ("shallow", "info/exclude", "info/attributes")
_INDEX = f"{ROOT}/index"
_OURS = b"refs/bowerbird/"
_ID = re.compile(rb"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_DIRECTORIES = ("refs/heads", "refs/tags", "objects/info", "objects/pack")
_MOST_FILES = 20_000
_MOST_LOGS = 200
_MOST_BYTES = 256 * 1024**2
_LOOK_S = 30.0


def show_git(state: BranchState, history: Callable[[], History]) -> None:
    """Give a branch its git directory, where the workspace's repository lies outside and it has none yet."""
    where = git_elsewhere(state.workspace, state.directory.parents[1])
    if where is None:
        _leave_out_hidden(state, history)
        return
    if state.reading().touched(ROOT) is not None:
        return
    with state.writing() as stack:
        if not stack.open_layer.live and _show(stack, history(), where):
            state.account.forget()


def _leave_out_hidden(state: BranchState, history: Callable[[], History]) -> None:
    """Give the branch an index of its own where its repository tracks files that are hidden from it."""
    stack = state.reading()
    if state.workspace is None or not stack.ground.hides or stack.touched(_INDEX) is not None:
        return
    try:
        seen = os.lstat(state.workspace / _INDEX[1:])
    except OSError:
        return  # no repository, or nothing staged in it yet
    sign = (seen.st_ino, seen.st_mtime_ns, seen.st_size)
    if state.git_refs.shown_index == sign:
        return
    with Beneath(state.workspace) as tree:
        shown = _shown_index(_inside(state.workspace), stack, _read(tree, _INDEX[1:]))
    state.git_refs.shown_index = sign
    if shown is None:
        return
    with state.writing() as stack:
        if stack.touched(_INDEX) is None and not stack.open_layer.live:
            state.git_refs.keep([_INDEX])  # an index of its own stands beside the refs that it belongs to
            history().shelf.put_layer({_INDEX: shown})
            state.account.forget()


def _inside(workspace: Path) -> Elsewhere:
    return Elsewhere(workspace / ".git", workspace / ".git", workspace)


def _shown_index(where: Elsewhere, stack: Stack, index: bytes | None) -> Side | None:
    """Return an index in which hidden files are not checked out; None where it tracks none."""
    if index is None or git_program() is None:
        return None
    with suppress(GitFailed):  # a damaged one, another user's: commands meet it as it is
        apart = _not_checked_out(where, index, stack.ground.not_shown())
        return None if apart is None else Side("file", 0o644, Content(apart))
    return None


def follow_git(state: BranchState, history: History, changes: Sequence[Change], tree: Beneath) -> list[str]:
    """Take the user's refs over again in all repositories where the branch has nothing of its own.

    Args:
        changes: all of the branch. tree: the workspace.

    Returns:
        The paths whose view changed.
    """
    where = git_elsewhere(state.workspace, state.directory.parents[1])
    refs, before = state.git_refs, state.git_refs.followed
    followed = follow_refs(state.stack, history, changes, tree, where)
    if _INDEX in followed and where is None and state.workspace is not None:
        index = _shown_index(_inside(state.workspace), state.stack, _read(tree, _INDEX[1:]))
        if index is not None:
            history.shelf.put_layer({_INDEX: index})
    refs.forget()
    if where is not None:
        every = [each for each in _with_submodules(where, state.stack) if _is_shown(state.stack, each)]
        # First: what changes meanwhile is seen by the next turn.
        refs.followed = [_sign(each) for each in every]
        if refs.followed != before:
            followed += _follow(state.stack, history, changes, every)
    return followed


def _with_submodules(where: Elsewhere, stack: Stack) -> list[Elsewhere]:
    root, kept = stack.ground.root, stack.directory.parents[1]
    return [where] if root is None else [where, *submodules_elsewhere(where, root, kept)]


def _is_shown(stack: Stack, where: Elsewhere) -> bool:
    return stack.orig.get(f"{where.root}/HEAD") is not None


def _sign(where: Elsewhere) -> list[tuple[str, int, int, int]]:
    """Return what differs as soon as the user's git has moved a ref, staged or switched."""
    places = [str(where.git_dir / name) for name in (*_OWN, "index", "logs")]
    places += [str(where.common / name) for name in ("packed-refs", "config", "logs/refs/stash")]
    places += [above for above, _, _ in os.walk(where.common / "refs")]  # refs are replaced, not written
    found: list[tuple[str, int, int, int]] = []
    for place in places:
        with suppress(OSError):  # it is not there
            seen = os.lstat(place)
            found.append((place, seen.st_ino, seen.st_mtime_ns, seen.st_size))
    return found


def _show(stack: Stack, history: History, where: Elsewhere) -> bool:
    """Make it, unless the branch has one or did away with it; returns whether it did."""
    standing = stack.lookup(ROOT)
    if stack.touched(ROOT) is not None or (standing is not None and standing.kind == "dir"):
        return False
    _put(stack, history, _seeds(_with_submodules(where, stack), stack))
    return True


def _follow(
    stack: Stack, history: History, changes: Sequence[Change], every: Sequence[Elsewhere]
) -> list[str]:
    own = {change.path for change in changes if change.path == ROOT or change.path.startswith(f"{ROOT}/")}
    indexes = {f"{each.root}/index" for each in every}
    if not every or own - indexes:
        return []
    seed: dict[str, Side | None] = {**_seeds(every, stack)}
    shown = tuple(f"{each.root}/{name}/" for each in every for name in ("refs", "logs"))
    for path in stack.orig.paths():
        if path.startswith(shown) and path not in seed and _base(stack, path) is not None:
            seed[path] = None
    moved = {path: side for path, side in seed.items() if not same_side(side, _base(stack, path))}
    if own and moved.keys() <= indexes:
        return []  # a staging of its own stays
    if moved:
        moved |= {index: seed.get(index) for index in own}
    if moved:
        _put(stack, history, moved)
    return list(moved)


def _base(stack: Stack, path: str) -> Side | None:
    saved = stack.orig.get(path)
    return stored_side(saved.entry) if saved is not None else None


def _put(stack: Stack, history: History, wanted: Mapping[str, Side | None]) -> None:
    history.shelf.put_layer(wanted)
    for path in wanted:
        set_base_to_view(stack, path)


def _seeds(every: Sequence[Elsewhere], stack: Stack) -> dict[str, Side]:
    """Return what the branch's git directories begin as, by virtual path."""
    found: dict[str, Side] = {}
    for where in every:
        names = _files(where, stack, _names_in(where, every))
        for name, data in chain(((name, None) for name in _DIRECTORIES), names):
            path = f"{where.root}/{name}".rstrip("/")
            above = path if data is None else path.rpartition("/")[0]
            while above and above not in found:
                found[above] = Side("dir", 0o755)
                above = above.rpartition("/")[0]
            if data is not None:
                found[path] = Side("file", 0o644, Content(data))
        if where.place:
            up = "../" * where.place.count("/")
            pointer = f"gitdir: {up}{where.root[1:]}\n"
            found[f"{where.place}/.git"] = Side("file", 0o644, Content(os.fsencode(pointer)))
    return found


def _names_in(where: Elsewhere, every: Sequence[Elsewhere]) -> list[str]:
    """Return the names of the submodules of a repository, not of those that are in one of them."""
    above = f"{where.root}/modules/"
    roots = Tops(each.root for each in every if each.root.startswith(above))
    return [each.root.removeprefix(above) for each in every if roots.over(each.root) == [each.root]]


def _files(where: Elsewhere, stack: Stack, submodules: Sequence[str]) -> Iterator[tuple[str, bytes]]:
    rows = [row for row in repository_values(where.common / "config") if row[0] != "core.worktree"]
    rows += [(f"submodule.{name}.active", "true") for name in submodules]  # outside, their URL says so
    if where.git_dir != where.common:
        rows += repository_values(where.git_dir / "config.worktree")
    with Beneath(where.git_dir) as own, Beneath(where.common) as shared:
        for tree, names in ((own, _OWN), (shared, _SHARED)):
            for name in names:
                data = _read(tree, name)
                if data is not None:
                    yield name, data
        yield from _refs(shared)
        yield from _below(shared, "logs/refs", _MOST_LOGS)
        index = _read(own, "index")
    if index is not None:
        if (where.prefix or stack.ground.hides) and git_program() is not None:
            index = _not_checked_out(where, index, stack.ground.not_shown()) or index
        yield "index", index
    if where.prefix:
        # Files beside the package are not there: as of a sparse checkout, none of them looks deleted.
        up = "/".join([".."] * (where.prefix.count("/") + 2))
        rows += [("core.worktree", up), ("core.sparsecheckout", "true"), ("core.sparsecheckoutcone", "false")]
        yield "info/sparse-checkout", os.fsencode(f"/{_escaped(where.prefix)}/\n")
    if where.place:
        rows.append(("core.worktree", f"{'/'.join(['..'] * where.root.count('/'))}{where.place}"))
    yield "config", config_text(rows).encode("utf-8", "surrogateescape")
    yield "objects/info/alternates", alternate(where.common / "objects")


def _read(tree: Beneath, name: str) -> bytes | None:
    """Return a file of a git directory, through no link: somebody else may have made that directory."""
    side = tree.side(os.fsencode(name))
    content = side.content if side is not None and side.kind == "file" else None
    with suppress(FileNotFoundError, PermissionError):  # gone meanwhile, or not ours to read
        return content.read() if content is not None and content.size <= _MOST_BYTES else None
    return None


def _refs(tree: Beneath) -> Iterator[tuple[str, bytes]]:
    """Yield all refs in one file, as if packed: a repository may have thousands in files of their own."""
    found: dict[bytes, bytes] = {}
    for line in (_read(tree, "packed-refs") or b"").splitlines():
        value, _, name = line.partition(b" ")
        if _ID.fullmatch(value) and not name.startswith(_OURS):
            found[name] = value
    for name, data in _below(tree, "refs", _MOST_FILES):
        if _ID.fullmatch(data.strip()):
            found[os.fsencode(name)] = data.strip()
        else:
            yield name, data  # a symbolic one
    yield "packed-refs", b"".join(value + b" " + name + b"\n" for name, value in sorted(found.items()))


def _below(tree: Beneath, top: str, most: int) -> Iterator[tuple[str, bytes]]:
    """Yield the files below a directory, as far as they are not too many; none of ours."""
    todo, size = [top], _MOST_BYTES
    while todo:
        above = todo.pop()
        try:
            names = sorted(tree.names(os.fsencode(above)), reverse=True)
        except (FileNotFoundError, NotADirectoryError, PermissionError):
            continue  # there are none, or they are not ours to read
        for found in names:
            name = f"{above}/{os.fsdecode(found)}"
            seen = tree.lstat(os.fsencode(name))
            if seen is None or name.endswith(".lock") or f"{name}/".endswith("refs/bowerbird/"):
                continue
            if stat.S_ISDIR(seen.st_mode):
                todo.append(name)
            elif (data := _read(tree, name)) is not None:
                most, size = most - 1, size - len(data)
                if most < 0 or size < 0:
                    return
                yield name, data


def _not_checked_out(where: Elsewhere, index: bytes, hidden: Callable[[str], bool]) -> bytes | None:
    """Return an index in which what is beside the workspace or hidden is marked so; None where nothing is."""
    with tempfile.TemporaryDirectory(prefix="bowerbird-index-") as place:
        copy = Path(place, "index")
        copy.write_bytes(index)
        rows = (row.partition(b"\t") for row in _git(where, copy, "ls-files", "-s", "-z").split(b"\0")[:-1])
        tracked = (
            (name, where.virtual(os.fsdecode(name))) for about, _, name in rows if about.endswith(b" 0")
        )
        apart = [name for name, path in tracked if path is None or hidden(path)]
        if not apart:
            return None
        given = b"".join(name + b"\0" for name in apart)
        _git(where, copy, "update-index", "-z", "--skip-worktree", "--stdin", given=given)
        return copy.read_bytes()


def _git(where: Elsewhere, index: Path, *words: str, given: bytes = b"") -> bytes:
    """Run git on a copy of an index of the user's."""
    git = Git(where.git_dir, where.work_tree, _LOOK_S, index)
    try:
        return git.run("-c", "core.splitIndex=false", *words, stdin=given)
    except GitFailed as error:
        raise GitFailed(f"the index of {where.work_tree} cannot be shown to commands: {error}") from error


def _escaped(name: str) -> str:
    """Return a path as a pattern that means it alone."""
    return "".join(f"\\{each}" if each in "\\*?[" else each for each in name)
