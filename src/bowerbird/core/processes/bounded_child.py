"""One answer computed by a Python process of ours that can be killed: for what a stranger may make endless.

Here: the process, its limits of time and memory, its end. Not here: what it computes.
"""

import asyncio
import resource
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress


async def answer_of_child(
    arguments: Sequence[str], job: bytes, *, deadline_s: float, memory_bytes: int
) -> bytes | None:
    """Return what the process writes to standard output; None when it died, of its limits or by itself.

    Args:
        arguments: of the interpreter, which runs isolated and without our environment.
        job: its standard input.
        deadline_s: seconds from its start until it is killed.
        memory_bytes: address space.

    Raises:
        TimeoutError: the deadline has passed.
    """
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-I", *arguments,
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
        env={}, start_new_session=True,
    )  # fmt: skip
    try:
        with suppress(OSError, ValueError):  # it may be gone already; its CPU is limited if we are
            resource.prlimit(process.pid, resource.RLIMIT_AS, (memory_bytes, memory_bytes))
            seconds = int(deadline_s) + 1
            resource.prlimit(process.pid, resource.RLIMIT_CPU, (seconds, seconds))
        async with asyncio.timeout(deadline_s):
            said, _ = await process.communicate(job)
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                process.send_signal(signal.SIGKILL)
            await asyncio.shield(process.wait())
    return None if process.returncode else said
