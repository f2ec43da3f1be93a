"""How fast the journal appends, loads and grows (SE-12, SE-16), beside what it stands on.

    python benchmarks/journal.py [--json] [--dir DIR]

Three things are timed in the same run on the same disk: one flush of the disk (fdatasync), raw
sqlite3 with the same rows in the same batches (executemany + commit), and the journal.
"""

import argparse
import asyncio
import json
import os
import sqlite3
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from bowerbird.store import Append, NewRecord, Store, StoreOptions
from bowerbird.store.rows.leases import heartbeat, take_lease, this_executor
from bowerbird.store.rows.sessions import SessionRow, insert_session

TEXT = "The quick brown fox jumps over the lazy dog. " * 4
BODY = {"content": [{"type": "text", "text": TEXT}], "stop_reason": "end_turn", "model": "p:m", "usage": {}}
WRITERS = 50


def flush_ms(directory: Path, count: int = 200) -> float:
    """Median time of one fdatasync after a 4 KiB write, in milliseconds."""
    descriptor = os.open(directory / "flush", os.O_CREAT | os.O_RDWR)
    times: list[float] = []
    for index in range(count):
        os.pwrite(descriptor, b"x" * 4096, index * 4096)
        begun = time.perf_counter()
        os.fdatasync(descriptor)
        times.append(time.perf_counter() - begun)
    os.close(descriptor)
    return statistics.median(times) * 1000


def raw_sqlite(directory: Path, batch: int, batches: int) -> float:
    """Rows per second of plain sqlite3: the journal's row, WAL, synchronous=FULL."""
    connection = sqlite3.connect(directory / f"raw{batch}.db", isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute(
        "CREATE TABLE journal (thread_id TEXT, seq INTEGER, turn_id TEXT, epoch INTEGER, v INTEGER,"
        " type TEXT, at TEXT, body TEXT, PRIMARY KEY (thread_id, seq))"
    )
    body, at = json.dumps(BODY), "2026-11-20T09:00:00.123456+00:00"
    begun = time.perf_counter()
    for number in range(batches):
        rows = [(f"{i:012x}", number, None, 1, 1, "assistant", at, body) for i in range(batch)]
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany("INSERT INTO journal VALUES (?,?,?,?,?,?,?,?)", rows)
        connection.execute("COMMIT")
    seconds = time.perf_counter() - begun
    connection.close()
    return batch * batches / seconds


async def open_store(directory: Path, durability: Any = "full") -> Store:
    options = StoreOptions(durability=durability, min_free_mb=0)
    return await Store.open("sqlite:///journal.db", data_dir=directory, options=options)


async def make_sessions(store: Store, count: int) -> list[tuple[str, int]]:
    """Sessions with leases, as drivers hold them."""
    executor = this_executor()
    await store.write(lambda c: heartbeat(c, executor))
    made: list[tuple[str, int]] = []
    for index in range(count):
        thread = f"{index:012x}"

        def make(connection: Any, thread: str = thread) -> int | None:
            insert_session(connection, SessionRow(thread_id=thread))
            return take_lease(connection, thread, executor.executor_id, 3600)

        epoch = await store.write(make)
        assert epoch is not None
        made.append((thread, epoch))
    return made


async def append_many(store: Store, writers: list[tuple[str, int]], each: int) -> float:
    """Appends per second when every writer waits for each of its commits."""

    async def write(thread: str, epoch: int) -> None:
        for _ in range(each):
            await store.append(Append(thread, epoch, (NewRecord("assistant", BODY),)))

    begun = time.perf_counter()
    await asyncio.gather(*(write(*writer) for writer in writers))
    return len(writers) * each / (time.perf_counter() - begun)


async def load_ms(store: Store, thread: str, count: int, epoch: int) -> float:
    """Median time to read `count` records back, in milliseconds."""
    await store.append(Append(thread, epoch, tuple(NewRecord("assistant", BODY) for _ in range(count))))
    times: list[float] = []
    for _ in range(10):
        begun = time.perf_counter()
        assert len(await store.records(thread)) >= count
        times.append(time.perf_counter() - begun)
    return statistics.median(times) * 1000


async def growth_mb(directory: Path) -> float:
    """Megabytes that 200 steps of 2 KB add to a database."""
    store = await open_store(directory)
    [(thread, epoch)] = await make_sessions(store, 1)
    await store.aclose()
    path = directory / "journal.db"
    before = path.stat().st_size
    store = await open_store(directory)
    body = {"content": [{"type": "text", "text": "x" * 2048}]}
    for _ in range(200):
        await store.append(Append(thread, epoch, (NewRecord("tool_outcome", body),)))
    await store.aclose()
    return (path.stat().st_size - before) / 1e6


async def measure(directory: Path) -> dict[str, float]:
    figures: dict[str, float] = {"flush_ms": flush_ms(directory)}
    figures["raw_sqlite_batch_50_per_s"] = raw_sqlite(directory, WRITERS, 200)
    figures["raw_sqlite_alone_ms"] = 1000 / raw_sqlite(directory, 1, 300)
    for durability in ("full", "normal"):
        place = directory / durability
        place.mkdir()
        store = await open_store(place, durability)
        writers = await make_sessions(store, WRITERS + 1)
        await append_many(store, writers[:WRITERS], 20)
        figures[f"{durability}_{WRITERS}_writers_per_s"] = await append_many(store, writers[:WRITERS], 400)
        figures[f"{durability}_alone_ms"] = 1000 / await append_many(store, writers[:1], 500)
        if durability == "full":
            figures["load_1000_ms"] = await load_ms(store, writers[-1][0], 1000, writers[-1][1])
        await store.aclose()
    grow = directory / "grow"
    grow.mkdir()
    figures["grow_200_steps_mb"] = await growth_mb(grow)
    return figures


BARS = {
    "flush_ms": "the appends' bar holds where this is at most 0.2",
    "full_50_writers_per_s": "bar: at least 20,000",
    "full_alone_ms": "bar: at most 0.5",
    "load_1000_ms": "bar: below 60",
    "grow_200_steps_mb": "bar: below 1",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--dir", type=Path, help="measure on this directory's disk")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.dir) as directory:
        figures = asyncio.run(measure(Path(directory)))
    if options.json:
        print(json.dumps(figures))
        return
    for name, figure in figures.items():
        print(f"{name:32} {figure:12,.3f}   {BARS.get(name, '')}")


if __name__ == "__main__":
    main()
