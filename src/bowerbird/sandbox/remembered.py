"""What the last probe found, kept for the next process: most of them run one turn, many no command at all.

Valid only for the same boot, program, user, file system, bubblewrap and settings; a start that fails ends it
at once. Here: that record. Not here: probing (`probe`), who may use it (a server probes itself).
"""

import contextlib
import hashlib
import os
import sys
from pathlib import Path

import msgspec

from bowerbird.core.atomic import replace_file
from bowerbird.core.forms import decode
from bowerbird.sandbox.probe import Bubblewrap
from bowerbird.sandbox.run.status import SandboxStatus
from bowerbird.sandbox.run.warden import PACKAGE
from bowerbird.sandbox.settings import SandboxSettings

_BOOT = Path("/proc/sys/kernel/random/boot_id")


class _Row(msgspec.Struct):
    key: str
    status: SandboxStatus


class Remembered:
    """The record below a data directory. All calls block for less than a millisecond."""

    def __init__(self, data_dir: Path, settings: SandboxSettings) -> None:
        self._data_dir = data_dir
        self._file = data_dir / "sandbox" / "status.json"
        self._settings = settings

    def load(self, bwrap: Bubblewrap) -> SandboxStatus | None:
        """Return what was found, None when nothing is kept that still holds."""
        try:
            row = decode(self._file.read_bytes(), _Row)
            return row.status if row.key == self._key(bwrap) else None
        except (OSError, msgspec.DecodeError):
            return None  # never kept, or not whole: it is found out anew

    def save(self, status: SandboxStatus, bwrap: Bubblewrap) -> None:
        """Keep it; a data directory that takes no more keeps nothing."""
        with contextlib.suppress(OSError):
            replace_file(self._file, msgspec.json.encode(_Row(self._key(bwrap), status)))

    def forget(self) -> None:
        """The next process finds out anew."""
        self._file.unlink(missing_ok=True)

    def _key(self, bwrap: Bubblewrap) -> str:
        place, code = self._data_dir.stat(), (PACKAGE / "probe.py").stat()
        program = Path(bwrap.path).stat() if bwrap.path else None
        facts = (
            _BOOT.read_text().strip(), os.uname().release, str(Path("/proc/self/ns/user").readlink()),
            os.getuid(), os.getgid(), os.environ.get("HOME"), sys.executable, str(PACKAGE), code.st_mtime_ns,
            str(self._data_dir.resolve()), place.st_dev, place.st_ino, bwrap.reason, bwrap.path,
            program and (program.st_ino, program.st_mtime_ns, program.st_mode), repr(self._settings),
        )  # fmt: skip
        return hashlib.sha256(repr(facts).encode("utf-8", "surrogateescape")).hexdigest()
