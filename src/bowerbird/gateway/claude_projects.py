"""What Claude Code keeps of its projects and conversations, as lists (AS-59).

Here: reading those files, bounded; a bad one is passed over. Blocks. Not here: running it (`claude_code.py`).
"""

import contextlib
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import msgspec

from bowerbird.core.forms import decode

MOST_PROJECTS = 2_000
MOST_FILES = 2_000  # of one project
HEAD_BYTES = 256 * 1024  # of a conversation, for its first words
COUNT_BYTES = 8 << 20  # of a conversation, for its length
TITLE_CHARS = 120
MEMORY_BYTES = 32 * 1024
MEMORY = "CLAUDE.md"
_NOT_SAID = ("<command-", "<local-", "Caveat:")


@dataclass(frozen=True, slots=True)
class Project:
    """One project: its directory below `projects_dir`, the user's own, and when it was used last."""

    name: str
    path: str
    mtime: float

    @property
    def label(self) -> str:
        """What people call it."""
        return self.path.rstrip("/").rpartition("/")[2] or self.name


@dataclass(frozen=True, slots=True)
class Talk:
    """One conversation; `count` of its lines, `branch` of git."""

    session_id: str
    title: str
    mtime: float
    count: int
    branch: str = ""


def projects(directory: Path) -> list[Project]:
    """Return the projects that have conversations, newest first."""
    found: list[Project] = []
    for entry in _entries(directory, MOST_PROJECTS):
        files = _files(directory / entry)
        if files:
            newest, mtime = files[0]
            path = next((_where(head) for head in _heads(newest) if _where(head)), "")
            found.append(Project(entry, path or entry, mtime))
    return sorted(found, key=lambda project: -project.mtime)


def talks(directory: Path, project: str, begin: int, count: int) -> tuple[list[Talk], int]:
    """Return a page of a project's conversations, newest first, and how many there are."""
    if not _is_name(project):
        return [], 0
    files = _files(directory / project)
    found: list[Talk] = []
    for path, mtime in files[begin : begin + count]:
        heads = list(_heads(path))
        title = next((said for head in heads if (said := _said(head))), "")
        branch = next((str(head["gitBranch"]) for head in heads if head.get("gitBranch")), "")
        found.append(Talk(path.stem, title or "(nothing was said)", mtime, _lines(path), branch[:40]))
    return found, len(files)


def by_prefix(directory: Path, project: str, prefix: str) -> list[str]:
    """Return the ids of a project's conversations that begin so."""
    if not _is_name(project) or not prefix:
        return []
    return [path.stem for path, _ in _files(directory / project) if path.stem.startswith(prefix)]


def has_talk(directory: Path, project: str, session_id: str) -> bool:
    """Whether a conversation is there."""
    if not _is_name(project) or not _is_name(session_id):
        return False
    try:
        return (directory / project / f"{session_id}.jsonl").is_file()
    except OSError:
        return False


def memory_of(path: str) -> str:
    """Return the beginning of a project's CLAUDE.md, "" where there is none that can be read here."""
    return _read(Path(path) / MEMORY, MEMORY_BYTES).decode("utf-8", "replace").strip()


def _entries(directory: Path, most: int) -> list[str]:
    found: list[str] = []
    with contextlib.suppress(OSError), os.scandir(directory) as entries:
        for entry in entries:
            if len(found) >= most:
                break
            with contextlib.suppress(OSError):
                if entry.is_dir():
                    found.append(entry.name)
    return found


def _files(directory: Path) -> list[tuple[Path, float]]:
    """Return the conversations of a directory, newest first."""
    found: list[tuple[Path, float]] = []
    with contextlib.suppress(OSError), os.scandir(directory) as entries:
        for entry in entries:
            if len(found) >= MOST_FILES:
                break
            with contextlib.suppress(OSError):
                if entry.name.endswith(".jsonl") and entry.is_file():
                    found.append((directory / entry.name, entry.stat().st_mtime))
    return sorted(found, key=lambda one: -one[1])


def _heads(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the first lines of a conversation that are objects."""
    for line in _read(path, HEAD_BYTES).split(b"\n")[:500]:
        with contextlib.suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            yield decode(line, dict[str, Any])


def _where(head: dict[str, Any]) -> str:
    said = head.get("cwd")
    return said if isinstance(said, str) and said.startswith("/") else ""


def _said(head: dict[str, Any]) -> str:
    """Return what a person said in a line, "" for all else."""
    if head.get("type") != "user" or head.get("isMeta"):
        return ""
    content = as_object(head.get("message")).get("content")
    texts = [content] if isinstance(content, str) else [_text(block) for block in as_list(content)]
    said = (" ".join(text.split()) for text in texts)
    return next((text[:TITLE_CHARS] for text in said if text and not text.startswith(_NOT_SAID)), "")


def _text(block: object) -> str:
    found = as_object(block)
    return str(found.get("text") or "") if found.get("type") == "text" else ""


def as_object(value: object) -> dict[str, Any]:
    """Return a value that should be a JSON object, an empty one for any other."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def as_list(value: object) -> list[Any]:
    """Return a value that should be a JSON list, an empty one for any other."""
    return cast("list[Any]", value) if isinstance(value, list) else []


def _lines(path: Path) -> int:
    return _read(path, COUNT_BYTES).count(b"\n")


def _read(path: Path, most: int) -> bytes:
    """Return the beginning of a plain file; a pipe or a device is not waited for."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return b""
        with os.fdopen(os.dup(descriptor), "rb") as file:
            return file.read(most)
    except OSError:
        return b""
    finally:
        os.close(descriptor)


def _is_name(name: str) -> bool:
    return bool(name) and "/" not in name and name not in (".", "..") and "\0" not in name
