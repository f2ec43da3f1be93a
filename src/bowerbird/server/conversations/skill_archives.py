"""Skills as zip files (AS-47): what is in one is checked before anything is written, and installed whole.

Here: reading an archive within its limits, putting it in place. Not here: who may write (`routes/`), skills
as single texts (`skill_files.py`).
"""

import contextlib
import io
import os
import secrets
import shutil
import stat
import struct
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from bowerbird.core.errors import Exists
from bowerbird.server.common.errors import invalid, problem
from bowerbird.server.conversations.skill_files import FILE
from bowerbird.skills.skill import Skill, SkillProblem, parse_skill
from bowerbird.workspace.filled_beside import give_name

ARCHIVE_BYTES = 5 << 20
MOST_ENTRIES = 500
UNPACKED_BYTES = 20 << 20
_CHUNK = 1 << 16
_PLACE = ("body", "files")
_BROKEN = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    NotImplementedError,
    RuntimeError,
    EOFError,
    ValueError,
    IndexError,
)
"""What Python's reader raises for archives that are none."""


@dataclass(frozen=True, slots=True)
class _Entry:
    info: zipfile.ZipInfo
    path: PurePosixPath


def install_archive(root: Path, archive: Path, *, overwrite: bool) -> Skill:
    """Install the one skill of a zip file; whole or not at all. Blocks.

    The files lie at the top, then the name is that of SKILL.md, or in one directory of that name.

    Raises:
        Problem: 413 over a limit, 422 naming the entry that cannot be, 409 where there is such a skill and
            `overwrite` is not given.
    """
    if archive.stat().st_size > ARCHIVE_BYTES:
        raise problem("too_large", f"the archive is larger than {ARCHIVE_BYTES} bytes")
    root.mkdir(parents=True, exist_ok=True)
    fresh = root / f".upload.{secrets.token_hex(4)}"
    fresh.mkdir()
    try:
        # In memory: a broken archive's offsets lead outside of it, which no file system answers well.
        with zipfile.ZipFile(io.BytesIO(archive.read_bytes())) as opened:
            entries = _checked(opened.infolist())
            _unpack(opened, entries, fresh)
        return _put(root, fresh, _skill_of(fresh, entries), overwrite=overwrite)
    except _BROKEN as error:
        raise invalid(_PLACE, f"the archive cannot be read: {str(error)[:200]}") from None
    finally:
        with contextlib.suppress(FileNotFoundError):
            shutil.rmtree(fresh)


def _checked(infos: Sequence[zipfile.ZipInfo]) -> list[_Entry]:
    """Return the files, their common directory taken off; directories are made as they are needed."""
    if len(infos) > MOST_ENTRIES:
        raise invalid(_PLACE, f"the archive has {len(infos):,} entries; at most {MOST_ENTRIES}")
    if sum(info.file_size for info in infos) > UNPACKED_BYTES:
        raise invalid(_PLACE, f"the archive unpacks to more than {UNPACKED_BYTES} bytes")
    files = [_Entry(info, _path_of(info)) for info in infos if not info.is_dir()]
    tops = {entry.path.parts[0] for entry in files}
    if len(tops) == 1 and all(len(entry.path.parts) > 1 for entry in files):
        files = [_Entry(entry.info, entry.path.relative_to(entry.path.parts[0])) for entry in files]
    seen: set[str] = set()
    for entry in files:
        if (folded := str(entry.path).casefold()) in seen:
            raise invalid(_PLACE, f"two entries are called {entry.info.filename!r}")
        seen.add(folded)
    if FILE.casefold() not in seen:
        raise invalid(_PLACE, f"the archive has no {FILE} at its top or in its only directory")
    return files


def _path_of(info: zipfile.ZipInfo) -> PurePosixPath:
    """Return where an entry goes; raises Problem 422 for all that is no plain file below here."""
    name, mode = info.orig_filename, info.external_attr >> 16
    shown = repr(name[:200])
    parts = name.split("/")
    if name.startswith("/") or "\\" in name or "\0" in name or any(part in ("", ".", "..") for part in parts):
        raise invalid(_PLACE, f"the entry {shown} has a path that leads elsewhere")
    if not all(part.isprintable() and len(part.encode()) <= 255 for part in parts) or len(parts) > 16:
        raise invalid(_PLACE, f"the entry {shown} has a name that no file can have here")
    if mode and stat.S_IFMT(mode) not in (0, stat.S_IFREG):
        raise invalid(_PLACE, f"the entry {shown} is a link or a special file")
    if info.flag_bits & 1 or info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise invalid(_PLACE, f"the entry {shown} is encrypted, or packed in an unusual way")
    return PurePosixPath(*parts)


def _unpack(opened: zipfile.ZipFile, entries: Sequence[_Entry], fresh: Path) -> None:
    left = UNPACKED_BYTES  # what entries say of their size is not believed
    for entry in entries:
        target = fresh / entry.path
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            with opened.open(entry.info) as source, target.open("xb") as file:
                while chunk := source.read(_CHUNK):
                    left -= len(chunk)
                    if left < 0:
                        raise invalid(_PLACE, f"the archive unpacks to more than {UNPACKED_BYTES} bytes")
                    file.write(chunk)
                file.flush()
                os.fsync(file.fileno())
        except (FileExistsError, NotADirectoryError):
            raise invalid(_PLACE, f"the entry {entry.info.filename!r} is a file and a directory") from None


def _skill_of(fresh: Path, entries: Sequence[_Entry]) -> Skill:
    named = next(entry.path for entry in entries if str(entry.path).casefold() == FILE.casefold())
    if str(named) != FILE:
        raise invalid(_PLACE, f"the entry {named} must be called {FILE}")
    data = (fresh / FILE).read_bytes()
    try:
        return parse_skill(data, None)
    except SkillProblem as error:
        raise invalid(_PLACE, f"{FILE}: {error}") from None


def _put(root: Path, fresh: Path, skill: Skill, *, overwrite: bool) -> Skill:
    directory = root / skill.name
    if directory.is_symlink():
        raise problem("conflict", f"{skill.name} is a link; it is not written through")
    if directory.exists() and not overwrite:
        raise problem("conflict", f"there is a skill {skill.name} already; use ?overwrite=true")
    try:
        give_name(fresh, directory, replaces=directory.exists())  # the earlier one goes with `fresh`
    except Exists:
        raise problem("conflict", f"there is a skill {skill.name} already; use ?overwrite=true") from None
    return skill
