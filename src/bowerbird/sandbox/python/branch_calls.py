"""What a snippet does with files, done on its branch (SB-46).

Here: `open` and `pathlib` calls answered by the branch's own file tools, so links, `hide`,
limits and the journal hold as for every tool; buffering of appended text. Not here: the
interpreter, permission.
"""

import errno
import os
import posixpath
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

from bowerbird.core.errors import (
    Exists,
    IsDirectory,
    LimitExceeded,
    NotDirectory,
    NotEmpty,
    NotFound,
    WorkspaceError,
)
from bowerbird.sandbox.python.run import NoSuchCall
from bowerbird.sandbox.python.steps import FileStat, OpenedFile, Scanned

if TYPE_CHECKING:
    from bowerbird.workspace import Branch

MAX_READ_BYTES = 64 * 1024 * 1024
MAX_SCAN = 100_000
_BUFFER_BYTES = 1024 * 1024
_LIST_PAGE = 10_000
_ERRNO = {
    NotFound: errno.ENOENT, IsDirectory: errno.EISDIR, NotDirectory: errno.ENOTDIR, Exists: errno.EEXIST,
    NotEmpty: errno.ENOTEMPTY, LimitExceeded: errno.EFBIG,
}  # fmt: skip


class BranchCalls:
    """`FileCalls` of one run on one branch.

    Args:
        branch: Bound to the call, so that changes are recorded under it.
        written: Told of every path the snippet changed.

    Text appended piece by piece, as `file.write` in a loop does, is gathered and written
    when it exceeds 1 MiB, when anything else is asked, or by `flush`.
    """

    def __init__(self, branch: "Branch", written: Callable[[str], None] | None = None) -> None:
        self._branch = branch
        self._told = written
        self._pending_path = ""
        self._pending = bytearray()
        self._base: bytes | None = None  # content before what is pending, None = not read yet
        self._calls: dict[str, Callable[..., Awaitable[object]]] = {
            "open": self._open,
            "Path.exists": self._exists,
            "Path.is_file": self._is_file,
            "Path.is_dir": self._is_dir,
            "Path.is_symlink": self._is_symlink,
            "Path.read_text": self._read_text,
            "Path.read_bytes": self._read_bytes,
            "Path.write_text": self._write,
            "Path.write_bytes": self._write,
            "Path.append_text": self._append,
            "Path.append_bytes": self._append,
            "Path.mkdir": self._mkdir,
            "Path.unlink": self._unlink,
            "Path.rmdir": self._rmdir,
            "Path.iterdir": self._iterdir,
            "Path.scan": self._scan,
            "Path.stat": self._stat,
            "Path.rename": self._rename,
            "Path.resolve": self._absolute,
            "Path.absolute": self._absolute,
        }

    async def call(self, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> object:
        """Return the result of one call; raises OSError as Python would, or NoSuchCall."""
        answer = self._calls.get(name)
        if answer is None:
            raise NoSuchCall(name)
        paths = [_path(a) if n == 0 or name == "Path.rename" else a for n, a in enumerate(args)]
        if not name.startswith("Path.append") or paths[0] != self._pending_path:
            await self.flush()
        try:
            return await answer(*paths, **kwargs)
        except WorkspaceError as error:
            raise _as_os_error(error, paths[0]) from error

    async def flush(self) -> None:
        """Write what was gathered; raises OSError when the branch refuses it."""
        if not self._pending_path:
            return
        path, data, base = self._pending_path, bytes(self._pending), self._base
        self._pending_path, self._base = "", None
        self._pending.clear()
        try:
            if base is None:
                base = await self._content(path) if await self._look(path) else b""
            await self._put(path, base + data)
        except WorkspaceError as error:
            raise _as_os_error(error, path) from error

    async def _open(self, path: str, mode: str = "r", *_rest: object) -> OpenedFile:
        found = await self._look(path)
        if found is not None and found.is_dir:
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        if "r" in mode and found is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        if "w" in mode or ("a" in mode and found is None):
            await self._need_parent(path)
            await self._put(path, b"")
            self._pending_path, self._base = path, b""
        return OpenedFile(path, mode)

    async def _append(self, path: str, data: str | bytes) -> int:
        raw = data.encode("utf-8") if isinstance(data, str) else data
        if self._pending_path != path:
            self._pending_path, self._base = path, None
        self._pending += raw
        if len(self._pending) > _BUFFER_BYTES:
            await self.flush()
        return len(data)

    async def _write(self, path: str, data: str | bytes) -> int:
        await self._need_parent(path)
        await self._put(path, data.encode("utf-8") if isinstance(data, str) else data)
        return len(data)

    async def _read_bytes(self, path: str) -> bytes:
        return await self._content(path)

    async def _read_text(self, path: str) -> str:
        text = (await self._content(path)).decode("utf-8")
        # Text mode reads every line end as \n, as open() does.
        return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text

    async def _exists(self, path: str) -> bool:
        return await self._look(path) is not None

    async def _is_file(self, path: str) -> bool:
        found = await self._look(path)
        return found is not None and not found.is_dir

    async def _is_dir(self, path: str) -> bool:
        found = await self._look(path)
        return found is not None and found.is_dir

    async def _is_symlink(self, path: str) -> bool:
        return await self._kind(path, follow=False) == "symlink"

    async def _stat(self, path: str) -> FileStat:
        found = await self._look(path)
        if found is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return found

    async def _mkdir(self, path: str, parents: bool = False, exist_ok: bool = False) -> None:
        if not parents:
            await self._need_parent(path)
        await self._branch.mkdir(path, parents, exist_ok)
        self._written(path)

    async def _unlink(self, path: str) -> None:
        if await self._kind(path, follow=False) == "dir":
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        await self._branch.delete(path)
        self._written(path)

    async def _rmdir(self, path: str) -> None:
        if await self._kind(path, follow=False) not in ("dir", None):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
        await self._branch.delete(path)
        self._written(path)

    async def _rename(self, path: str, target: str) -> None:
        await self._branch.move(path, target, True)
        self._written(path)
        self._written(target)

    async def _absolute(self, path: str) -> str:
        return path

    async def _iterdir(self, path: str) -> list[str]:
        return [posixpath.join(path, name) for name, _ in await self._entries(path)]

    async def _scan(
        self, path: str, max_depth: int | None = None, follow_symlinks: bool = False, **_hints: object
    ) -> list[Scanned]:
        top = await self._stat(path)
        found = [Scanned("", top.is_dir, not top.is_dir, await self._is_symlink(path))]
        todo = [(path, "", 0)] if top.is_dir else []
        limit = 64 if max_depth is None and follow_symlinks else max_depth
        while todo:
            directory, below, depth = todo.pop()
            if limit is not None and depth >= limit:
                continue
            for name, kind in await self._entries(directory):
                if len(found) >= MAX_SCAN:
                    raise OSError(errno.EOVERFLOW, f"more than {MAX_SCAN:,} entries", path)
                relative, full = posixpath.join(below, name), posixpath.join(directory, name)
                linked = kind == "symlink"
                real = await self._kind(full, follow=True) if linked else kind
                found.append(Scanned(relative, real == "dir", real == "file", linked))
                if real == "dir" and (follow_symlinks or not linked):
                    todo.append((full, relative, depth + 1))
        return found

    async def _entries(self, path: str) -> list[tuple[str, str]]:
        found: list[tuple[str, str]] = []
        while True:
            record = await self._branch.ls(path, len(found) + 1, _LIST_PAGE)
            found += [(entry["name"], entry["type"]) for entry in record["entries"]]
            if not record["truncated"] or len(found) > MAX_SCAN:
                return found

    async def _content(self, path: str) -> bytes:
        data = await self._branch.read_bytes(path, 0, MAX_READ_BYTES + 1)
        if len(data) > MAX_READ_BYTES:
            raise MemoryError(f"{path} is over {MAX_READ_BYTES // 1024 // 1024} MiB; read it in another way")
        return data

    async def _put(self, path: str, data: bytes) -> None:
        await self._branch.write_file(path, data)
        self._written(path)

    def _written(self, path: str) -> None:
        if self._told is not None:
            self._told(path)

    async def _need_parent(self, path: str) -> None:
        """The branch makes missing directories; Python's own calls do not, and code relies on that."""
        parent = posixpath.dirname(path)
        if not await self._is_dir(parent):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)

    async def _look(self, path: str) -> FileStat | None:
        found = await self._facts(path, follow=True)
        if found is None:
            return None
        return FileStat(found["type"] == "dir", found["size"], found["mode"], found["mtime_ns"] / 1e9)

    async def _kind(self, path: str, *, follow: bool) -> str | None:
        found = await self._facts(path, follow=follow)
        return found["type"] if found is not None else None

    async def _facts(self, path: str, *, follow: bool) -> dict[str, Any] | None:
        try:
            return await self._branch.stat(path, follow=follow)
        except (NotFound, NotDirectory):
            return None  # something on the way is missing, or no directory


def _path(value: object) -> str:
    text = value.path if isinstance(value, OpenedFile) else str(value)
    return posixpath.normpath("/" + text.lstrip("/"))


def _as_os_error(error: WorkspaceError, path: str) -> OSError:
    for kind, number in _ERRNO.items():
        if isinstance(error, kind):
            text = os.strerror(number) if kind is not LimitExceeded else str(error)
            return OSError(number, text, path)
    return PermissionError(errno.EACCES, str(error), path)
