"""Whether a program answers over ACP, found out without a session or a model (PR-6).

Here: one process, one `initialize`, its answer. Not here: running anything (`acp_run`), what a probe says.
"""

import asyncio
import contextlib
import json
import shutil
import tempfile
from pathlib import Path

from bowerbird.core.processes.kept_process import KeptProcess
from bowerbird.core.threads import to_thread
from bowerbird.providers.programs.readers.lines import object_of, sub

GREETING_S = 10.0
_MOST = 1 << 20
_HELLO = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {
        "protocolVersion": 1,
        "clientCapabilities": {"fs": {"readTextFile": False, "writeTextFile": False}, "terminal": False},
        "clientInfo": {"name": "bowerbird", "title": "Bowerbird", "version": "1"},
    },
}


async def greeted(words: tuple[str, ...], path: str) -> str:
    """Return "" where a program answers as it should, else what it did instead; never raises OSError."""
    home = await to_thread(tempfile.mkdtemp)
    env = {"PATH": path, "HOME": home, "TERM": "dumb", "NO_COLOR": "1", "LANG": "C.UTF-8"}
    try:
        child = await KeptProcess.start(words[0], [*words[1:]], env=env, cwd=home)
    except OSError as error:
        return f"it cannot be started: {type(error).__name__}"
    try:
        child.stdin.write(json.dumps(_HELLO).encode() + b"\n")
        async with asyncio.timeout(GREETING_S):
            return _judged(await _answer(child.stdout))
    except TimeoutError:
        return f"it said nothing within {GREETING_S:g} s"
    except (OSError, ValueError):
        return "it closed the connection, or printed what is no message"
    finally:
        with contextlib.suppress(OSError):
            await child.kill()
        await to_thread(shutil.rmtree, Path(home), ignore_errors=True)


async def _answer(stdout: asyncio.StreamReader) -> dict[str, object]:
    """Return the answer to our greeting; other lines are passed over, as far as they are few."""
    taken = 0
    while taken < _MOST and (line := await stdout.readline()):
        taken += len(line)
        found = object_of(line.decode("utf-8", "replace"))
        if found.get("id") == 0 and ("result" in found or "error" in found):
            return found
    return {}


def _judged(answer: dict[str, object]) -> str:
    if not answer:
        return "it ended without an answer"
    version = sub(answer, "result").get("protocolVersion")
    if version is None:
        return "it refused the greeting"
    return "" if version == 1 else f"it speaks version {version} of ACP, not 1"
