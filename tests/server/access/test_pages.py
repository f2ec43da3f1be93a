"""Host, Origin, CORS, headers, rates, overload (SV-58 … SV-61)."""

import asyncio
import time
from pathlib import Path

import pytest
from support.fake_models import FakeModels
from support.live_server import live_server, one, say
from support.patience import HANG_S

from bowerbird.server.access.gate import Gate
from bowerbird.server.access.origins import Names, is_loopback
from bowerbird.server.access.overload import Overload
from bowerbird.server.access.rates import MOST_KEYS, Buckets, Rate
from bowerbird.store.rows.tokens import make_token

LOCAL = Names("127.0.0.1")
PUBLIC = Names("0.0.0.0", hosts=("birds.example", "b.example:8443"), origins=("https://ui.example",))


@pytest.mark.parametrize(
    ("names", "host", "reached", "admitted"),
    [
        (LOCAL, "127.0.0.1:8000", "127.0.0.1", True),
        (LOCAL, "localhost", "127.0.0.1", True),
        (LOCAL, "LOCALHOST.:80", "127.0.0.1", True),
        (LOCAL, "[::1]:8000", "::1", True),
        (LOCAL, "evil.example", "127.0.0.1", False),
        (LOCAL, "127.0.0.1.evil.example", "127.0.0.1", False),
        (LOCAL, "localhost.evil.example", "127.0.0.1", False),
        (LOCAL, "192.168.0.5", "127.0.0.1", False),
        (LOCAL, "", "127.0.0.1", False),
        (LOCAL, None, "127.0.0.1", False),
        (LOCAL, "user@localhost", "127.0.0.1", False),
        (LOCAL, "localhost:port", "127.0.0.1", False),
        (LOCAL, "[::1", "::1", False),
        (PUBLIC, "birds.example:8000", "10.0.0.2", True),
        (PUBLIC, "b.example:8443", "10.0.0.2", True),
        (PUBLIC, "b.example:80", "10.0.0.2", False),
        (PUBLIC, "10.0.0.2:8000", "10.0.0.2", True),
        (PUBLIC, "10.0.0.3:8000", "10.0.0.2", False),
        (Names("192.168.0.5"), "192.168.0.5:8000", "192.168.0.5", True),
    ],
)
def test_which_host_is_ours(names: Names, host: str | None, reached: str, *, admitted: bool) -> None:
    assert names.admits_host(host, reached) is admitted


@pytest.mark.parametrize(
    ("names", "origin", "host", "admitted"),
    [
        (LOCAL, "http://127.0.0.1:8000", "127.0.0.1:8000", True),
        (LOCAL, "https://127.0.0.1:8000", "127.0.0.1:8000", True),
        (LOCAL, "http://localhost:8000", "127.0.0.1:8000", False),
        (LOCAL, "http://localhost:3500", "127.0.0.1:8000", True),
        (LOCAL, "http://127.0.0.1:3501", "127.0.0.1:8000", True),
        (LOCAL, "http://127.0.0.1:3502", "127.0.0.1:8000", False),
        (LOCAL, "https://localhost:3500", "127.0.0.1:8000", False),
        (PUBLIC, "http://localhost:3500", "birds.example", False),
        (PUBLIC, "https://ui.example", "birds.example", True),
        (PUBLIC, "https://ui.example.evil.example", "birds.example", False),
        (PUBLIC, "https://birds.example", "birds.example", True),
        (PUBLIC, "https://birds.example:444", "birds.example", False),
        (LOCAL, "null", "127.0.0.1", False),
        (LOCAL, "file://", "127.0.0.1", False),
        (LOCAL, "http://127.0.0.1:bad", "127.0.0.1", False),
        (LOCAL, "", "127.0.0.1", False),
    ],
)
def test_which_page_may_speak(names: Names, origin: str, host: str, *, admitted: bool) -> None:
    assert names.admits_origin(origin, host) is admitted


def test_loopback_addresses() -> None:
    assert is_loopback("127.9.9.9")
    assert not is_loopback("0.0.0.0")


async def test_an_admitted_origin_is_named_never_a_star(tmp_path: Path, fake: FakeModels) -> None:
    """SV-58: preflights are kept for 600 s."""
    page = {"Origin": "http://localhost:3500"}
    async with live_server(tmp_path, fake, server__auth="token") as server:
        ask = {
            **page,
            "Access-Control-Request-Method": "POST",
            "Access-Control-Request-Headers": "authorization",
        }
        before = await server.http.options("/api/chat", headers=ask)
        assert before.status_code == 204
        assert before.headers["access-control-max-age"] == "600"
        assert before.headers["access-control-allow-origin"] == page["Origin"]
        assert "authorization" in before.headers["access-control-allow-headers"]
        refused = await server.http.post("/api/chat", headers=page)
        assert refused.status_code == 401
        assert refused.headers["access-control-allow-origin"] == page["Origin"]
        assert refused.headers["access-control-allow-credentials"] == "true"
        assert "Origin" in refused.headers["vary"]
        foreign = await server.http.options("/api/chat", headers={**ask, "Origin": "https://evil.example"})
        assert foreign.status_code == 403
        assert "access-control-allow-origin" not in foreign.headers


