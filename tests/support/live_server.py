"""A whole server of the settings' own making, listening on loopback in the test's event loop.

The model is served by `FakeModels`; everything else is real: uvicorn, store, branches, sandboxes.
"""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import httpx
from support.fake_models import FakeModels
from support.patience import HANG_S
from websockets.asyncio.client import ClientConnection, connect

from bowerbird.app.door import listening_config
from bowerbird.app.serving import Listening, Serving, bind, open_server
from bowerbird.config import Loaded, load_settings
from bowerbird.core.pieces import Pieces
from bowerbird.server.common.context import ServerSettings

WAIT_S = HANG_S


@dataclass
class LiveServer:
    """An open server, its address, and shortcuts for tests."""

    serving: Serving
    address: str
    fake: FakeModels
    http: httpx.AsyncClient

    @property
    def context(self) -> Any:
        return self.serving.context

    @property
    def sessions(self) -> Any:
        return self.serving.context.sessions

    async def conversation(self, headers: dict[str, str] | None = None, **asked: Any) -> str:
        answer = await self.http.post("/api/chat", json=asked, headers=headers)
        assert answer.status_code == 200, answer.text
        return str(answer.json()["conversation_id"])

    def socket(self, conversation: str, query: str = "", **options: Any) -> connect:
        """Open a socket; use with `async with`."""
        address = self.address.replace("http", "ws", 1)
        where = f"{address}/api/chat/{conversation}/ws{'?' if query else ''}{query}"
        return connect(where, max_size=None, compression=None, proxy=None, **options)


@asynccontextmanager
async def live_server(
    directory: Path,
    fake: FakeModels,
    *,
    env: dict[str, str] | None = None,
    changeable: bool = False,
    **flags: Any,
) -> AsyncIterator[LiveServer]:
    """Serve on a free port; `flags` are settings by key with `__` for dots; `changeable`: the page may change others."""
    values: dict[str, Any] = {
        "agent.data_dir": str(directory / "data"),
        "memory.enabled": False,
        "server.port": 1,
        **{key.replace("__", "."): value for key, value in flags.items()},
    }
    environment = {
        "HOME": str(directory),
        "PATH": "/usr/bin:/bin",
        "WORKSPACE_DIR": str(directory / "workspace"),
        "LLM_PROVIDER": "anthropic",
        "ANTHROPIC_API_KEY": "fake-key-for-tests",
        "ANTHROPIC_BASE_URL": fake.anthropic_url,
        "LLM_RETRY_BASE_DELAY": "0",
        **(env or {}),
    }

    def load(file: Path | None = None) -> Loaded:
        path = None if file is None else str(file)
        where = {"cwd": str(directory), "home": str(directory), "config_path": path}
        return load_settings(values, env=environment, kind="serve", **where)

    doors: dict[str, Any] = {"load": load, "load_from": load} if changeable else {}
    async with open_server(load(), _unhurried, version="0.0.0", **doors) as serving:
        bound = bind("127.0.0.1", 0)
        address = f"http://127.0.0.1:{bound.getsockname()[1]}"
        listening = Listening(listening_config(serving.app, serving.context, grace_s=5), serving)
        with patch.object(listening, "capture_signals", contextlib.nullcontext):
            task = asyncio.create_task(listening.serve([bound]))
            try:
                async with httpx.AsyncClient(
                    base_url=address, timeout=WAIT_S, trust_env=False, verify=False
                ) as http:
                    yield LiveServer(serving, address, fake, http)
            finally:
                listening.should_exit = True
                await task
                bound.close()


def _unhurried(settings: ServerSettings) -> ServerSettings:
    """A busy test machine is no overload (SV-61 is tested for itself)."""
    return replace(settings, max_lag_s=1e9)


async def events(socket: ClientConnection, until: str, *, times: int = 1) -> list[dict[str, Any]]:
    """Return the events up to and with the `times`-th of type `until`."""
    seen: list[dict[str, Any]] = []
    left = times
    try:
        async with asyncio.timeout(WAIT_S):
            while left:
                event = json.loads(await socket.recv())
                seen.append(event)
                left -= event["type"] == until
    except TimeoutError:
        raise AssertionError(f"no {until} came in {WAIT_S:.0f} s; what came: {seen[-5:]}") from None
    return seen


async def one(socket: ClientConnection) -> dict[str, Any]:
    async with asyncio.timeout(WAIT_S):
        return json.loads(await socket.recv())


async def say(socket: ClientConnection, content: str, **more: Any) -> None:
    await socket.send(json.dumps({"type": "message", "content": content, **more}))


def types(seen: list[dict[str, Any]]) -> list[str]:
    return [event["type"] for event in seen]


def text_of(seen: list[dict[str, Any]]) -> str:
    """What was said, as a client shows it: by offsets; a replayed piece stands for its whole message."""
    texts: dict[str, Pieces] = {}
    for event in seen:
        if event["type"] == "text_delta":
            if event.get("replay"):
                texts[event["message_id"]] = Pieces()
            texts.setdefault(event["message_id"], Pieces()).take(event["content"], event["offset"])
    return "\n".join(map(str, texts.values()))
