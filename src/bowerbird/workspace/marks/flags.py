"""Which changed paths a person must accept by name, which an automatic landing leaves, and which are caches.

Here: the flags of one change and its grade (D-5, WS-58), caches (WS-65). Not here: the table of names
(`table.py`), what stands around a path (`surroundings.py`), what a landing does with a flag
(`landing/plan.py`), settings (they arrive as globs), git's own ignore files.

Two grades: `needs_accept` lands only when a person names the path, under every policy; `held` is taken by a
person's landing, which shows its mark, and left on the branch by an automatic one.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache

import msgspec

from bowerbird.workspace.marks.names import begins_place, folded_parts, rows_of
from bowerbird.workspace.marks.surroundings import GitPlace, Surroundings
from bowerbird.workspace.marks.table import FLAGS, Grade
from bowerbird.workspace.tree.glob import Glob, compile_glob, is_literal, unescaped
from bowerbird.workspace.tree.threeway import Side

# Refused even when accepted.
ALWAYS_REFUSED = frozenset({"case-clash"})

DEFAULT_IGNORE = (
    "__pycache__/", ".pytest_cache/", ".mypy_cache/", ".ruff_cache/", ".hypothesis/", ".tox/",
    "node_modules/", ".venv/", "*.pyc", ".DS_Store",
)  # fmt: skip

# No surroundings: only the path and its versions count.
ALONE = Surroundings(lambda _: None, lambda _: None, ())


class Marks(msgspec.Struct, frozen=True):
    """What is said of one change.

    Attributes:
        flags: sorted. reasons: one for each of them, for people.
        is_scrap: git's own leavings, treated like a cache.
        git: where in a git directory it lies.
    """

    flags: tuple[str, ...]
    reasons: tuple[str, ...] = ()
    is_scrap: bool = False
    git: GitPlace | None = None

    @property
    def grade(self) -> Grade:
        """The strictest grade of the flags."""
        return grade_of(self.flags)


class FlagRules(msgspec.Struct, frozen=True):
    """The rules of one workspace, from settings.

    Attributes:
        flag: globs that add the flag `configured` (`landing.flag`).
        unflag: globs whose paths carry no flag but `case-clash` and `tainted` (`landing.unflag`).
        ignore: globs of caches (`landing.ignore`).
        agent_config: globs that add `agent-config`: configuration files in use and
            `memory.protected`.

    Example:
        >>> FlagRules().flags("/.github/workflows/ci.yml", None, None)
        ('ci',)
        >>> FlagRules().marks("/Makefile", None, None).grade
        'held'
    """

    flag: tuple[str, ...] = ()
    unflag: tuple[str, ...] = ()
    ignore: tuple[str, ...] = DEFAULT_IGNORE
    agent_config: tuple[str, ...] = ()

    def flags(
        self, path: str, old: Side | None, new: Side | None, around: Surroundings = ALONE
    ) -> tuple[str, ...]:
        """Return the flags of one change, sorted; `old` is its base, `new` the branch's version."""
        return self.marks(path, old, new, around).flags

    def marks(
        self,
        path: str,
        old: Side | None,
        new: Side | None,
        around: Surroundings = ALONE,
        *,
        tainted: bool = False,
    ) -> Marks:
        """Return everything that is to be said of one change.

        Args:
            old: its base. new: the branch's version.
            around: what it stands among; without it only names count.
            tainted: untrusted text was in context when it was written.
        """
        found = {"tainted": FLAGS["tainted"].reason} if tainted else {}
        place = around.git_place(path)
        if not self.is_unflagged(path):
            found |= _by_name(path, place, new)
            if _matches(self.agent_config, path):
                found["agent-config"] = "settings in use, or protected memory"
            if _matches(self.flag, path):
                found["configured"] = FLAGS["configured"].reason
            if around.named.covers(path):
                found["git-exec"] = "the repository's configuration names it"
            found |= _by_version(path, old, new, around)
        flags = tuple(sorted(found))
        scrap = place is not None and place.is_scrap
        return Marks(flags, tuple(found[flag] for flag in flags), scrap, place)

    def is_unflagged(self, path: str) -> bool:
        """Whether settings say that `path` carries no marks."""
        return _matches(self.unflag, path)

    def is_cache(self, path: str) -> bool:
        """Whether `path` is, or lies in, what `ignore` names."""
        return _matches(self.ignore, path)