async def test_every_answer_carries_the_headers(tmp_path: Path, fake: FakeModels) -> None:
    """SV-59."""
    async with live_server(tmp_path, fake) as server:
        for path in ("/health", "/api/nothing", "/api/tools", "/docs"):
            headers = (await server.http.get(path)).headers
            assert headers["x-content-type-options"] == "nosniff"
            assert headers["referrer-policy"] == "no-referrer"
            policy = headers["content-security-policy"]
            assert "frame-ancestors 'none'" in policy
            scripts = next(rule for rule in policy.split("; ") if rule.startswith("script-src"))
            assert "unsafe" not in scripts
            assert "access-control-allow-origin" not in headers


async def test_too_many_requests_are_told_when_to_come_back(tmp_path: Path, fake: FakeModels) -> None:
    """SV-60: 20 requests/s, burst 60, per user."""
    async with live_server(tmp_path, fake, server__auth="token") as server:
        made = [await server.context.store.write(lambda c, n=n: make_token(c, n, "user")) for n in ("a", "b")]
        one_user, other = ({"Authorization": f"Bearer {secret}"} for _, secret in made)
        answers = await asyncio.gather(
            *(server.http.get("/api/auth/me", headers=one_user) for _ in range(150))
        )
        refused = [answer for answer in answers if answer.status_code == 429]
        assert refused
        assert sum(answer.status_code == 200 for answer in answers) >= 60
        assert refused[0].json()["code"] == "rate_limited"
        assert int(refused[0].headers["retry-after"]) >= 1
        assert (await server.http.get("/api/auth/me", headers=other)).status_code == 200
        assert (await server.http.get("/health")).status_code == 200


def test_a_bucket_fills_again_and_forgets_the_oldest_key() -> None:
    buckets = Buckets(Rate(2.0, 3))
    assert [buckets.take("a", 0.0) for _ in range(4)] == [0, 0, 0, 1]
    assert buckets.take("a", 0.5) == 0
    assert buckets.wait("b", 0.5) == 0
    for n in range(MOST_KEYS):
        buckets.take(str(n), 1.0)
    assert [buckets.take("a", 1.0) for _ in range(4)] == [0, 0, 0, 1]


async def test_without_room_new_work_is_refused_and_the_rest_goes_on(
    tmp_path: Path, fake: FakeModels
) -> None:
    """SV-61: memory over the limit."""
    fake.script({"deltas": 5, "hang_after": 2})
    async with live_server(tmp_path, fake) as server:
        conversation = await server.conversation()
        async with server.socket(conversation) as socket:
            await say(socket, "hang")
            await one(socket)
            overload = _overload_of(server)
            overload._max_rss = 1  # pyright: ignore[reportPrivateUsage]
            refused = await server.http.post("/api/chat", json={})
            assert refused.status_code == 503
            assert refused.json()["code"] == "overloaded"
            assert refused.headers["retry-after"]
            await say(socket, "more")
            while (event := await one(socket))["type"] != "error":
                pass
            assert (event["code"], event["retryable"]) == ("overloaded", True)
            assert (await server.http.get("/health")).status_code == 200
            assert (await server.http.get(f"/api/conversations/{conversation}")).status_code == 200
            await socket.send('{"type": "cancel"}')
            while (event := await one(socket))["type"] != "done":
                pass
            assert event["stop_reason"] == "cancelled"


async def test_a_loop_that_lags_again_and_again_refuses_new_work_until_it_keeps_up() -> None:
    """SV-61; one stall, say a first import, refuses nobody."""
    overload = Overload(0)
    assert overload.reason() is None
    for stalls in range(1, 4):
        time.sleep(0.7)  # noqa: ASYNC251  the loop is kept on purpose
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert (overload.reason() is None) is (stalls < 3)
    async with asyncio.timeout(HANG_S):
        while overload.reason() is not None:
            await asyncio.sleep(0.05)
    overload.close()


def _overload_of(server: object) -> Overload:
    layer = server.serving.app.middleware_stack  # type: ignore[attr-defined]
    while not isinstance(layer, Gate):
        layer = layer.app
    return layer._overload  # pyright: ignore[reportPrivateUsage]
