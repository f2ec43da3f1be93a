"""How much one branch may hold (WS-61).

Here: the limits and the account of changed paths and bytes. Not here: limits of reading.
"""

from collections.abc import Callable

import msgspec

from bowerbird.core.errors import InvalidArgument, LimitExceeded

MIB = 1024 * 1024


class WorkspaceLimits(msgspec.Struct, frozen=True):
    """Settings under `workspace.`; sizes in MiB where the name says so, else bytes or counts.

    Attributes:
        write_mb: of one `write_file`. edit_mb: of a file that `edit_file` takes.
        changed_bytes, changed_paths: of all changes of one branch.
        depth: components of a path that is written.
    """

    write_mb: int = 32
    edit_mb: int = 16
    changed_bytes: int = 4 * 1024 * MIB
    changed_paths: int = 200_000
    depth: int = 256

    def __post_init__(self) -> None:
        for name in ("write_mb", "edit_mb", "changed_bytes", "changed_paths", "depth"):
            if getattr(self, name) <= 0:
                raise InvalidArgument(f"workspace.{name} is {getattr(self, name)}; it must be positive")

    def check_write(self, size: int, path: str) -> None:
        """Raise LimitExceeded for a write of `size` bytes over `workspace.write_mb`."""
        if size > self.write_mb * MIB:
            raise LimitExceeded(f"{size} bytes are more than workspace.write_mb = {self.write_mb}", path)

    def check_edit(self, size: int, path: str) -> None:
        """Raise LimitExceeded for editing a file of `size` bytes over `workspace.edit_mb`."""
        if size > self.edit_mb * MIB:
            raise LimitExceeded(
                f"{path[1:]} has {size} bytes, more than workspace.edit_mb = {self.edit_mb}; "
                "use bash (sed, awk) or a script for files of this size",
                path,
            )

    def check_depth(self, path: str) -> None:
        """Raise LimitExceeded for a path deeper than `workspace.depth`."""
        if path.count("/") > self.depth:
            raise LimitExceeded(f"the path is deeper than workspace.depth = {self.depth}", path)


class ChangeAccount:
    """Changed paths and bytes of a branch, counted up; counted anew before anything is refused.

    Args:
        count: counts the branch's changes exactly: (paths, bytes). Cost grows with them.
    """

    def __init__(self, limits: WorkspaceLimits, count: Callable[[], tuple[int, int]]) -> None:
        self._limits = limits
        self._count = count
        self._most: tuple[int, int] | None = None  # never less than the truth

    def charge(self, paths: int, size: int, path: str) -> None:
        """Account for a change about to be made; raises LimitExceeded."""
        if self._most is None:
            self._most = self._count()
        after = (self._most[0] + paths, self._most[1] + size)
        if self._over(after) is not None:
            present = self._count()
            after = (present[0] + paths, present[1] + size)
            over = self._over(after)
            if over is not None:
                self._most = present
                raise LimitExceeded(f"this would be over {over}; land or discard changes first", path)
        self._most = after

    def forget(self) -> None:
        """Count anew at the next change (a rollback or a process changed much)."""
        self._most = None

    def _over(self, after: tuple[int, int]) -> str | None:
        if after[0] > self._limits.changed_paths:
            return f"workspace.changed_paths = {self._limits.changed_paths}"
        if after[1] > self._limits.changed_bytes:
            return f"workspace.changed_bytes = {self._limits.changed_bytes}"
        return None
