"""The interpreter of `pydantic_monty` as others know it: what it has and lacks, its limits, its two ends.

Here: what a turn says of it without running anything; importing this costs next to nothing. Not here: driving
a worker (`monty.py`).
"""

import os
import sys
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from bowerbird.sandbox.python.record import Failure

ENGINE_VERSION = "1.4.0"
MODULES = (
    "asyncio", "base64", "binascii", "bisect", "collections", "copy", "csv", "dataclasses", "datetime",
    "decimal", "functools", "hashlib", "itertools", "json", "math", "os", "pathlib", "posixpath", "random",
    "re", "sys", "time", "tomllib", "typing", "unicodedata",
)  # fmt: skip
MISSING = {
    "class inheritance": "class A: pass\nclass B(A): pass",
    "`yield`": "def f():\n    yield 1",
    "`del`": "x = 1\ndel x",
    "properties and other method decorators": "class A:\n    @property\n    def x(self): return 1",
    "`async with` and `async for`": "async def f(x):\n    async with x: pass",
    "`except*`": "try: pass\nexcept* ValueError: pass",
    "imports of branch files": "import data_helpers",
    "third-party packages": "import numpy",
    "`print(file=…)` to a file": "with open('x', 'w') as f:\n    print(1, file=f)",
}
"""What the pinned version lacks, each with a snippet that shows it (SB-47; a test runs them)."""


class PythonLimits(msgspec.Struct, frozen=True):
    """Limits of one interpreter; seconds and bytes."""

    timeout_s: float = 30.0
    memory_bytes: int = 256 * 1024 * 1024
    recursion: int = 1_000
    suspensions: int = 1_000_000
    output_bytes: int = 100_000
    dump_bytes: int = 16 * 1024 * 1024
    grace_s: float = 2.0


class SnippetFailed(Exception):
    """The snippet ended with an error. `limit`: a limit was hit, so its variables are not to be used."""

    def __init__(self, failure: "Failure", *, limit: bool) -> None:
        super().__init__(failure.text)
        self.failure = failure
        self.limit = limit


class WorkerGone(Exception):
    """The worker process died or was killed."""


@cache
def available() -> str | None:
    """Return None when Monty can run here, else the reason why not; looked up once."""
    if installed_version() == ENGINE_VERSION and _has_binary():
        return None  # as its import would say, which costs every command 10 ms and 3 MB
    try:
        import pydantic_monty
        from pydantic_monty._binary import find_monty_binary

        find_monty_binary()
    except (ImportError, OSError) as error:
        return f"the Python interpreter for tools is not installed (extra `python`): {error}"
    if pydantic_monty.__version__ != ENGINE_VERSION:
        return f"pydantic-monty is {pydantic_monty.__version__}, Bowerbird needs {ENGINE_VERSION}"
    return None


@cache
def installed_version() -> str | None:
    """Return the version of `pydantic-monty` by what lies beside it; None where it is not found so."""
    found = find_spec("pydantic_monty")
    if found is None or found.origin is None:
        return None
    beside = Path(found.origin).parent.parent.glob("pydantic_monty-*.dist-info")
    return next((place.name.removesuffix(".dist-info").partition("-")[2] for place in beside), None)


def _has_binary() -> bool:
    named = os.environ.get("MONTY_BIN")
    return Path(named or Path(sys.executable).parent / "monty").is_file()
