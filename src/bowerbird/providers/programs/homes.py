"""Private homes of programs: one per provider session, kept in the data directory with mode 0700 (PR-15).

For a run a home is moved, not copied, into the home that the branch's commands see, and back afterwards: so a
session can go on upon another branch, and other commands of that branch do not see it later. A record says
where it is meanwhile; after a crash the next start takes it back. Here: that. Not here: what lies in a home;
nothing is ever read or written below one from outside, since links of the program's would lead anywhere.
"""

import contextlib
import hashlib
import json
import os
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bowerbird.core.ids import new_id

KEPT_DAYS = 30
_DAY_S = 86_400


@dataclass(frozen=True, slots=True)
class Lent:
    """A home in use.

    Attributes:
        kept: where it lies otherwise; None = it goes with the run. place: where it is now.
        record: the file that says so. run: the id that marks the run's processes.
    """

    run: str
    kept: Path | None
    place: Path
    record: Path


class Homes:
    """All homes of one data directory. Its calls block."""

    def __init__(self, data_dir: Path) -> None:
        self._homes = data_dir / "agent_homes"
        self._records = data_dir / "agent_runs"

    def has(self, agent: str, session: str) -> bool:
        """Whether a session of an agent left a home."""
        return (self._homes / _name(agent, session)).is_dir()

    def lend(self, agent: str, session: str | None, branch_home: Path, logins: Sequence[Path] = ()) -> Lent:
        """Put a session's home, or a new one, into the home of a branch's commands.

        Args:
            session: whose it is; None = of this run only.
            branch_home: what those commands have as home.
            logins: files of the user's own home to copy into a new one, by their path below it.
        """
        run = new_id("run")
        kept = None if session is None else self._homes / _name(agent, session)
        # By the session, not by the run: some programs remember where their own files are.
        place = branch_home / f".agent-{run if kept is None else kept.name[:16]}"
        for directory in (self._homes, self._records):
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        record = self._records / f"{run}.json"
        record.write_text(json.dumps({"kept": kept and kept.name, "place": str(place), "pid": os.getpid()}))
        if os.path.lexists(place):
            _remove(place)  # of a run that died in another process; what it kept is older, but whole
        if kept is not None and kept.is_dir() and not kept.is_symlink():
            kept.rename(place)
        else:
            place.mkdir(mode=0o700)
            for each in logins:
                _copy_login(each, place)
        return Lent(run, kept, place, record)

    def take_back(self, lent: Lent) -> None:
        """Take a home back, or remove it; no process of the run is left."""
        _take_back(lent.place, lent.kept)
        lent.record.unlink(missing_ok=True)

    def left_over(self) -> list[str]:
        """Take back what runs that died left lent; return the ids of these runs."""
        found: list[str] = []
        for record in sorted(self._records.glob("*.json")) if self._records.is_dir() else []:
            try:
                told = json.loads(record.read_text())
                place, kept, pid = Path(told["place"]), told["kept"], int(told["pid"])
            except (OSError, ValueError, KeyError, TypeError):
                record.unlink(missing_ok=True)
                continue
            if pid != os.getpid() and _lives(pid):
                continue  # another server's, or a command's, that still runs
            with contextlib.suppress(OSError):
                _take_back(place, None if kept is None else self._homes / kept)
                record.unlink(missing_ok=True)
            found.append(record.stem)
        return found

    def forget_old(self, days: float = KEPT_DAYS) -> None:
        """Remove homes that no run used for so long."""
        before = time.time() - days * _DAY_S
        for home in self._homes.iterdir() if self._homes.is_dir() else ():
            with contextlib.suppress(OSError):
                if home.lstat().st_mtime < before:
                    _remove(home)


def _take_back(place: Path, kept: Path | None) -> None:
    if place.is_symlink() or not place.is_dir():
        place.unlink(missing_ok=True)  # the program put something else there
    elif kept is None:
        _remove(place)
    else:
        if kept.exists():
            _remove(kept)
        os.utime(place)
        place.rename(kept)
        kept.chmod(0o700)


def _remove(home: Path) -> None:
    if home.is_symlink() or not home.is_dir():
        home.unlink(missing_ok=True)
    else:
        shutil.rmtree(home, ignore_errors=True)


def _copy_login(source: Path, home: Path) -> None:
    """Copy one login file to the same place below `home`, which is new and nobody else's yet."""
    if not source.is_file():
        return
    target = home / source.relative_to(Path.home())
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    shutil.copyfile(source, target)
    target.chmod(0o600)


def _name(agent: str, session: str) -> str:
    """Return a file name for a session; its id is a key, not a name (PR-33)."""
    return hashlib.sha256(f"{agent}\0{session}".encode()).hexdigest()[:32]


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
