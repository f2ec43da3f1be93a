"""How long a search over many conversations takes (UI-82: under 300 ms over 2,000).

python benchmarks/session_search.py [conversations]

Each has 20 messages of 200 words. Beside it, for the machine: reading the same texts from the same database
without any search. Prints medians of 9.
"""

import asyncio
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from sqlalchemy import Connection, select

from bowerbird.core.ids import new_thread_id
from bowerbird.sessions.searching import SessionSearch
from bowerbird.store import Store, StoreOptions
from bowerbird.store.journal.journal import Append, NewRecord, append_one
from bowerbird.store.rows.sessions import SessionRow, insert_session
from bowerbird.store.sql.tables import session_texts

MESSAGES, WORDS = 20, 200


async def main(count: int) -> None:
    chance = random.Random(82)
    vocabulary = [
        "".join(chance.choices("abcdefghijklmnopqrstuvwxyzäöü", k=chance.randint(3, 9))) for _ in range(8_000)
    ]
    with tempfile.TemporaryDirectory() as directory:
        store = await Store.open(
            "sqlite:///./agent.db", data_dir=Path(directory), options=StoreOptions(min_free_mb=0)
        )
        for start in range(0, count, 100):
            await store.write(lambda c: fill(c, min(100, count - start), chance, vocabulary))  # noqa: B023
        search = SessionSearch(store)
        begun = time.perf_counter()
        await search.refresh()
        print(f"{count} conversations, the first search reads them: {time.perf_counter() - begun:.2f} s")
        plain = await median(
            lambda: store.read(lambda c: sum(len(t) for t in c.scalars(select(session_texts.c.text))))
        )
        print(f"reading all texts: {plain * 1000:.0f} ms")
        for query in ("notthere", vocabulary[1], " ".join(vocabulary[2:5])):
            hits = len(await search.find(query))
            took = await median(lambda: search.find(query))  # noqa: B023
            print(
                f"{len(query.split())} word(s), {hits} found: {took * 1000:.0f} ms, {took / plain:.1f} × reading"
            )
        await store.aclose()


def fill(connection: Connection, count: int, chance: random.Random, vocabulary: list[str]) -> None:
    for _ in range(count):
        thread_id = new_thread_id()
        insert_session(
            connection, SessionRow(thread_id=thread_id, title=" ".join(chance.choices(vocabulary, k=5)))
        )
        said = [
            NewRecord("user", {"content": " ".join(chance.choices(vocabulary, k=WORDS))})
            for _ in range(MESSAGES)
        ]
        append_one(connection, Append(thread_id, None, tuple(said)))


async def median(work: Callable[[], Awaitable[object]]) -> float:
    taken: list[float] = []
    for _ in range(9):
        begun = time.perf_counter()
        await work()
        taken.append(time.perf_counter() - begun)
    return statistics.median(taken)


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 2_000))
