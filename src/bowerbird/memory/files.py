"""Reading memory files.

Here: which ones, in which order, from where, how much. A protected file is read from the
workspace itself, so that an agent's edit of its own instructions counts after a person
has landed it. Not here: branches, prompts.
"""

import os
import posixpath
import re
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import msgspec

from bowerbird.core.errors import WorkspaceError
from bowerbird.core.threads import to_thread

MEMORY_FILES = ("IDENTITY.md", "AGENT.md", "MEMORY.md", "AGENTS.md")
OVERRIDE = "AGENTS.override.md"
"""Read in place of AGENTS.md where it exists, as Codex does."""
BESIDE = ("CLAUDE.md", ".claude/CLAUDE.md", "CLAUDE.local.md")
"""Instructions for Claude Code: read after AGENTS.md, with the files that they import."""
INSTEAD = ("GEMINI.md", ".cursorrules")
"""Instructions written for other agents: the first that exists is read where there is none of the above."""
PROTECTED = ("IDENTITY.md", "AGENT.md", "AGENTS.md", "skills/**")
MAX_MEMORY_BYTES = 32 * 1024
MAX_IMPORTED = 32 * 1024  # characters of all imported files
MAX_HOPS = 5  # as in Claude Code: a file imports one that imports one …
_CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`", re.DOTALL)
_IMPORT = re.compile(r"(?<!\S)@(?:\./)?([\w./-]+\.md)\b", re.ASCII)


class ReadsBytes(Protocol):
    """What memory needs of a branch."""

    @property
    def root(self) -> Path | None:
        """The workspace's directory, None for a branch of nothing."""
        ...

    async def read_bytes(self, path: str, offset: int = 0, length: int | None = None) -> bytes:
        """Bytes of a file as the branch sees it."""
        ...


class MemoryFile(msgspec.Struct, frozen=True):
    """One memory file; `cut` when it was longer than 32 KiB."""

    name: str
    text: str
    cut: bool = False


async def read_memory(
    branch: ReadsBytes, names: Sequence[str] = MEMORY_FILES, protected: Sequence[str] = PROTECTED
) -> list[MemoryFile]:
    """Return the memory files that exist, in the order of `names`; empty ones are left out.

    Args:
        branch: Where unprotected files are read.
        names: File names at the workspace's root.
        protected: Those read as landed; patterns with `/` concern other files.

    Example:
        >>> async def names(branch: ReadsBytes) -> list[str]:
        ...     return [file.name for file in await read_memory(branch)]
    """
    found: list[MemoryFile] = []
    for name in names:
        file = await _file(branch, OVERRIDE, is_protected=True) if name == "AGENTS.md" else None
        file = file or await _file(branch, name, is_protected=name in protected)
        found += [] if file is None else [file]
    if "AGENTS.md" not in names:
        return found
    for name in BESIDE:
        file = await _file(branch, name, is_protected=True)
        if file is not None and all(file.text != other.text for other in found):
            imported = await _imported(branch, file, [*found, file])
            # A file that says nothing but `@AGENTS.md` is that file, which stands here already.
            found += [file, *imported] if _IMPORT.sub("", file.text).strip() else imported
    if all(file.name in names and file.name != "AGENTS.md" for file in found):
        for name in INSTEAD:
            if (file := await _file(branch, name, is_protected=True)) is not None:
                return [*found, file]
    return found


async def _imported(branch: ReadsBytes, top: MemoryFile, known: list[MemoryFile]) -> list[MemoryFile]:
    """Return the Markdown files of the workspace that `top` imports with `@path`, and what these import.

    Nothing else is: a repository could have any file of the directory sent.
    """
    names = {file.name for file in known} | {OVERRIDE, "AGENTS.md"}
    found: list[MemoryFile] = []
    layer, room = [top], MAX_IMPORTED
    for _ in range(MAX_HOPS):
        asked = [
            posixpath.normpath(posixpath.join(posixpath.dirname(file.name), path))
            for file in layer
            for path in _IMPORT.findall(_CODE.sub("", file.text))
        ]
        layer = list[MemoryFile]()
        for name in dict.fromkeys(asked):
            file = None if name in names or room <= 0 else await _file(branch, name, is_protected=True)
            names.add(name)
            if file is not None and len(file.text) <= room:
                room -= len(file.text)
                layer.append(file)
        found += layer
    return found


async def _file(branch: ReadsBytes, name: str, *, is_protected: bool) -> MemoryFile | None:
    data = await to_thread(_landed, branch.root, name) if is_protected else await _through(branch, name)
    if data is None or not data.strip():
        return None
    cut = len(data) > MAX_MEMORY_BYTES
    # A character cut in two by the limit is left out, other bad bytes are shown as such.
    text = data[:MAX_MEMORY_BYTES].decode("utf-8", "ignore" if cut else "replace")
    return MemoryFile(name, text.removeprefix("\ufeff").strip(), cut)


async def _through(branch: ReadsBytes, name: str) -> bytes | None:
    try:
        return await branch.read_bytes(name, 0, MAX_MEMORY_BYTES + 1)
    except WorkspaceError:
        return None  # absent, a directory, a link out: nothing to remember


def _landed(root: Path | None, name: str) -> bytes | None:
    if root is None:
        return None
    inside = os.path.realpath(root)
    real = os.path.realpath(root / name)
    if os.path.commonpath([inside, real]) != inside:
        return None
    try:
        handle = os.open(real, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        return None
    with os.fdopen(handle, "rb") as file:
        return file.read(MAX_MEMORY_BYTES + 1)
