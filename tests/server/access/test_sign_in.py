"""Sign-in with an OpenID provider: a real one on loopback, with real signatures (SV-55)."""

import asyncio
import json
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from support.fake_models import FakeModels
from support.live_server import live_server
from support.patience import HANG_S
from websockets.exceptions import ConnectionClosed

from bowerbird.server.access import oidc
from bowerbird.server.access.oidc import Refused, SignIn
from bowerbird.store.rows.tokens import make_token

CLIENT = "client-1.apps.example"


@dataclass
class Issuer:
    """Publishes keys and signs tokens."""

    url: str = ""
    keys: dict[str, rsa.RSAPrivateKey] = field(default_factory=dict)
    asked: int = 0

    def add_key(self, key_id: str) -> None:
        self.keys[key_id] = rsa.generate_private_key(public_exponent=65537, key_size=2048)

    def jwks(self) -> dict[str, Any]:
        rows = []
        for key_id, key in self.keys.items():
            row = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(key.public_key()))
            rows.append({**row, "kid": key_id, "use": "sig", "alg": "RS256"})
        return {"keys": rows}

    def token(self, key_id: str = "k1", *, key: Any = None, algorithm: str = "RS256", **claims: Any) -> str:
        body = {
            "iss": self.url, "aud": CLIENT, "sub": "123", "exp": time.time() + 60, "email": "ann@birds.example",
            "email_verified": True, "name": "Ann",
        } | claims  # fmt: skip
        body = {name: value for name, value in body.items() if value is not None}
        return jwt.encode(body, key or self.keys[key_id], algorithm=algorithm, headers={"kid": key_id})


@pytest.fixture(scope="module")
def issuer() -> Iterator[Issuer]:
    made = Issuer()
    made.add_key("k1")

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            made.asked += 1
            found = made.jwks() if self.path == "/keys" else {"jwks_uri": made.url + "/keys"}
            content = json.dumps(found).encode()
            self.send_response(200)
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    made.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield made
    server.shutdown()
    thread.join()
    server.server_close()


def sign_in(issuer: Issuer, **admitted: Any) -> SignIn:
    return SignIn(issuer.url, CLIENT, **(admitted or {"domains": ["birds.example"]}))


async def test_a_valid_token_is_its_owner(issuer: Issuer) -> None:
    caller, until = await sign_in(issuer).caller(issuer.token())
    assert (caller.user_id, caller.role, caller.name) == ("ann@birds.example", "user", "Ann")
    assert until > time.time()
    assert (await sign_in(issuer, emails=["ANN@birds.example"]).caller(issuer.token()))[0] == caller


@pytest.mark.parametrize(
    "claims",
    [
        pytest.param({"iss": "https://evil.example"}, id="issuer"),
        pytest.param({"aud": "another"}, id="audience"),
        pytest.param({"exp": 1_000_000_000}, id="expired"),
        pytest.param({"exp": None}, id="no expiry"),
        pytest.param({"email_verified": False}, id="e-mail not verified"),
        pytest.param({"email_verified": None}, id="e-mail said to be nothing"),
        pytest.param({"email": None}, id="no e-mail"),
        pytest.param({"email": "ann@evil.example"}, id="another domain"),
        pytest.param({"email": "ann@birds.example.evil.example"}, id="a longer domain"),
        pytest.param({"email": "birds.example"}, id="no address"),
        pytest.param({"sub": None}, id="no subject"),
    ],
)
async def test_anything_else_admits_nobody(issuer: Issuer, claims: dict[str, Any]) -> None:
    with pytest.raises(Refused):
        await sign_in(issuer).caller(issuer.token(**claims))


async def test_signatures_that_prove_nothing(issuer: Issuer) -> None:
    own = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    good = issuer.token()
    head, body, signature = good.split(".")
    forged = [
        issuer.token(key=own),
        issuer.token(key="s" * 40, algorithm="HS256"),
        jwt.encode({"sub": "1"}, None, algorithm="none"),
        f"{head}.{body}.",
        f"{head}.{body}.{signature[:-4]}AAAA",
        "a.b.c", "", "x" * 20_000, ".",
    ]  # fmt: skip
    for token in forged:
        with pytest.raises(Refused):
            await sign_in(issuer).caller(token)


async def test_an_empty_list_admits_nobody(issuer: Issuer) -> None:
    with pytest.raises(Refused):
        await SignIn(issuer.url, CLIENT).caller(issuer.token())


