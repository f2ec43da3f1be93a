"""Bytes too large for a record, in files named by their hash (SE-9, MO-6).

Here: storing and reading them, atomically and flushed. Not here: which bytes go there.
"""

import errno
import hashlib
import os
import re
import time
from pathlib import Path

from bowerbird.core.errors import StorageFull, StoreError
from bowerbird.core.ids import ulid
from bowerbird.core.threads import to_thread

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT)
_ASIDE = ".aside-"
_NAME = re.compile(r"(?:sha256:)?([0-9a-f]{64})")


class Blobs:
    """Content-addressed files under one directory; safe to share between processes.

    Args:
        directory: `data/blobs`; made on first use, mode 0700.

    Example:
        >>> import tempfile
        >>> blobs = Blobs(Path(tempfile.mkdtemp()))
        >>> blobs.get(blobs.put(b"bytes"))
        b'bytes'
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def put(self, content: bytes) -> str:
        """Store `content` durably and return `sha256:…`; the same bytes are stored once.

        Raises:
            StorageFull: the disk is full; nothing was stored. StoreError: it cannot be written.
        """
        digest = hashlib.sha256(content).hexdigest()
        target = self._directory / digest
        temporary = self._directory / f".{ulid()}"
        try:
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            try:
                os.utime(target)  # stored again: who looks for unused ones finds that it is wanted
            except FileNotFoundError:
                _write_flushed(temporary, content)
                temporary.rename(target)
            _flush_directory(self._directory)  # also for a file that another process has just renamed
        except OSError as error:
            temporary.unlink(missing_ok=True)
            kind = StorageFull if error.errno in _NO_ROOM else StoreError
            raise kind(f"blob {digest[:12]}… was not stored: {error.strerror}") from error
        return f"sha256:{digest}"

    def remove_leftovers(self, older_than_s: float = 3600.0) -> int:
        """Remove temporary files of writes that were killed; returns how many."""
        removed = 0
        for aside in self._directory.glob(f"{_ASIDE}*"):  # killed over a removal: perhaps it was wanted
            aside.rename(self._directory / aside.name.removeprefix(_ASIDE))
        for path in self._directory.glob(".*"):
            try:
                if time.time() - path.stat().st_mtime > older_than_s:
                    path.unlink()
                    removed += 1
            except OSError:
                continue  # its writer lives, or another process removed it
        return removed

    def has(self, name: str) -> bool:
        """Whether a blob of this bare hash is stored."""
        try:
            (self._directory / name).stat()
        except FileNotFoundError:
            return False
        return True

    def record_text(self, name: str) -> str:
        """Return the text of a stored record (JSON), "" for other bytes and for what is not there."""
        try:
            with (self._directory / name).open("rb") as file:
                return file.read().decode("utf-8", "replace") if file.read(1) == b"{" else ""
        except FileNotFoundError:
            return ""

    def remove(self, name: str, stored_before_s: float) -> bool:
        """Remove a blob that nothing names; one that was stored again since a time stays.

        It is put aside first: who stores the same bytes at this moment finds it whole, or none.
        """
        target, aside = self._directory / name, self._directory / f"{_ASIDE}{name}"
        try:
            if target.stat().st_mtime >= stored_before_s:
                return False
            target.rename(aside)
        except FileNotFoundError:
            return False
        if aside.stat().st_mtime >= stored_before_s:
            aside.rename(target)
            return False
        aside.unlink()
        return True

    async def keep(self, content: bytes, media_type: str) -> str:
        """Do `put` in a thread, as tools store images; `media_type` is the message's to keep."""
        return await to_thread(self.put, content)

    def get(self, name: str) -> bytes:
        """Return the bytes of a blob.

        Args:
            name: `sha256:…` or the bare hash.

        Raises:
            StoreError: there is no such blob, or its bytes no longer match its name.
        """
        found = _NAME.fullmatch(name)
        if found is None:
            raise StoreError(f"{name!r} is not the name of a blob (sha256: and 64 hex digits)")
        try:
            content = (self._directory / found[1]).read_bytes()
        except OSError as error:
            raise StoreError(f"blob {found[1][:12]}… cannot be read: {error.strerror}") from error
        if hashlib.sha256(content).hexdigest() != found[1]:
            raise StoreError(f"blob {found[1][:12]}… is damaged: its bytes do not match its name")
        return content


def _write_flushed(path: Path, content: bytes) -> None:
    descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _flush_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
