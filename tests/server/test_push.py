"""Web push from a real server to a real push service on loopback (UI-95)."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from support.fake_models import FakeModels
from support.patience import patience
from support.push_service import PushService, sender_of
from support.servers import TestServer, begin, say, serve, until

from bowerbird.store.rows.push import PushRow, subscriptions_of
from bowerbird.store.rows.tokens import make_token, revoke

pytestmark = pytest.mark.timeout(patience(60))

WRITE = {"name": "write_file", "input": {"path": "/a", "content": "a"}}


@pytest.fixture
def service() -> Iterator[PushService]:
    with PushService() as running:
        yield running


def rows(server: TestServer, owner: str = "") -> list[PushRow]:
    return server.run(server.serving.context.store.write(lambda c: subscriptions_of(c, owner)))


def flags(service: PushService, **more: Any) -> dict[str, Any]:
    return {"push.allow_hosts": [service.host], "push.after": 0, **more}


def subscribe(http: httpx.Client, subscription: dict[str, Any]) -> httpx.Response:
    return http.put("/api/push/subscription", json=subscription)


def test_a_browser_hears_of_a_question_and_of_the_end_and_nothing_else(
    tmp_path: Path, service: PushService
) -> None:
    """UI-95: what arrives names the conversation only; the sender is the one that was subscribed to."""
    with (
        FakeModels() as fake,
        serve(tmp_path, fake=fake, flags=flags(service)) as server,
        server.http as http,
    ):
        fake.script({"text": "The secret is 42."}, {"tools": [WRITE]}, {"text": "Thanks."})
        key = http.get("/api/push/key").json()["key"]
        assert key == http.get("/api/push/key").json()["key"]
        assert subscribe(http, service.subscription()).status_code == 200
        talk = begin(http)
        say(http, talk, "hello")
        service.wait(1)
        assert service.messages == [{"kind": "done", "conversation": talk}]
        sender, claims = sender_of(service.headers[0], f"http://{service.host}")
        assert sender == key and claims["sub"].startswith("mailto:")
        assert service.headers[0]["content-encoding"] == "aes128gcm" and int(service.headers[0]["ttl"]) > 0
        asking = begin(http, enable_approval=True)
        http.post(f"/api/conversations/{asking}/messages", json={"content": "write"})
        service.wait(2)
        assert service.messages[1] == {"kind": "answer", "conversation": asking}
        assert service.headers[1]["urgency"] == "high"


def test_who_signed_out_or_lost_the_token_is_told_no_longer(tmp_path: Path, service: PushService) -> None:
    """UI-95: removed at sign-out, with its token, and by the service's 410."""
    with FakeModels() as fake:
        fake.script({"text": "Hi."})
        with serve(tmp_path, fake=fake, flags=flags(service, **{"server.auth": "token"})) as server:
            store = server.serving.context.store
            row, secret = server.run(store.write(lambda c: make_token(c, "ann", "user", user="ann")))
            _, other = server.run(store.write(lambda c: make_token(c, "bob", "user", user="bob")))
            with server.http as http:
                http.headers["authorization"] = f"Bearer {secret}"
                one, two = service.subscription(), service.subscription("two")
                assert subscribe(http, one).status_code == subscribe(http, two).status_code == 200
                theirs = {"authorization": f"Bearer {other}"}
                gone = http.post("/api/push/unsubscribe", json={"endpoint": one["endpoint"]}, headers=theirs)
                assert gone.json() == {"status": "unknown"} and len(rows(server, "ann")) == 2
                gone = http.post("/api/push/unsubscribe", json={"endpoint": one["endpoint"]})
                assert gone.json() == {"status": "removed"}
                assert [row.endpoint for row in rows(server, "ann")] == [two["endpoint"]]
                service.status = 410
                say(http, begin(http), "hello")
                service.wait(1)
                until(lambda: rows(server, "ann") == [], "the browser that is gone is forgotten")
                service.status = 201
                subscribe(http, two)
                assert rows(server, "bob") == [] and len(rows(server, "ann")) == 1
                server.run(store.write(lambda c: revoke(c, row.token_id)))
                assert rows(server, "ann") == []


def test_a_service_that_is_away_is_asked_again(tmp_path: Path, service: PushService) -> None:
    """UI-95: through the outbox: a 503 is no end."""
    with (
        FakeModels() as fake,
        serve(tmp_path, fake=fake, flags=flags(service)) as server,
        server.http as http,
    ):
        fake.script({"text": "Hi."})
        service.status = 503
        subscribe(http, service.subscription())
        say(http, begin(http), "hello")
        service.wait(1)
        service.status = 201
        service.wait(2)
        assert service.messages[0] == service.messages[1] and len(rows(server)) == 1


@pytest.mark.parametrize(
    ("endpoint", "why"),
    [
        ("http://push.example/x", "https"),
        ("https://user:pw@push.example/x", "user name"),
        ("https://push.example:5432/x", "port"),
        ("file:///etc/passwd", "http"),
        ("https:///x", "host"),
    ],
)  # fmt: skip
def test_addresses_that_no_push_service_has_are_refused(
    tmp_path: Path, service: PushService, endpoint: str, why: str
) -> None:
    """UI-95: whoever may subscribe must not make the server ask its own network."""
    with serve(tmp_path) as server, server.http as http:
        answer = subscribe(http, {**service.subscription(), "endpoint": endpoint})
        assert answer.status_code == 422 and why in answer.text and rows(server) == []


def test_a_private_address_is_never_connected_to(tmp_path: Path, service: PushService) -> None:
    """UI-95: a public name may lead into the network: the address itself is judged, and the browser dropped."""
    with (
        FakeModels() as fake,
        serve(tmp_path, fake=fake, flags={"push.after": 0}) as server,
        server.http as http,
    ):
        fake.script({"text": "Hi."})
        port = service.host.rpartition(":")[2]
        endpoint = f"https://127.0.0.1:{port}/x"
        assert subscribe(http, {**service.subscription(), "endpoint": endpoint}).status_code == 200
        say(http, begin(http), "hello")
        until(lambda: rows(server) == [], "it is forgotten")
        assert service.headers == []


def test_short_turns_end_untold_and_push_can_be_off(tmp_path: Path, service: PushService) -> None:
    """UI-95."""
    off = {"push.enabled": False}
    with serve(tmp_path / "off", flags=off) as server, server.http as http:
        assert http.get("/api/push/key").status_code == 422
        assert subscribe(http, service.subscription()).status_code == 422
    with (
        FakeModels() as fake,
        serve(tmp_path, fake=fake, flags={"push.allow_hosts": [service.host]}) as server,
    ):
        fake.script({"text": "Hi."}, {"tools": [WRITE]}, {"text": "Thanks."})
        with server.http as http:
            subscribe(http, service.subscription())
            say(http, begin(http), "hello")
            asking = begin(http, enable_approval=True)
            http.post(f"/api/conversations/{asking}/messages", json={"content": "write"})
            service.wait(1)
            assert [message["kind"] for message in service.messages] == ["answer"]
