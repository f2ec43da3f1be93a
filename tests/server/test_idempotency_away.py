"""SV-3 while the database server is away: whoever has a key asks again, and need not wait for it."""

import asyncio
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from support.patience import HANG_S
from support.postgres import postgres_server
from support.stores import opened

from bowerbird.core.errors import StoreBusy
from bowerbird.server.http.idempotency import Idempotency
from bowerbird.store.sql import patience

PATH = "/api/conversations/0123456789ab/messages"


async def test_a_request_with_a_key_is_not_kept_waiting_for_a_database_that_is_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SV-3: it waited 90 seconds, where others were told within five to try again."""
    monkeypatch.setattr(patience, "LOOKING_S", 0.2)
    with postgres_server() as database:
        url = await database.database()
        async with opened(tmp_path, url=url) as store:
            caller = SimpleNamespace(user_id="ann")
            state = SimpleNamespace(patterns=[(re.compile(PATH), ["POST"])])
            scope = {
                "type": "http", "method": "POST", "path": PATH, "query_string": b"",
                "headers": [(b"idempotency-key", b"once")], "state": {"caller": caller},
                "app": SimpleNamespace(state=state),
            }  # fmt: skip

            async def never(*_: Any) -> None:
                raise AssertionError("nothing is done before it is known that it was not done before")

            door = Idempotency(never, cast("Any", SimpleNamespace(store=store)))
            await asyncio.to_thread(database.stop, crash=True)
            async with asyncio.timeout(HANG_S):
                with pytest.raises(StoreBusy):
                    await door(scope, never, never)
            assert patience.READ_PATIENCE_S.get() > HANG_S, "what comes later in this request waits as before"
            await asyncio.to_thread(database.start)
