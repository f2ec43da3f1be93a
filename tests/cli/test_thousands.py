"""Commands where there is more than a thousand of something: all of it is shown, or said to be there (UI-42, SE-49)."""

import asyncio
import json
from typing import Any

from sqlalchemy import Connection
from support.desk import Desk

from bowerbird.core.ids import new_thread_id
from bowerbird.store import Append, NewRecord, Store, StoreOptions
from bowerbird.store.journal.journal import append_one
from bowerbird.store.rows.sessions import SessionRow, insert_session, set_status

MANY = 1_030


def keep(desk: Desk, sessions: int, messages: int = 0) -> list[str]:
    """Put sessions of the project on record, the oldest first, each with so many messages; return their ids."""
    made = [new_thread_id() for _ in range(sessions)]

    def insert(connection: Connection) -> None:
        for number, thread_id in enumerate(made):
            moment = f"2026-01-01T00:{number // 60:02}:{number % 60:02}.000000+00:00"
            insert_session(
                connection,
                SessionRow(
                    thread_id=thread_id,
                    title=f"number {number}",
                    workspace=str(desk.project),
                    created_at=moment,
                    updated_at=moment,
                ),
            )
            if messages:
                said = (NewRecord("user", {"content": f"word {n}"}) for n in range(messages))
                append_one(connection, Append(thread_id, None, tuple(said)))
                set_status(connection, thread_id, "idle", messages)

    async def work() -> None:
        place = desk.home / ".bowerbird" / "data"
        place.mkdir(parents=True)
        store = await Store.open("sqlite:///./agent.db", data_dir=place, options=StoreOptions(min_free_mb=0))
        await store.write(insert)
        await store.aclose()

    asyncio.run(work())
    return made


def read(desk: Desk, *arguments: str) -> Any:
    code, out, err = desk.run(*arguments, "--json")
    assert code == 0, err
    return json.loads(out)


def test_the_thousand_and_first_session_is_listed_and_found_like_the_first(desk: Desk) -> None:
    """`sessions` ended after 1,000 without a word, and over a server an older one was not even found by its id."""
    made = keep(desk, MANY)
    assert [row["id"] for row in read(desk, "sessions")] == made[::-1]
    assert read(desk, "show", made[0])["title"] == "number 0"
    assert read(desk, "show", made[1][:10])["title"] == "number 1"
    assert read(desk, "show")["id"] == made[-1]


def test_all_that_was_said_is_shown_as_json_too(desk: Desk) -> None:
    """`show --json` had the first 1,000 messages, `show` all."""
    (made,) = keep(desk, 1, messages=1_005)
    shown = read(desk, "show", made)
    assert [message["content"] for message in shown["messages"]] == [f"word {n}" for n in range(1_005)]
    assert shown["cursor"] == 1_005


def test_a_conversation_lists_the_newest_sessions_and_says_how_many_more_there_are(desk: Desk) -> None:
    keep(desk, 25)
    with desk.terminal() as terminal:
        terminal.wait_for("new session")
        terminal.send("/sessions\r")
        terminal.wait_for("5 more: bowerbird sessions")
        assert "number 24" in terminal.text and "number 4 " not in terminal.text