async def test_an_unknown_key_id_fetches_the_keys_anew_but_not_at_will(
    issuer: Issuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    signed = sign_in(issuer)
    await signed.caller(issuer.token())
    issuer.add_key("k2")
    before = issuer.asked
    with pytest.raises(Refused):  # the keys were fetched a moment ago
        await signed.caller(issuer.token("k2"))
    assert issuer.asked == before
    monkeypatch.setattr(oidc, "AGAIN_S", 0.0)
    assert (await signed.caller(issuer.token("k2")))[0].name == "Ann"
    await signed.caller(issuer.token("k1"))
    assert issuer.asked == before + 2


async def test_a_server_with_sign_in(tmp_path: Path, fake: FakeModels, issuer: Issuer) -> None:
    """SV-54: the client id alone turns it on."""
    async with live_server(
        tmp_path, fake, server__google_client_id=CLIENT, server__oidc_issuer=issuer.url,
        server__allowed_emails=("ann@birds.example",),
    ) as server:  # fmt: skip
        assert (await server.http.get("/api/auth/config")).json() == {
            "enabled": True, "google_client_id": CLIENT,
        }  # fmt: skip
        assert (await server.http.get("/api/tools")).status_code == 401
        headers = {"Authorization": f"Bearer {issuer.token()}"}
        me = (await server.http.get("/api/auth/me", headers=headers)).json()
        assert me == {
            "authenticated": True, "email": "ann@birds.example", "name": "Ann", "role": "user", "user": "ann@birds.example",
        }  # fmt: skip
        other = {"Authorization": f"Bearer {issuer.token(email='bob@birds.example')}"}
        assert (await server.http.get("/api/tools", headers=other)).status_code == 401
        conversation = await server.conversation(headers=headers)
        soon = {"Authorization": f"Bearer {issuer.token(exp=time.time() + 1)}"}
        async with server.socket(conversation, additional_headers=soon) as socket:
            event = json.loads(await socket.recv())  # closed when the sign-in is over
        assert event["code"] == "unauthorized"


@pytest.mark.parametrize(
    "rules",
    [
        pytest.param({"allowed_emails": ("bob@birds.example",)}, id="taken out of the list"),
        pytest.param({"denied_users": ("Ann@birds.example",)}, id="denied"),
    ],
)
async def test_whoever_may_no_longer_sign_in_is_out_at_once(
    tmp_path: Path, fake: FakeModels, issuer: Issuer, rules: dict[str, Any]
) -> None:
    """Team 4b: after a reload HTTP said 401, but the open socket took new turns for up to an hour (D-31)."""
    async with live_server(
        tmp_path, fake, server__google_client_id=CLIENT, server__oidc_issuer=issuer.url,
        server__allowed_emails=("ann@birds.example", "bob@birds.example"),
    ) as server:  # fmt: skip
        headers = {"Authorization": f"Bearer {issuer.token()}"}
        bob = {"Authorization": f"Bearer {issuer.token(email='bob@birds.example')}"}
        conversation = await server.conversation(headers=headers)
        bobs = await server.conversation(headers=bob)
        async with (
            server.socket(conversation, "v=2", additional_headers=headers) as socket,
            server.socket(bobs, "v=2", additional_headers=bob) as other,
        ):
            ticket = (await server.http.post("/api/auth/ticket", headers=headers)).json()["ticket"]
            in_force = server.context.in_force
            in_force.settings = replace(in_force.settings, **rules)
            event: dict[str, Any] = {}
            async with asyncio.timeout(HANG_S):
                while event.get("code") != "unauthorized":
                    event = json.loads(await socket.recv())
                with pytest.raises(ConnectionClosed) as closed:
                    await socket.recv()
                assert closed.value.rcvd is not None and closed.value.rcvd.code == 4001
            async with server.socket(conversation, f"ticket={ticket}") as again:
                assert json.loads(await again.recv())["code"] == "unauthorized"
            await other.send(json.dumps({"type": "ping"}))
            async with asyncio.timeout(HANG_S):
                while event["type"] != "pong":
                    event = json.loads(await other.recv())
        assert (await server.http.get("/api/tools", headers=headers)).status_code == 401
        assert (await server.http.get("/api/tools", headers=bob)).status_code == 200


async def test_a_denied_user_is_out_with_tokens_and_event_streams_too(
    tmp_path: Path, fake: FakeModels
) -> None:
    """Team 4a: nothing kept a person out who had another entrance."""
    async with live_server(tmp_path, fake, server__auth="token") as server:
        _, secret = await server.context.store.write(lambda c: make_token(c, "gus", "user", user="gus"))
        headers = {"Authorization": f"Bearer {secret}"}
        conversation = await server.conversation(headers=headers)
        path = f"/api/conversations/{conversation}/events"
        async with server.http.stream("GET", path, headers=headers, params={"v": 2}) as stream:
            in_force = server.context.in_force
            in_force.settings = replace(in_force.settings, denied_users=("gus",))
            async with asyncio.timeout(HANG_S):
                said = [line async for line in stream.aiter_lines()]  # until it is ended
        assert any("unauthorized" in line for line in said)
        assert (await server.http.get("/api/tools", headers=headers)).status_code == 401
