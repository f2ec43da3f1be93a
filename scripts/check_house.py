"""Checks of the house that no linter makes: file length, package docstrings, clean lock files.

Run by `make check`; prints each finding and exits 1 when there is any.
"""

import ast
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LONGEST_FILE = 1000
SOURCES = (
    "src/**/*.py",
    "tests/**/*.py",
    "benchmarks/*.py",
    "drills/*.py",
    "scripts/*.py",
    "examples/*.py",
    "web/src/**/*.ts*",
)


def long_files() -> list[str]:
    """Files over the limit; generated or vendored code has no place in these folders."""
    found: list[str] = []
    for pattern in SOURCES:
        for path in sorted(ROOT.glob(pattern)):
            lines = path.read_bytes().count(b"\n")
            if lines > LONGEST_FILE:
                found.append(f"{path.relative_to(ROOT)}: {lines} lines, at most {LONGEST_FILE}")
    return found


def undocumented_packages() -> list[str]:
    """Packages and modules whose first paragraph does not say what lives there."""
    found: list[str] = []
    for path in sorted((ROOT / "src").rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        if tree.body and not ast.get_docstring(tree):
            found.append(f"{path.relative_to(ROOT)}: no module docstring")
    return found


def hosts_in_locks() -> list[str]:
    """Lock lines that name a place to download from."""
    found: list[str] = []
    for path in sorted((ROOT / "locks").glob("*.txt")):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if re.search(r"https?://|file:|--(extra-)?index-url|--find-links", line):
                found.append(f"locks/{path.name}:{number}: names a host")
    return found


def main() -> int:
    """Print findings; return the exit code."""
    findings = [*long_files(), *undocumented_packages(), *hosts_in_locks()]
    for finding in findings:
        print(finding)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