def grade_of(flags: Sequence[str]) -> Grade:
    """Return the strictest grade of some flags; one that this version does not know needs acceptance.

    >>> grade_of(("build-exec", "ci")), grade_of(("dotfile",)), grade_of(())
    ('needs_accept', 'held', 'free')
    """
    grades = {FLAGS[flag].grade if flag in FLAGS else "needs_accept" for flag in flags}
    return "needs_accept" if "needs_accept" in grades else "held" if "held" in grades else "free"


def needs_accept(flags: Sequence[str]) -> bool:
    """Whether a change with these flags lands only when its path is accepted."""
    return grade_of(flags) == "needs_accept"


def _by_name(path: str, place: GitPlace | None, new: Side | None) -> dict[str, str]:
    """The flags that follow from names, and from the git directory that they lie in."""
    if place is not None:
        return _in_git(place, new)
    parts = folded_parts(path)
    # Several rows of one flag: the first is reason enough.
    found = {row.flag: row.reason for row in reversed(rows_of(parts))}
    if new is not None and new.kind == "symlink" and begins_place(parts[-1]) and not found:
        found["symlink-in"] = "a link in the place of a directory that programs obey"
    if not found and any(part.startswith(".") for part in parts):
        found["dotfile"] = FLAGS["dotfile"].reason
    return found


def _in_git(place: GitPlace, new: Side | None) -> dict[str, str]:
    kind = new.kind if new is not None else None
    if place.is_new and (place.inner or kind not in (None, "dir")):
        return {"git-dir": FLAGS["git-dir"].reason}
    plain = kind in (None, "file", "dir") if place.inner else kind in (None, "dir")
    flag = "git-data" if place.is_data and plain else "git-exec"
    return {flag: FLAGS[flag].reason}


def _by_version(path: str, old: Side | None, new: Side | None, around: Surroundings) -> dict[str, str]:
    """The flags that follow from what the path becomes."""
    found: list[str] = []
    if new is None:
        return {}
    if new.kind == "symlink":
        target = new.target or ""
        if around.leads_out(path, target):
            found.append("symlink-out")
        elif any(_needs_accept_by_name(where, around) for where in around.leads_to(path, target)):
            found.append("symlink-in")
    if new.kind == "file":
        if new.executable and not (old is not None and old.kind == "file" and old.executable):
            found.append("exec-bit")
        if new.mode & 0o6000:
            found.append("setuid")
        if _opens_or_locks(old, new):
            found.append("permissions")
    return {flag: FLAGS[flag].reason for flag in found}


def _opens_or_locks(old: Side | None, new: Side) -> bool:
    """Whether others get at a file who did not before, or its owner does no longer; no diff shows it."""
    if old is None or old.kind != "file":
        return bool(new.mode & 0o002) or not new.mode & 0o400
    return bool(new.mode & ~old.mode & 0o066 or old.mode & ~new.mode & 0o600)


def _needs_accept_by_name(path: str, around: Surroundings) -> bool:
    place = around.git_place(path)
    if place is not None:
        return True
    return around.named.covers(path) or needs_accept([row.flag for row in rows_of(folded_parts(path))])


def _matches(globs: Sequence[str], path: str) -> bool:
    return bool(globs) and _anywhere(tuple(globs))(path)


@lru_cache(maxsize=64)
def _anywhere(globs: tuple[str, ...]) -> Callable[[str], bool]:
    """Return a test that works like ignore lines: a glob without inner slash fits at any
    depth, a match covers everything below it."""
    names: set[str] = set()
    patterns: list[Glob] = []
    for glob in globs:
        text = glob.strip("/").casefold()
        if "/" not in text and not glob.startswith("/") and is_literal(text):
            names.add(unescaped(text))
            continue
        anchored = "/" in text or glob.startswith("/")
        patterns.append(compile_glob(text if anchored else "**/" + text))

    def test(path: str) -> bool:
        whole = path.casefold().strip("/")
        return not names.isdisjoint(whole.split("/")) or any(pattern.covers(whole) for pattern in patterns)

    return test
