"""`Idempotency-Key`: a repeated mutating request gets the first answer, and nothing happens again (SV-3).

Here: recognising the repeat, keeping the answer. Not here: the table (`store/answers.py`).

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
from bowerbird.server.context import caller_of
from bowerbird.server.errors import invalid, methods_at, problem
from bowerbird.store.answers import StoredAnswer, find_answer, keep_answer

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from bowerbird.server.context import ServerContext

MUTATING = frozenset(("POST", "PUT", "PATCH", "DELETE"))
MAX_KEY = 255
MAX_ANSWER = 1 << 20
CONFLICT = 409  # refused in a state that may have changed since; other errors come again
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
        user = caller_of(HTTPConnection(scope)).user_id
        lock = self._running.setdefault((user, key), asyncio.Lock())
        async with lock:
            response = await self._answer(_Request(scope, receive), user, key)
        await response(scope, receive, send)

    async def _answer(self, request: "_Request", user: str, key: str) -> "_Captured | Response":
        known = await self._store.read(lambda c: find_answer(c, user, key))
        if known is not None:
            await request.drain()
            if known.fingerprint != request.fingerprint:
                return problem(
                    "key_reused", "this Idempotency-Key was used for another request; make a new one"
                ).response()
            headers = {"content-type": known.content_type, "idempotency-replayed": "true"}
            return Response(known.body, known.status, headers=headers)
        captured = _Captured()
        await self.app(request.scope, request.receive, captured.take)
        if captured.is_complete and (captured.status < 400 or captured.status == CONFLICT):
            await request.drain()
            if not request.broken and len(captured.body) <= MAX_ANSWER:
                row = StoredAnswer(
                    user_id=user,
                    key=key,
                    fingerprint=request.fingerprint,
                    status=captured.status,
                    content_type=captured.content_type,
                    body=captured.body.decode("utf-8", "surrogateescape"),
                    at=now_iso(),
                )
                await self._store.write(lambda c: keep_answer(c, row))
        return captured


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

    def __post_init__(self) -> None:
        scope = self.scope
        line = f"{scope['method']} {scope['path']}?{scope['query_string'].decode('latin-1')}\n"
        self._hash.update(line.encode("utf-8", "surrogateescape"))

    @property
    def fingerprint(self) -> str:
        return str(self._hash.hexdigest())

    async def receive(self) -> "Message":
        message = await self._receive()
        if message["type"] == "http.request":
            self._hash.update(message.get("body", b""))
            self._ended = not message.get("more_body", False)
        elif message["type"] == "http.disconnect" and not self._ended:
            self.broken = self._ended = True
        return message

    async def drain(self) -> None:
        """Read what the route left of the body: the fingerprint is of all of it."""
        while not self._ended:
            await self.receive()


@dataclass(slots=True)
class _Captured:
    """An answer that is held back until it is stored."""

    messages: list["Message"] = field(default_factory=list["Message"])
    is_complete: bool = False

    async def take(self, message: "Message") -> None:
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
