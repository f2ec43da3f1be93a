"""The engine used where ripgrep cannot be: a Python process that can be killed.

Here: starting it, its complaints. Not here: the searching (`search_child.py`).
"""

import base64
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from bowerbird.core.errors import InvalidPattern
from bowerbird.workspace.find.ripgrep import Query, Running


class PythonSearch:
    """Searches with Python's regular expressions, one file after another, in the order given."""

    name = "python"
    walks = False

    def count_files(self, query: Query, files: Sequence[bytes]) -> Running:
        """Start counting matching lines."""
        return self._start(query, files, numbers=False)

    def number_lines(self, query: Query, files: Sequence[bytes], most: int = 0) -> Running:
        """Start listing the numbers of matching lines, the first `most` of each file; 0 = all."""
        return self._start(query, files, numbers=True, most=most)

    def _start(self, query: Query, files: Sequence[bytes], *, numbers: bool, most: int = 0) -> Running:
        job = {
            "pattern": query.pattern,
            "fixed": query.fixed,
            "case_sensitive": query.case_sensitive,
            "numbers": numbers,
            "most": most,
            "files": [base64.b64encode(file).decode() for file in files],
        }
        child = Path(__file__).with_name("search_child.py")
        return Running([sys.executable, "-I", "-S", str(child)], None, json.dumps(job).encode())

    def check(self, complaints: str, query: Query) -> bool:
        """Raise InvalidPattern when the pattern was refused; never asks for another start."""
        if complaints.startswith("error:"):
            raise InvalidPattern(f"pattern {query.pattern!r}: {complaints.removeprefix('error:').strip()}")
        return False
