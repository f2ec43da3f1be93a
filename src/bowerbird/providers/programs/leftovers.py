"""Processes that an earlier run left, found by the id of the run in their environment, and killed (PR-18).

The sandbox ends with the server that started it; this is for what escaped that, say where the sandbox's own
processes were killed. Here: looking through `/proc`. Not here: which runs are over (`homes`).
"""

import contextlib
import os
import signal
from collections.abc import Collection
from pathlib import Path

RUN_VARIABLE = "BOWERBIRD_AGENT_RUN"


def kill_remains(runs: Collection[str], proc: Path = Path("/proc")) -> int:
    """Kill every process whose environment names one of `runs`; return how many. Blocks."""
    wanted = {f"{RUN_VARIABLE}={run}".encode() for run in runs}
    killed = 0
    for entry in proc.iterdir() if wanted else ():
        if not entry.name.isdigit():
            continue
        with contextlib.suppress(OSError):
            if wanted & set((entry / "environ").read_bytes().split(b"\0")):
                os.kill(int(entry.name), signal.SIGKILL)
                killed += 1
    return killed
