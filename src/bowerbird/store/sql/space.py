"""Room on the disk: refuse new work while little is left, keep a reserve to finish old (SE-61).

Here: asking the filesystem and the 16 MiB reserve file. Not here: who is refused.
"""

import os
from pathlib import Path

from bowerbird.core.errors import DataGone, StoreCorrupt, StoreError

RESERVE_BYTES = 16 << 20


class DiskSpace:
    """The free space under the data directory; owned by the store.

    Args:
        directory: where database and blobs live.
        min_free_bytes: below this, `is_low` (setting `store.min_free_mb`).

    Example:
        >>> import tempfile
        >>> DiskSpace(Path(tempfile.gettempdir()), min_free_bytes=0).is_low()
        False
    """

    def __init__(self, directory: Path, min_free_bytes: int) -> None:
        self._directory = directory
        self._min_free_bytes = min_free_bytes
        self._reserve = directory / f"reserve.{os.getpid()}"
        status = directory.stat()
        self._identity = (status.st_dev, status.st_ino)

    def free_bytes(self) -> int:
        """Bytes an ordinary process may still write here.

        Raises:
            DataGone: somebody deleted or unmounted the directory, or another stands in its place: what still
                writes into a deleted one makes it again, with nothing of it inside.
        """
        try:
            found, status = self._directory.stat(), os.statvfs(self._directory)
        except (FileNotFoundError, NotADirectoryError) as error:
            raise self._gone() from error
        if (found.st_dev, found.st_ino) != self._identity:
            raise self._gone()
        return status.f_bavail * status.f_frsize

    def is_gone(self) -> bool:
        """Whether the directory was deleted, unmounted or replaced."""
        try:
            self.free_bytes()
        except DataGone:
            return True
        except OSError:
            return False
        return False

    def blame(self, error: StoreError) -> None:
        """Raise DataGone when that is why the database failed with `error`, which need not say so."""
        if type(error) not in (StoreError, StoreCorrupt):
            return
        if self.is_gone():
            raise self._gone() from error

    def _gone(self) -> DataGone:
        return DataGone(f"the data directory {self._directory} is gone; bring it back and restart the server")

    def is_low(self) -> bool:
        """Whether less than the minimum is free; takes the reserve again when it is not."""
        low = self.free_bytes() < self._min_free_bytes
        if not low and not self._reserve.exists():
            self.take_reserve()
        return low

    def take_reserve(self) -> None:
        """Set 16 MiB aside, unless the disk is short already."""
        self._remove_dead_reserves()
        if self.free_bytes() < self._min_free_bytes + RESERVE_BYTES:
            return
        descriptor = os.open(self._reserve, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        try:
            os.posix_fallocate(descriptor, 0, RESERVE_BYTES)
        except OSError:  # the filesystem cannot promise space: there is no reserve then
            self._reserve.unlink(missing_ok=True)
        finally:
            os.close(descriptor)

    def free_reserve(self) -> None:
        """Give the reserve back, so that the last commits of running turns fit."""
        self._reserve.unlink(missing_ok=True)

    def _remove_dead_reserves(self) -> None:
        for left in self._directory.glob("reserve.*"):
            pid = left.suffix[1:]
            if pid.isdigit() and not Path(f"/proc/{pid}").exists():
                left.unlink(missing_ok=True)
