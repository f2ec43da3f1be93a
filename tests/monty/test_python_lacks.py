"""SB-47, finding engine 8: what this interpreter lacks is said as such, and whom to ask; none outlives its server."""

import subprocess
import sys
import time
from pathlib import Path

import pytest
from support.patience import HANG_S

from bowerbird.sandbox.python.run import NoSuchCall
from bowerbird.sandbox.python.sessions import PythonSessions
from bowerbird.tools.processes.python_tools import shown

HINT = "run_python runs full CPython with installed packages; use it for this."


class _Files:
    """As a branch answers what it does not know."""

    async def call(self, name: str, args: object, kwargs: object) -> object:
        raise NoSuchCall(name)

    async def flush(self) -> None:
        pass


@pytest.mark.parametrize(
    ("code", "hint"),
    [
        ("raise SystemExit(3)", True),
        ("import sys\nsys.exit(0)", True),
        ("exit()", True),
        ("import re\nre.sub('a', lambda m: 'b', 'aa')", True),
        ("open('x', 'r+')", True),
        ("bytes(range(3))", True),
        ("import os\nos.getenv('HOME')", True),
        ("import os\nos.environ['HOME']", True),
        ("class E(Exception): pass", True),
        ("from collections import OrderedDict", True),
        ("int.from_bytes(b'a', 'big')", True),
        ("'abc'.translate({97: 'b'})", True),
        ("memoryview(b'a')", True),
        ("1 / 0", False),
        ("undefined", False),
        ("'a' + 1", False),
        ("'a'.nothing", False),
        ("import json\njson.nothing", False),
        ("raise ValueError('of the snippet')", False),
        ("raise SystemExit", False),
    ],
)
async def test_what_python_itself_would_run_ends_with_the_hint(code: str, hint: bool):
    sessions = PythonSessions()
    try:
        for files in (None, _Files()):
            record = await sessions.run("b", code, files)
            text = shown(record, None, has_run_python=True)
            assert not record.ok and text.endswith(HINT) == hint, text
            assert "Internal error" not in text
    finally:
        await sessions.aclose()


_SERVER = """
import asyncio, sys
from bowerbird.sandbox.python.sessions import PythonSessions
from bowerbird.sandbox.python.engine import PythonLimits
from support.python_workers import workers
async def main():
    sessions = PythonSessions(PythonLimits(timeout_s=25))
    await sessions.run("b", "x = 1")
    running = asyncio.create_task(sessions.run("b", "while True: pass"))
    await asyncio.sleep(0.2)
    print(*workers(), flush=True)
    await running
asyncio.run(main())
"""


def test_a_spinning_interpreter_ends_with_its_killed_server():
    """It went on for up to 30 s, at the whole of one processor."""
    words = [
        sys.executable,
        "-c",
        f"import sys; sys.path.insert(0, {str(Path(__file__).parents[1])!r})\n{_SERVER}",
    ]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        pids = server.stdout.readline().split()
        server.kill()
    assert pids
    deadline = time.monotonic() + HANG_S
    while any(Path(f"/proc/{pid}").exists() for pid in pids) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert [pid for pid in pids if Path(f"/proc/{pid}").exists()] == []
