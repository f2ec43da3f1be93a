"""The skills of a workspace, read anew each time, and those that come with Bowerbird.

Here: directories, confined reading. Not here: what a SKILL.md means (`skill.py`).
Skills are protected (AS-42): they are read from the workspace itself, not from the
branch, so an agent's edit of a skill counts after it has landed.
"""

import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

import msgspec

from bowerbird.skills.skill import (
    MAX_BODY_BYTES,
    MAX_FRONT_BYTES,
    Skill,
    SkillProblem,
    missing_requirement,
    parse_skill,
    split_front_matter,
)

BUNDLED = Path(__file__).parent / "bundled"
ELSEWHERE = (".agents/skills", ".claude/skills")
"""Where Codex and Claude Code look for the skills of a project."""
MAX_SKILLS = 1_000
MAX_LISTED_FILES = 200
_PARTS = ("scripts", "references", "assets")


class SkillLibrary(msgspec.Struct, frozen=True):
    """Skills under one directory, plus the bundled ones. Every method reads the disk; use a thread.

    Args:
        workspace: The workspace's directory, or None: only bundled skills.
        directory: Where skills lie, relative to the workspace (`skills.directory`).
        env: Variables that `requires_env` may name.
        bridges: Configured gateway bridges that `requires_bridge` may name.
        bundled: The directory of the bundled ones.

    Example:
        >>> "code-review" in [skill.name for skill in SkillLibrary(None).offered()]
        True
    """

    workspace: Path | None = None
    directory: str = "skills"
    env: Mapping[str, str] = msgspec.field(default_factory=dict[str, str])
    bridges: frozenset[str] = frozenset()
    bundled: Path | None = BUNDLED

    def all(self) -> list[Skill]:
        """Return every skill by name, hidden ones with their reason."""
        found: dict[str, Skill] = {}
        duplicates: list[Skill] = []
        own = (skill for root in self._own_roots() for skill in self._under(root, bundled=False))
        for skill in (*own, *self._under(self.bundled, bundled=True)):
            if skill.name in found:
                duplicates.append(
                    msgspec.structs.replace(skill, hidden="a skill of the same name comes before it")
                )
            else:
                found[skill.name] = skill
        return sorted((*found.values(), *duplicates), key=lambda s: (s.name, s.hidden is not None))

    def offered(self) -> list[Skill]:
        """Return the skills that agents see, by name."""
        return [skill for skill in self.all() if skill.hidden is None]

    def get(self, name: str) -> Skill | None:
        """Return the offered skill of this name."""
        return next((skill for skill in self.offered() if skill.name == name), None)

    def body(self, skill: Skill) -> str:
        """Return the text of SKILL.md after its front matter; raises SkillProblem when it is gone."""
        _, body = split_front_matter(read_inside(skill.directory, "SKILL.md", _WHOLE))
        return body.decode("utf-8", "replace")

    def files(self, skill: Skill) -> list[str]:
        """Return paths below `scripts/`, `references/`, `assets/`, at most 200, sorted."""
        found: list[str] = []
        for part in _PARTS:
            for base, folders, names in os.walk(skill.directory / part):
                folders.sort()
                here = Path(base).relative_to(skill.directory)
                found += [str(here / name) for name in sorted(names)]
                if len(found) >= MAX_LISTED_FILES:
                    return found[:MAX_LISTED_FILES]
        return found

    def read(self, skill: Skill, path: str) -> bytes:
        """Return at most 256 KiB of one of the skill's own files.

        Raises:
            SkillProblem: it is missing, no regular file, or lies outside the skill.
        """
        return read_inside(skill.directory, path, MAX_BODY_BYTES)

    def _own_roots(self) -> list[Path]:
        """Return the directories whose skills are the workspace's own, each once, what comes first wins."""
        if self.workspace is None:
            return [Path(self.directory)] if Path(self.directory).is_absolute() else []
        inside = Path(os.path.realpath(self.workspace))
        roots = {os.path.realpath(inside / self.directory): self.workspace / self.directory}
        for place in ELSEWHERE:
            real = os.path.realpath(inside / place)
            if Path(real).is_relative_to(
                inside
            ):  # a link that leads out of the workspace shows nobody's files
                roots.setdefault(real, Path(real))
        return list(roots.values())

    def _under(self, root: Path | None, *, bundled: bool) -> Iterator[Skill]:
        skills = _shipped() if root == BUNDLED else _loaded(root, bundled)
        for skill in skills:
            if skill.hidden is None:
                yield msgspec.structs.replace(
                    skill, hidden=missing_requirement(skill, self.env, self.bridges)
                )
            else:
                yield skill


@cache
def _shipped() -> tuple[Skill, ...]:
    """The bundled skills, read once: they change with the installation only."""
    return tuple(_loaded(BUNDLED, True))


def _loaded(root: Path | None, bundled: bool) -> Iterator[Skill]:
    for number, path in enumerate(_directories(root)):
        yield _load(path, bundled) if number < MAX_SKILLS else _unread(path, bundled)


def _unread(directory: Path, bundled: bool) -> Skill:
    why = f"not read: a directory of skills has at most {MAX_SKILLS:,}"
    return Skill(directory.name, "", directory, bundled=bundled, hidden=why)


def _load(directory: Path, bundled: bool) -> Skill:
    try:
        return parse_skill(read_inside(directory, "SKILL.md", _WHOLE), directory, bundled=bundled)
    except SkillProblem as problem:
        return Skill(directory.name, "", directory, bundled=bundled, hidden=str(problem))


_WHOLE = MAX_FRONT_BYTES + MAX_BODY_BYTES + 1024


def _directories(root: Path | None) -> Iterable[Path]:
    if root is None:
        return []
    try:
        with os.scandir(root) as entries:
            names = sorted(e.name for e in entries if e.is_dir() and not e.name.startswith("."))
    except OSError:
        return []  # no such directory: bundled skills only
    return [root / name for name in names]


def read_inside(directory: Path, path: str, limit: int) -> bytes:
    """Read a regular file inside `directory`; links may lead anywhere inside it, never out."""
    if not path or "\0" in path:
        raise SkillProblem(f"{path!r} is not a file name")
    inside = Path(os.path.realpath(directory))
    real = Path(os.path.realpath(inside / path.lstrip("/")))
    if not real.is_relative_to(inside):
        raise SkillProblem(f"{path} lies outside the skill")
    try:
        handle = os.open(real, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise SkillProblem(f"{path} cannot be read: {error.strerror}") from error
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise SkillProblem(f"{path} is not a file")
    with os.fdopen(handle, "rb") as file:
        return file.read(limit)
