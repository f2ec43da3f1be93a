"""A locked database, a damaged record, a damaged manifest: named, isolated, nothing lost (SE-15, SE-59, WS-4).

The disk that gets full is `tests/sessions/test_full_disk.py`.
"""

import asyncio
import json
import sqlite3
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from support.databases import postgres
from support.fake_models import FakeModels
from support.patience import HANG_S
from support.postgres import PostgresServer
from support.servers import TestServer, begin, say, serve

__all__ = ("postgres",)

LOCKED_S = 5.0


def answer(body: dict[str, Any], _: int) -> dict[str, Any]:
    """Writes a file named in the newest message, then says that it is done."""
    last = body["messages"][-1]
    text = json.dumps(last["content"])
    if last["role"] == "user" and "write " in text and "tool_result" not in text:
        name = text.partition("write ")[2].partition('"')[0]
        return {"tools": [{"name": "write_file", "input": {"path": name, "content": f"{name}\n"}}]}
    return {"text": "done"}


@contextmanager
def sqlite_locked(path: Path) -> Iterator[None]:
    """Hold the write lock of a database."""
    database = sqlite3.connect(path, isolation_level=None, timeout=30)
    try:
        database.execute("BEGIN IMMEDIATE")
        yield
        database.execute("ROLLBACK")
    finally:
        database.close()


def everybody_writes(client: httpx.Client, talks: list[str], name: str) -> list[dict[str, Any]]:
    with ThreadPoolExecutor(len(talks)) as pool:
        return list(pool.map(lambda talk: say(client, talk, f"write {name}"), talks))


def check_lock(server: TestServer, client: httpx.Client, locked: Any) -> None:
    talks = [begin(client) for _ in range(3)]
    everybody_writes(client, talks, "before.txt")
    alive: list[float] = []
    with ThreadPoolExecutor(1) as pool:
        with locked:
            work = pool.submit(everybody_writes, client, talks, "during.txt")
            until = time.monotonic() + LOCKED_S
            while time.monotonic() < until:
                begun = time.monotonic()
                assert client.get("/health/live").status_code == 200
                alive.append(time.monotonic() - begun)
                time.sleep(0.2)
            assert not work.done()
        answers = work.result(30)
    assert [turn["state"] for turn in answers] == ["done"] * 3
    assert sorted(alive)[len(alive) // 2] < 1.0  # the event loop did not wait for the database
    for talk in talks:
        shown = client.get(f"/api/conversations/{talk}").json()
        assert [m["role"] for m in shown["messages"]] == ["user", "assistant"] * 2
        written = {row["path"] for row in client.get(f"/api/conversations/{talk}/diff").json()["written"]}
        assert written == {"/before.txt", "/during.txt"}


def test_a_database_locked_for_5_s_delays_turns_and_loses_nothing(tmp_path: Path) -> None:
    """SE-15: it is retried for `store.busy_timeout_s`."""
    with serve(tmp_path) as server, server.http as client:
        server.fake.answer(answer)
        check_lock(server, client, sqlite_locked(tmp_path / "data" / "agent.db"))


def test_a_postgresql_locked_for_5_s_delays_turns_and_loses_nothing(
    tmp_path: Path, postgres: PostgresServer
) -> None:
    url = asyncio.run(postgres.database())

    @contextmanager
    def locked() -> Iterator[None]:
        held, free = threading.Event(), threading.Event()

        async def hold() -> None:
            import asyncpg

            connection = await asyncpg.connect(url)
            try:
                async with connection.transaction():
                    await connection.execute("LOCK TABLE journal, sessions, inbox IN EXCLUSIVE MODE")
                    held.set()
                    await asyncio.to_thread(free.wait, 60)
            finally:
                await connection.close()

        thread = threading.Thread(target=lambda: asyncio.run(hold()))
        thread.start()
        assert held.wait(HANG_S)
        try:
            yield
        finally:
            free.set()
            thread.join(HANG_S)

    with serve(tmp_path, flags={"store.url": url}) as server, server.http as client:
        server.fake.answer(answer)
        check_lock(server, client, locked())
    asyncio.run(postgres.give_back(url))


@pytest.mark.parametrize("body", ["{not json", '{"content": 7}'])
def test_a_damaged_record_is_set_aside_and_its_session_and_all_others_go_on(
    tmp_path: Path, body: str
) -> None:
    """SE-59: kept as it was, named, and the conversation opens with a gap."""
    with FakeModels() as fake:
        fake.answer(answer)
        with serve(tmp_path, fake=fake) as server, server.http as client:
            hurt, well = begin(client), begin(client)
            for talk in (hurt, well):
                say(client, talk, "write first.txt")
        database = sqlite3.connect(tmp_path / "data" / "agent.db")
        with database:
            change = "UPDATE journal SET body = ? WHERE thread_id = ? AND type = 'assistant' AND seq < 4"
            assert database.execute(change, (body, hurt)).rowcount == 1
        database.close()
        with serve(tmp_path, fake=fake) as server, server.http as client:
            for talk in (hurt, well):
                shown = client.get(f"/api/conversations/{talk}")
                assert shown.status_code == 200, shown.text
                assert [m["content"] for m in shown.json()["messages"]] == ["write first.txt", "done"]
                assert say(client, talk, "write second.txt")["state"] == "done"
                written = {
                    row["path"] for row in client.get(f"/api/conversations/{talk}/diff").json()["written"]
                }
                assert written == {"/first.txt", "/second.txt"}
            assert fake.requests[-1]["messages"][0]["role"] == "user"
        database = sqlite3.connect(tmp_path / "data" / "agent.db")
        rows = database.execute("SELECT source, key, raw FROM quarantine").fetchall()
        kept = database.execute(
            "SELECT body FROM journal WHERE thread_id = ? AND type = 'assistant' AND seq < 4", (hurt,)
        ).fetchall()
        database.close()
    assert kept == [(body,)]  # never overwritten
    assert [(source, hurt in key, raw) for source, key, raw in rows] == [("journal", True, body)]


@pytest.mark.parametrize("content", [b"", b"{torn"])
def test_a_damaged_manifest_is_set_aside_and_its_session_and_all_others_go_on(
    tmp_path: Path, content: bytes
) -> None:
    """WS-4: rebuilt from the layers on disk; no file of the branch is lost."""
    with FakeModels() as fake:
        fake.answer(answer)
        with serve(tmp_path, fake=fake) as server, server.http as client:
            hurt, well = begin(client), begin(client)
            for talk in (hurt, well):
                say(client, talk, "write first.txt")
                say(client, talk, "write second.txt")
            row = server.run(server.serving.context.sessions.get(hurt))
        directory = tmp_path / "data" / "branches" / row.branch_id
        (directory / "manifest.json").write_bytes(content)
        with serve(tmp_path, fake=fake) as server, server.http as client:
            for talk in (well, hurt):
                assert say(client, talk, "write third.txt")["state"] == "done"
                found = client.get(f"/api/conversations/{talk}/diff").json()["written"]
                assert {r["path"] for r in found} == {"/first.txt", "/second.txt", "/third.txt"}
            landed = client.post(f"/api/conversations/{hurt}/land", json={})
            assert landed.status_code == 200, landed.text
        aside = list(directory.glob("manifest.json.corrupt-*"))
    assert [path.read_bytes() for path in aside] == [content]
    assert (tmp_path / "ws" / "third.txt").read_text() == "third.txt\n"
