"""Ids of conversations: what cannot be one is refused where it enters, and an old one breaks no start."""

from pathlib import Path

import pytest
from sqlalchemy import Connection, delete, insert, select
from support.fake_models import FakeModels
from support.sessions import place

from bowerbird.core.errors import InvalidThreadId
from bowerbird.sessions.values import NewSession
from bowerbird.store.sql.tables import sessions

ODD = ["x" * 300, "../../out", "/etc/out", "a\0b", ".hidden", "a b", "ä", "a/b", "\ud800"]


@pytest.mark.parametrize("thread_id", ODD)
async def test_an_id_that_cannot_be_one_is_refused_and_leaves_nothing(
    tmp_path: Path, fake: FakeModels, thread_id: str
) -> None:
    async with place(tmp_path, fake) as home:
        branches = set((tmp_path / "data").rglob("b_*"))
        with pytest.raises(InvalidThreadId):
            await home.service.create(NewSession(thread_id=thread_id))
        assert await home.service.list() == []
        assert set((tmp_path / "data").rglob("b_*")) == branches


@pytest.mark.parametrize("thread_id", ["x" * 300, "../../out", "/tmp/out-of-the-way"])
async def test_an_id_that_was_accepted_once_keeps_its_files_in_their_place_and_breaks_no_start(
    tmp_path: Path, fake: FakeModels, thread_id: str
) -> None:
    """A database of before holds it; the conversation goes on, and is exported."""
    fake.script({"text": "hi"}, {"text": "hi again"})
    async with place(tmp_path, fake) as home:
        made = await home.session()

        def rename(connection: Connection) -> None:
            row = dict(connection.execute(select(sessions)).mappings().one())
            connection.execute(delete(sessions))
            connection.execute(insert(sessions).values(row | {"thread_id": thread_id}))

        await home.store.write(rename)
        await home.ask(thread_id, "hello")
        assert made != thread_id
    before = {path for path in tmp_path.rglob("*") if "data" not in path.parts}
    async with place(tmp_path, fake) as home:
        assert [info.thread_id for info in await home.service.list()] == [thread_id]
        assert (await home.ask(thread_id, "again")).state == "done"
        logs = sorted((home.store.data_dir / "sessions").glob("id-*.jsonl"))
        assert len(logs) == 1 and "again" in logs[0].read_text()
    assert {path for path in tmp_path.rglob("*") if "data" not in path.parts} == before
