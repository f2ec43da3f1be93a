"""The list of landings goes on after its first page (SV-22, UI-31)."""

from pathlib import Path

import aiohttp
import pytest
from support.fake_models import FakeModels
from support.live_server import live_server
from support.patience import patience

from bowerbird.cli.client.http import Address, Requests
from bowerbird.cli.client.preferences import Preferences
from bowerbird.cli.client.server import ServerClient

pytestmark = pytest.mark.timeout(patience(60))
MANY = 103


async def test_the_hundred_and_first_landing_is_listed_like_the_first(tmp_path: Path) -> None:
    """The list ended after 100, and commands over a server knew of no older one."""
    (tmp_path / "workspace").mkdir()
    with FakeModels() as fake:
        async with live_server(tmp_path, fake) as live:
            for number in range(MANY):
                made = await live.http.post(
                    "/api/workspace/upload", files={"files": (f"{number}.txt", b"new\n")}
                )
                assert made.status_code == 200, made.text
            first = (await live.http.get("/api/landings")).json()
            rest = (await live.http.get("/api/landings", params={"before": first[-1]["id"]})).json()
            assert [len(first), len(rest)] == [100, MANY - 100]
            names = [row["entries"][0]["path"] for row in (*first, *rest)]
            assert names == [f"/{number}.txt" for number in reversed(range(MANY))]
            assert (await live.http.get("/api/landings", params={"before": rest[-1]["id"]})).json() == []
            unknown = await live.http.get("/api/landings", params={"before": "l_nothing"})
            assert unknown.status_code == 404
            async with aiohttp.ClientSession() as http:
                client = ServerClient(Requests(Address(live.address), http), Preferences())
                listed = await client.landings()
            assert [row["id"] for row in listed] == [row["id"] for row in (*first, *rest)]
