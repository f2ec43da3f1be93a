"""Which changed paths a person must accept by name, and which are caches (WS-58, WS-65).

Here: pure rules over a path and its two versions. Not here: what a landing does with a
flag (`plan.py`), settings (they arrive as globs), git's own ignore files.

Names are compared without regard to case, at any depth: `.GIT/Config` on a case-insensitive
disk is `.git/config`.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from bowerbird.workspace.glob import Glob, compile_glob, is_literal, unescaped
from bowerbird.workspace.threeway import Side

# Landing these needs no acceptance: shown only.
ADVISORY = frozenset({"git-data", "build-exec"})
# Refused even when accepted.
ALWAYS_REFUSED = frozenset({"case-clash"})

DEFAULT_IGNORE = (
    "__pycache__/", ".pytest_cache/", ".mypy_cache/", ".ruff_cache/", ".hypothesis/", ".tox/",
    "node_modules/", ".venv/", "*.pyc", ".DS_Store",
)  # fmt: skip

_NAMES: dict[str, frozenset[str]] = {
    "git-exec": frozenset({".gitmodules", ".gitattributes"}),
    "ci": frozenset({".gitlab-ci.yml", "jenkinsfile", "azure-pipelines.yml"}),
    "agent-config": frozenset({
        "agents.md", "agent.md", "identity.md", "claude.md", "gemini.md", "skill.md", ".mcp.json",
        "mcp_servers.json",
    }),
    "shell-rc": frozenset({".bashrc", ".profile", ".bash_profile", ".zshrc", ".zshenv", ".envrc"}),
    "lockfile": frozenset({
        "package-lock.json", "pnpm-lock.yaml", "yarn.lock", "uv.lock", "poetry.lock", "cargo.lock",
        "go.sum", "gemfile.lock", "composer.lock",
    }),
    "build-exec": frozenset({
        "makefile", "package.json", "setup.py", "conftest.py", "dockerfile", ".pre-commit-config.yaml",
    }),
}  # fmt: skip
_DIRECTORIES: dict[str, tuple[tuple[str, ...], ...]] = {
    "git-exec": ((".husky",),),
    "ci": ((".github", "workflows"), (".github", "actions"), (".circleci",), (".buildkite",)),
    "agent-config": ((".claude",), (".codex",), (".cursor",), (".bowerbird",)),
    "editor-exec": ((".vscode",), (".idea",), (".devcontainer",)),
}
_FLAGS_OF_NAME = {
    name: tuple(flag for flag, names in _NAMES.items() if name in names)
    for name in frozenset[str]().union(*_NAMES.values())
}
_SPECIAL_DIRECTORIES = frozenset({".git"}).union(row[0] for rows in _DIRECTORIES.values() for row in rows)


@dataclass(frozen=True, slots=True)
class FlagRules:
    """The rules of one workspace, from settings.

    Attributes:
        flag: globs that add the flag `configured` (`landing.flag`).
        unflag: globs whose paths carry no flag but `case-clash` (`landing.unflag`).
        ignore: globs of caches (`landing.ignore`).
        agent_config: globs that add `agent-config`: configuration files in use and
            `memory.protected`.

    Example:
        >>> FlagRules().flags("/.github/workflows/ci.yml", None, None)
        ('ci',)
    """

    flag: tuple[str, ...] = ()
    unflag: tuple[str, ...] = ()
    ignore: tuple[str, ...] = DEFAULT_IGNORE
    agent_config: tuple[str, ...] = ()

    def flags(self, path: str, old: Side | None, new: Side | None) -> tuple[str, ...]:
        """Return the flags of one change, sorted; `old` is its base, `new` the branch's version."""
        if _matches(self.unflag, path):
            return ()
        found = set(path_flags(path, old, new))
        if _matches(self.agent_config, path):
            found.add("agent-config")
        if _matches(self.flag, path):
            found.add("configured")
        found.update(_version_flags(path, old, new))
        return tuple(sorted(found))

    def is_cache(self, path: str) -> bool:
        """Whether `path` is, or lies in, what `ignore` names."""
        return _matches(self.ignore, path)

    def names_cache(self, path: str, named: Sequence[str]) -> bool:
        """Whether one of the paths given to `land` names the cache itself, not only a directory around it."""
        return any((path == n or path.startswith(n.rstrip("/") + "/")) and self.is_cache(n) for n in named)


def needs_accept(flags: Sequence[str]) -> bool:
    """Whether a change with these flags lands only when its path is accepted."""
    return any(flag not in ADVISORY for flag in flags)


def git_unit(path: str) -> str | None:
    """Return the `.git` directory that `path` lies in, None outside of one."""
    parts = path.split("/")
    for index, part in enumerate(parts[:-1]):
        if part.casefold() == ".git":
            return "/".join(parts[: index + 1])
    return None


def path_flags(path: str, old: Side | None, new: Side | None) -> Iterator[str]:
    """Yield the flags that follow from names alone."""
    parts = [part.casefold() for part in path.split("/")[1:]]
    name = parts[-1]
    yield from _FLAGS_OF_NAME.get(name, ())
    if name.startswith(".env"):
        yield "shell-rc"
    if name.endswith(".code-workspace"):
        yield "editor-exec"
    if _SPECIAL_DIRECTORIES.isdisjoint(parts):
        return
    yield from _git_flags(parts, old, new)
    for flag, rows in _DIRECTORIES.items():
        if any(_lies_in(parts, row) for row in rows):
            yield flag


def _git_flags(parts: list[str], old: Side | None, new: Side | None) -> Iterator[str]:
    if ".git" not in parts[:-1]:
        if parts[-1] == ".git":
            # A file of this name sends git to another directory.
            is_directory = all(side is None or side.kind == "dir" for side in (old, new))
            yield "git-data" if is_directory else "git-exec"
        return
    inner = parts[parts.index(".git") + 1 :]
    name = inner[-1]
    runs = "hooks" in inner or name.startswith("config") or inner[-2:] == ["info", "attributes"]
    yield "git-exec" if runs else "git-data"


def _version_flags(path: str, old: Side | None, new: Side | None) -> Iterator[str]:
    """Yield the flags that follow from what the path becomes."""
    if new is None:
        return
    if new.kind == "symlink" and _leaves_root(path, new.target or ""):
        yield "symlink-out"
    if new.kind == "file":
        if new.executable and not (old is not None and old.kind == "file" and old.executable):
            yield "exec-bit"
        if new.mode & 0o6000:
            yield "setuid"


def _leaves_root(path: str, target: str) -> bool:
    if target.startswith("/"):
        return True
    depth = len(path.split("/")) - 2
    for part in target.split("/"):
        depth += -1 if part == ".." else int(part not in ("", "."))
        if depth < 0:
            return True
    return False


def _lies_in(parts: list[str], row: tuple[str, ...]) -> bool:
    """Whether the directories of `row` stand one below the other in `parts`, or end it."""
    width = len(row)
    return any(tuple(parts[at : at + width]) == row for at in range(len(parts) - width + 1))


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
        parts = path.casefold().strip("/").split("/")
        if not names.isdisjoint(parts):
            return True
        starts = ["/".join(parts[:count]) for count in range(1, len(parts) + 1)] if patterns else []
        return any(pattern.match(start) for pattern in patterns for start in starts)

    return test
