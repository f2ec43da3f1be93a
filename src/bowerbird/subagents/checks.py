"""What a check of a tournament found (DE-22).

Here: the value, and which files checks are thought to read. Not here: running commands.
"""

import posixpath
import re
import shlex
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from typing import Any

import msgspec

TAIL_CHARS = 2_000
CHECK_S = 600.0
_MODULE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)+")
_RUN_BY = {
    "make": {"Makefile", "makefile", "GNUmakefile"},
    "just": {"justfile", "Justfile"},
    "npm": {"package.json"},
    "pnpm": {"package.json"},
    "yarn": {"package.json"},
    "tox": {"tox.ini", "pyproject.toml"},
    "nox": {"noxfile.py"},
}
TEST_GLOBS = (
    "tests/**", "test/**", "**/tests/**", "**/test/**", "**/test_*", "**/*_test.*", "**/*.test.*",
    "**/*.spec.*", "**/conftest.py", "**/__tests__/**",
)  # fmt: skip


class Check(msgspec.Struct, frozen=True):
    """One command's outcome; `baseline_failed`: it fails in the starting snapshot too."""

    command: str
    exit_code: int
    seconds: float
    output_tail: str
    baseline_failed: bool = False

    @property
    def passed(self) -> bool:
        """Whether the command exited with 0."""
        return self.exit_code == 0

    def record(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "command": self.command,
            "exit_code": self.exit_code,
            "seconds": self.seconds,
            "output_tail": self.output_tail,
            "baseline_failed": self.baseline_failed,
        }

    @classmethod
    def of(cls, data: dict[str, Any]) -> "Check":
        """Return the check that `record` described."""
        return cls(**data)


def against(baseline: Sequence[Check], checks: Iterable[Check]) -> tuple[Check, ...]:
    """Return `checks`, those that fail marked when they fail in the starting snapshot too."""
    failing = {check.command for check in baseline if not check.passed}
    return tuple(
        msgspec.structs.replace(check, baseline_failed=not check.passed and check.command in failing)
        for check in checks
    )


def touches_checks(
    diff: dict[str, Any], globs: Sequence[str] = TEST_GLOBS, commands: Iterable[str] = ()
) -> bool:
    """Whether files that checks read or run were changed or deleted; new ones are nobody's yet.

    What Python compiled of tests that it ran is no change of them.

    Args:
        globs: of files that tests live in. commands: the checks; files that they name count too.

    >>> touches_checks({"written": [], "deleted": ["/tests/test_a.py"]})
    True
    """
    changed = [row["path"] for row in diff["written"] if row["kind"] == "modify"]
    paths = [path for path in (*changed, *diff["deleted"]) if "/__pycache__/" not in path]
    named = {name for command in commands for name in files_of(command)}
    return any(path.lstrip("/") in named or any(fits(path, glob) for glob in globs) for path in paths)


def files_of(command: str) -> set[str]:
    """Return the paths that the words of a command may stand for.

    >>> sorted(files_of("python3 ./t.py --all && python -m pkg.check"))
    ['--all', '-m', 'pkg.check', 'pkg/check.py', 'python', 'python3', 't.py']
    """
    try:
        lexer = shlex.shlex(command, posix=True, punctuation_chars=True)
        lexer.whitespace_split = True
        words = list(lexer)
    except ValueError:  # an open quote: the shell will say so
        words = command.split()
    plain = {posixpath.normpath(word) for word in words if word.strip(";&|()<>")}
    modules = {word.replace(".", "/") + ".py" for word in words if _MODULE.fullmatch(word)}
    found = plain | modules
    return found.union(*(files for program, files in _RUN_BY.items() if program in plain))


def fits(path: str, glob: str) -> bool:
    """Whether a path fits a glob of test files; `**/` also stands for no directory at all.

    >>> fits("/test_a.py", "**/test_*"), fits("/src/a.py", "tests/**")
    (True, False)
    """
    plain = path.lstrip("/")
    return fnmatchcase(plain, glob) or (glob.startswith("**/") and fnmatchcase(plain, glob[3:]))
