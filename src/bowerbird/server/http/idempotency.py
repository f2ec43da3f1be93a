"""`Idempotency-Key`: a repeated mutating request gets the first answer, and nothing happens again (SV-3).

Here: recognising the repeat, keeping the answer. Not here: the table (`store/rows/idempotent_answers.py`).

Bodies are hashed while they stream, so that an upload costs no memory. The answer is stored before it
is sent; a request that is repeated while the first one runs waits for it.
"""

import asyncio
import hashlib
import re
from collections.abc import MutableMapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from starlette.requests import HTTPConnection
from starlette.responses import Response

from bowerbird.core.timestamps import now_iso
from bowerbird.server.common.context import caller_of
from bowerbird.server.common.errors import invalid, methods_at, problem
from bowerbird.store.rows.idempotent_answers import StoredAnswer, find_answer, keep_answer
from bowerbird.store.sql.patience import only_looking

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from bowerbird.server.common.context import ServerContext

MUTATING = frozenset(("POST", "PUT", "PATCH", "DELETE"))
MAX_KEY = 255
MAX_ANSWER = 1 << 20
ACCEPTED = 202
CONFLICT = 409  # refused in a state that may have changed since; other errors come again
# Answers with a secret are shown once and never kept; a repeat changes nothing and says so.
SECRET = frozenset(("/api/auth/tokens",))
TICKET = "/api/auth/ticket"  # good once and for seconds: a repeat gets one of its own
SHOWN_ONCE = "this was done before, and its answer is shown once; make another with a new Idempotency-Key"
_SAID = re.compile(r"/api/conversations/[^/]+/messages")
_KEY = re.compile(rf"[!-~]{{1,{MAX_KEY}}}")


class Idempotency:
    """ASGI: the innermost layer, behind authentication: keys belong to their user."""

    def __init__(self, app: "ASGIApp", context: "ServerContext") -> None:
        self.app = app
        self._store = context.store
        self._running: MutableMapping[tuple[str, str], asyncio.Lock] = WeakValueDictionary()

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        is_mutating = scope["type"] == "http" and scope["method"] in MUTATING
        key = _key_of(scope) if is_mutating else None
        if key is None or scope["method"] not in methods_at(scope["app"], scope["path"]):
            await self.app(scope, receive, send)
            return
        if _KEY.fullmatch(key) is None:
            wrong = invalid(("header", "Idempotency-Key"), f"use 1 to {MAX_KEY} visible ASCII characters")
            await wrong.response()(scope, receive, send)
            return
        if scope["path"] == TICKET:
            await self.app(scope, receive, send)
            return
        user = caller_of(HTTPConnection(scope)).user_id
        lock = self._running.setdefault((user, key), asyncio.Lock())
        async with lock:
            response = await self._answer(_Request(scope, receive), user, key)
        await response(scope, receive, send)

    async def _answer(self, request: "_Request", user: str, key: str) -> "_Captured | Response":
        with only_looking():  # nothing was done yet: whoever has a key can safely ask again
            known = await self._store.read(lambda c: find_answer(c, user, key))
        if known is not None:
            await request.drain()
            if known.fingerprint != request.fingerprint:
                return problem(
                    "key_reused", "this Idempotency-Key was used for another request; make a new one"
                ).response()
            if known.status == ACCEPTED and request.waits:
                # The message is known by its key: what comes now is how its turn stands by now.
                return await self._passed_on(request.again())
            headers = {"content-type": known.content_type, "idempotency-replayed": "true"}
            return Response(known.body, known.status, headers=headers)
        captured = _Captured()
        await self.app(request.scope, request.receive, captured.take)
        if captured.is_complete and (captured.status < 400 or captured.status == CONFLICT):
            await request.drain()
            if not request.broken and len(captured.body) <= MAX_ANSWER:
                row = _row(request, user, key, captured)
                await self._store.write(lambda c: keep_answer(c, row))
        return captured

    async def _passed_on(self, request: "_Request") -> "_Captured":
        captured = _Captured(replayed=True)
        await self.app(request.scope, request.receive, captured.take)
        return captured


def _row(request: "_Request", user: str, key: str, captured: "_Captured") -> StoredAnswer:
    status, kind, body = captured.status, captured.content_type, captured.body
    if request.scope["path"] in SECRET and status < CONFLICT:
        shown = problem("conflict", SHOWN_ONCE).response()
        status, kind, body = shown.status_code, "application/json", bytes(shown.body)
    return StoredAnswer(
        user_id=user,
        key=key,
        fingerprint=request.fingerprint,
        status=status,
        content_type=kind,
        body=body.decode("utf-8", "surrogateescape"),
        at=now_iso(),
    )


def _key_of(scope: "Scope") -> str | None:
    for name, value in scope["headers"]:
        if name == b"idempotency-key":
            return value.decode("latin-1")
    return None


@dataclass(slots=True)
class _Request:
    """A request whose body is hashed as it passes."""

    scope: "Scope"
    _receive: "Receive"
    broken: bool = False
    _ended: bool = False
    _hash: Any = field(default_factory=hashlib.sha256)
    _seen: "list[Message]" = field(default_factory=list["Message"])

    def __post_init__(self) -> None:
        scope = self.scope
        # How long somebody waits for the answer is no part of what they asked.
        asked = scope["query_string"].decode("latin-1").split("&")
        query = "&".join(part for part in asked if part.partition("=")[0] != "wait")
        line = f"{scope['method']} {scope['path']}?{query}\n"
        self._hash.update(line.encode("utf-8", "surrogateescape"))

    @property
    def waits(self) -> bool:
        """Whether it says something and asks for the answer."""
        asked = self.scope["query_string"].decode("latin-1").split("&")
        waits = any(part.startswith("wait=") for part in asked)
        return waits and _SAID.fullmatch(self.scope["path"]) is not None

    @property
    def fingerprint(self) -> str:
        return str(self._hash.hexdigest())

    async def receive(self) -> "Message":
        message = await self._receive()
        if message["type"] == "http.request":
            self._hash.update(message.get("body", b""))
            if _SAID.fullmatch(self.scope["path"]):
                self._seen.append(message)
            self._ended = not message.get("more_body", False)
        elif message["type"] == "http.disconnect" and not self._ended:
            self.broken = self._ended = True
        return message

    def again(self) -> "_Request":
        """Return the same request, to be read from its beginning."""
        read = iter(self._seen)

        async def receive() -> "Message":
            message = next(read, None)
            return await self._receive() if message is None else message

        return _Request(self.scope, receive)

    async def drain(self) -> None:
        """Read what the route left of the body: the fingerprint is of all of it."""
        while not self._ended:
            await self.receive()


@dataclass(slots=True)
class _Captured:
    """An answer that is held back until it is stored."""

    messages: list["Message"] = field(default_factory=list["Message"])
    is_complete: bool = False
    replayed: bool = False

    async def take(self, message: "Message") -> None:
        if self.replayed and message["type"] == "http.response.start":
            message = {
                **message,
                "headers": [*message.get("headers", ()), (b"idempotency-replayed", b"true")],
            }
        self.messages.append(message)
        if message["type"] == "http.response.body" and not message.get("more_body", False):
            self.is_complete = True

    @property
    def status(self) -> int:
        return int(self.messages[0]["status"])

    @property
    def content_type(self) -> str:
        for name, value in self.messages[0].get("headers", ()):
            if name == b"content-type":
                return bytes(value).decode("latin-1")
        return "application/json"

    @property
    def body(self) -> bytes:
        return b"".join(bytes(m.get("body", b"")) for m in self.messages[1:])

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        for message in self.messages:
            await send(message)
