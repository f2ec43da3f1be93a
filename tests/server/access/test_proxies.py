"""Behind a reverse proxy: whose word about the client is taken (team finding 10)."""

import asyncio
from pathlib import Path

import pytest
from support.fake_models import FakeModels
from support.live_server import LiveServer, live_server

from bowerbird.core.errors import ConfigError
from bowerbird.server.access.origins import Names

WRONG = {"Authorization": "Bearer bb_wrong"}


async def wrong(server: LiveServer, address: str) -> int:
    headers = {**WRONG, "X-Forwarded-For": address}
    return (await server.http.get("/api/conversations", headers=headers)).status_code


async def test_each_person_behind_a_trusted_proxy_has_their_own_rates(
    tmp_path: Path, fake: FakeModels
) -> None:
    """Old: five wrong tokens of anybody, and everybody's were answered 429."""
    async with live_server(
        tmp_path, fake, server__auth="token", server__trusted_proxies=("127.0.0.0/8",)
    ) as server:
        first = await asyncio.gather(*(wrong(server, "198.51.100.7") for _ in range(8)))
        assert first.count(429) == 3
        assert await wrong(server, "198.51.100.8") == 401
        assert await wrong(server, "203.0.113.9, 198.51.100.7") == 429, "the last that is not trusted counts"


async def test_nobody_else_names_an_address(tmp_path: Path, fake: FakeModels) -> None:
    async with live_server(tmp_path, fake, server__auth="token") as server:
        statuses = [await wrong(server, f"198.51.100.{n}") for n in range(8)]
        assert statuses.count(429) == 3


async def test_a_page_behind_nginx_with_host_speaks(tmp_path: Path, fake: FakeModels) -> None:
    """`proxy_set_header Host $host` leaves the port out: every call of the page was 403."""
    asked = {"Host": "birds.example", "Origin": "https://birds.example:25443"}
    flags = {"server__hosts": ("birds.example",)}
    async with live_server(tmp_path / "a", fake, server__trusted_proxies=("127.0.0.1",), **flags) as server:
        assert (await server.http.get("/api/tools", headers=asked)).status_code == 200
        foreign = {**asked, "Origin": "https://evil.example:25443"}
        assert (await server.http.get("/api/tools", headers=foreign)).status_code == 403
        other_port = {**asked, "X-Forwarded-Port": "443"}
        assert (await server.http.get("/api/tools", headers=other_port)).status_code == 403
    async with live_server(tmp_path / "b", fake, **flags) as server:
        refused = await server.http.get("/api/tools", headers=asked)
        assert refused.status_code == 403
        assert "server.trusted_proxies" in refused.json()["detail"]


@pytest.mark.parametrize(
    ("host", "port", "admitted"),
    [
        ("birds.example", None, True),
        ("birds.example", "444", True),
        ("birds.example", "443", False),
        ("birds.example:443", None, False),
        ("birds.example:444", "1", True),
        ("other.example", None, False),
    ],
)
def test_which_port_a_proxied_name_stands_for(host: str, port: str | None, *, admitted: bool) -> None:
    names = Names("127.0.0.1", hosts=("birds.example",))
    assert names.admits_origin("https://birds.example:444", host, proxied=True, port=port) is admitted


async def test_what_is_no_address_is_refused_at_the_start(tmp_path: Path, fake: FakeModels) -> None:
    with pytest.raises(ConfigError, match=r"trusted_proxies.*an IP address or a network"):
        async with live_server(tmp_path, fake, server__trusted_proxies=("nginx",)):
            pass
