"""Start and call times of the Python tool's interpreter, beside a plain `python -c` (SB-48).

Run: `python benchmarks/monty.py`. Prints medians in milliseconds.
"""

import asyncio
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from bowerbird.sandbox import DumpFiles, PythonSessions

ROUNDS = 50


def ms(samples: list[float]) -> str:
    return f"{statistics.median(samples) * 1000:8.3f} ms  (worst {max(samples) * 1000:.3f})"


async def timed(count: int, work: Callable[[int], Awaitable[object]]) -> list[float]:
    samples: list[float] = []
    for number in range(count):
        started = time.perf_counter()
        await work(number)
        samples.append(time.perf_counter() - started)
    return samples


def plain_starts() -> list[float]:
    samples: list[float] = []
    for _ in range(ROUNDS // 2):
        started = time.perf_counter()
        subprocess.run([sys.executable, "-c", "1"], check=True)
        samples.append(time.perf_counter() - started)
    return samples


async def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        sessions = PythonSessions(dumps=DumpFiles(Path(directory)))
        first = await timed(1, lambda _n: sessions.run("first", "1"))
        cold = await timed(20, lambda n: sessions.run(f"cold{n}", "1"))
        warm = await timed(ROUNDS * 4, lambda _n: sessions.run("first", "1"))
        await sessions.run("first", "rows = [{'a': n, 'b': str(n)} for n in range(10_000)]")
        ended = await timed(1, lambda _n: sessions.end_turn("first"))
        again = await timed(1, lambda _n: sessions.run("first", "len(rows)"))
        cancelled: list[float] = []
        for number in range(10):
            task = asyncio.create_task(sessions.run(f"cold{number}", "while True: pass"))
            await asyncio.sleep(0.05)
            started = time.perf_counter()
            task.cancel()
            await asyncio.wait([task])
            cancelled.append(time.perf_counter() - started)
        await sessions.aclose()

    plain = await asyncio.to_thread(plain_starts)
    print(f"first call in a process, loading the engine  {ms(first)}")
    print(f"first call of a branch (cold)                {ms(cold)}")
    print(f"further call (warm)                          {ms(warm)}")
    print(f"dump of 10,000 rows at the end of a turn     {ms(ended)}")
    print(f"next turn's first call, dump loaded          {ms(again)}")
    print(f"cancel of an endless loop                    {ms(cancelled)}")
    print(f"beside it: python -c 1                       {ms(plain)}")


asyncio.run(main())
