"""A Bot API server on loopback: a real HTTP server that speaks as Telegram does, and can be made to fail.

Here: updates with offsets and long polls, messages, edits, files; strict about HTML. Not here: the product.

Every call is kept in `calls`. `script(method, …)` makes the next call of a method fail.
"""

import asyncio
import json
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web
from support import telegram_html
from support.patience import HANG_S

TOKEN = "123456:TESTtokenTESTtokenTESTtokenTESTtoken"
BOT_ID = 123456
BOT_NAME = "bower_bot"


@dataclass
class Call:
    """One request as it arrived; `file` is the content of an upload."""

    method: str
    params: dict[str, Any]
    file: bytes | None = None
    file_name: str = ""

    @property
    def text(self) -> str:
        return str(self.params.get("text", ""))


class ApiError(Exception):
    """An answer that is none."""

    def __init__(self, status: int, description: str, parameters: dict[str, Any] | None = None) -> None:
        super().__init__(description)
        self.status, self.parameters = status, parameters


@dataclass
class FakeTelegram:
    """The state of the server."""

    url: str = ""
    calls: list[Call] = field(default_factory=list)
    updates: list[Any] = field(default_factory=list)
    messages: dict[tuple[int, int], dict[str, Any]] = field(default_factory=dict)
    files: dict[str, bytes] = field(default_factory=dict)
    told_sizes: dict[str, int] = field(default_factory=dict)
    blocked: set[int] = field(default_factory=set)
    pauses: dict[str, asyncio.Event] = field(default_factory=dict)  # calls of a method wait for it
    offset: int = 0
    webhook: bool = False
    revoked: bool = False  # @BotFather took the token back
    waits: bool = True  # as a long poll does
    _scripts: dict[str, deque[Any]] = field(default_factory=lambda: defaultdict(deque))
    _next_message: int = 1000
    _next_update: int = 500
    _polls: int = 0
    _changed: asyncio.Condition = field(default_factory=asyncio.Condition)

    def script(self, method: str, status: int = 0, description: str = "", **parameters: Any) -> None:
        """Let the next call of a method fail; status 0 cuts the connection."""
        self._scripts[method].append((status, description, parameters))

    def of(self, method: str) -> list[Call]:
        """The calls of a method so far."""
        return [call for call in self.calls if call.method == method]

    async def put(self, *updates: Any) -> None:
        """Make updates available to the poller."""
        async with self._changed:
            self.updates += updates
            self._changed.notify_all()

    async def say(self, text: str, *, chat: int = 7, user: int = 7, **more: Any) -> int:
        """A person writes; returns the update's number."""
        message: dict[str, Any] = {"text": text, **more}
        return await self.message(
            {key: value for key, value in message.items() if value is not None}, chat, user
        )

    async def message(self, message: dict[str, Any], chat: int = 7, user: int = 7) -> int:
        """A message of any form arrives."""
        self._next_message += 1
        whole = {
            "message_id": self._next_message,
            "date": 1_790_000_000,
            "chat": {"id": chat, "type": "private" if chat > 0 else "supergroup"},
            "from": {"id": user, "is_bot": False, "first_name": "Ann"},
            **message,
        }
        return await self.update(message=whole)

    async def update(self, **kind: Any) -> int:
        """An update of any kind arrives."""
        self._next_update += 1
        number = self._next_update
        await self.put({"update_id": number, **kind})
        return number

    async def until(self, condition: Callable[[], Any]) -> None:
        """Wait for something to be true of the server."""
        async with asyncio.timeout(HANG_S), self._changed:
            await self._changed.wait_for(condition)

    # ------------------------------------------------------------ HTTP

    async def handle(self, request: web.Request) -> web.StreamResponse:
        method = request.match_info["method"]
        form = await request.post()
        call = Call(method, dict(request.query))
        for key, value in form.items():
            if isinstance(value, web.FileField):
                with value.file:
                    call.file, call.file_name = value.file.read(), value.filename
            else:
                call.params[key] = _value(value)
        call.params |= {key: _value(value) for key, value in request.query.items()}
        async with self._changed:
            self.calls.append(call)
            self._changed.notify_all()
        if call.method in self.pauses:
            await self.pauses[call.method].wait()
        try:
            if request.match_info["token"] != TOKEN or self.revoked:
                raise ApiError(401, "Unauthorized")
            result = await self._result(call, request)
        except ApiError as error:
            if error.status == 200:
                return web.Response(text=str(error))
            body: dict[str, Any] = {"ok": False, "error_code": error.status, "description": str(error)}
            if error.parameters:
                body["parameters"] = error.parameters
            return web.json_response(body, status=error.status)
        async with self._changed:
            self._changed.notify_all()
        return web.json_response({"ok": True, "result": result})

    async def _result(self, call: Call, request: web.Request) -> Any:
        if self._scripts[call.method]:
            status, description, parameters = self._scripts[call.method].popleft()
            if status == 0 and request.transport is not None:
                request.transport.abort()
            if description == "after":  # done, but the answer is lost
                await getattr(self, f"_{call.method}")(call)
            raise ApiError(status or 500, description, parameters)
        return await getattr(self, f"_{call.method}")(call)

    async def download(self, request: web.Request) -> web.StreamResponse:
        name = request.match_info["name"]
        if self._scripts["download"]:
            status, _, parameters = self._scripts["download"].popleft()
            response = web.StreamResponse(headers={"content-length": "1000000"})
            if status:
                return web.Response(status=status)
            await response.prepare(request)
            await response.write(b"x" * parameters.get("sent", 10))
            if request.transport is not None:
                request.transport.abort()
            return response
        if name not in self.files:
            return web.Response(status=404)
        self.calls.append(Call("download", {"name": name}))
        return web.Response(body=self.files[name])

    # ------------------------------------------------------------ methods

    async def _getMe(self, _: Call) -> Any:
        return {"id": BOT_ID, "is_bot": True, "first_name": "Bower", "username": BOT_NAME}

    async def _deleteWebhook(self, _: Call) -> Any:
        self.webhook = False
        return True

    async def _getUpdates(self, call: Call) -> Any:
        if self.webhook:
            raise ApiError(409, "Conflict: can't use getUpdates method while webhook is active")
        self._polls += 1
        mine = self._polls
        self.offset = int(call.params.get("offset", 0))
        self.updates = [u for u in self.updates if not isinstance(u, dict) or _number(u) >= self.offset]
        async with self._changed:
            self._changed.notify_all()
            try:
                async with asyncio.timeout(float(call.params.get("timeout", 0)) if self.waits else 0):
                    await self._changed.wait_for(lambda: self.updates or self._polls != mine)
            except TimeoutError:
                pass
        if self._polls != mine:
            raise ApiError(409, "Conflict: terminated by other getUpdates request")
        return self.updates[: int(call.params.get("limit", 100))]

    async def _sendMessage(self, call: Call) -> Any:
        chat = self._chat(call)
        self._check_text(call)
        reply = call.params.get("reply_parameters") or {}
        if (
            reply
            and (chat, reply["message_id"]) not in self.messages
            and not reply.get("allow_sending_without_reply")
        ):
            raise ApiError(400, "Bad Request: message to be replied not found")
        return self._new(chat, call)

    async def _editMessageText(self, call: Call) -> Any:
        chat = self._chat(call)
        self._check_text(call)
        known = self.messages.get((chat, int(call.params["message_id"])))
        if known is None:
            raise ApiError(400, "Bad Request: message to edit not found")
        shown = (call.text, call.params.get("reply_markup"))
        if (known["source"], known["markup"]) == shown:
            raise ApiError(400, "Bad Request: message is not modified: specified new message content and reply markup are exactly the same")  # fmt: skip
        known["source"], known["markup"] = shown
        return known["message"]

    async def _sendDocument(self, call: Call) -> Any:
        return self._new(self._chat(call), call)

    async def _deleteMessage(self, call: Call) -> Any:
        if self.messages.pop((self._chat(call), int(call.params["message_id"])), None) is None:
            raise ApiError(400, "Bad Request: message to delete not found")
        return True

    async def _setMessageReaction(self, call: Call) -> Any:
        self._chat(call)
        return True

    async def _answerCallbackQuery(self, call: Call) -> Any:
        if str(call.params["callback_query_id"]).startswith("old"):
            raise ApiError(
                400, "Bad Request: query is too old and response timeout expired or query ID is invalid"
            )
        return True

    async def _getFile(self, call: Call) -> Any:
        name = str(call.params["file_id"])
        if name not in self.files:
            raise ApiError(400, "Bad Request: wrong file_id or the file is temporarily unavailable")
        size = self.told_sizes.get(name, len(self.files[name]))
        if size > 20 * 1024 * 1024:
            raise ApiError(400, "Bad Request: file is too big")
        return {"file_id": name, "file_unique_id": name, "file_size": size, "file_path": f"docs/{name}"}

    def _chat(self, call: Call) -> int:
        chat = int(call.params["chat_id"])
        if chat in self.blocked:
            raise ApiError(403, "Forbidden: bot was blocked by the user")
        return chat

    def _check_text(self, call: Call) -> None:
        text = call.text
        if call.params.get("parse_mode") == "HTML":
            try:
                text = telegram_html.read(text).text
            except telegram_html.BadMarkup as error:
                raise ApiError(400, f"Bad Request: {error}") from None
        if not text.strip():
            raise ApiError(400, "Bad Request: message text is empty")
        if telegram_html.units(text) > 4096:
            raise ApiError(400, "Bad Request: message is too long")

    def _new(self, chat: int, call: Call) -> dict[str, Any]:
        self._next_message += 1
        message = {
            "message_id": self._next_message,
            "date": 1_790_000_000,
            "chat": {"id": chat, "type": "private" if chat > 0 else "supergroup"},
        }
        markup = call.params.get("reply_markup")
        self.messages[chat, self._next_message] = {"source": call.text, "markup": markup, "message": message}
        return message


@asynccontextmanager
async def fake_telegram(kind: type[FakeTelegram] = FakeTelegram) -> AsyncIterator[FakeTelegram]:
    """Run a server on a free port."""
    fake = kind()
    app = web.Application(client_max_size=100 * 1024 * 1024)
    app.router.add_route("*", "/bot{token}/{method}", fake.handle)
    app.router.add_get("/file/bot{token}/docs/{name}", fake.download)
    runner = web.AppRunner(app, shutdown_timeout=0.1, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    fake.url = f"http://{host}:{port}"
    try:
        yield fake
    finally:
        await runner.cleanup()


def _value(text: str) -> Any:
    """Parameters are JSON where they are no strings."""
    if text[:1] in "{[" or text in ("true", "false"):
        try:
            return json.loads(text)
        except ValueError:
            return text
    return text


def _number(update: dict[str, Any]) -> float:
    number = update.get("update_id")
    return number if isinstance(number, int) else float("inf")
