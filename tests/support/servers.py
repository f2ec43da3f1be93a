"""A real server on loopback, in a thread with a loop of its own, for tests that speak HTTP to it.

Here: starting and ending it, its settings, one client. Not here: what tests ask; the model server
(`fake_models.py`).
"""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx
from support.fake_models import FakeModels
from support.patience import HANG_S

from bowerbird import __version__
from bowerbird.app.serving import Listening, Serving, bind, listen, open_server
from bowerbird.config import load_settings

START_S = HANG_S
FAST = (1e6, 1e6)  # tests ask more often than a person may


@dataclass
class TestServer:
    """One running server."""

    __test__ = False

    serving: Serving
    fake: FakeModels
    workspace: Path
    data_dir: Path
    url: str
    loop: asyncio.AbstractEventLoop

    @property
    def http(self) -> httpx.Client:
        """A client without credentials; close it."""
        return httpx.Client(
            base_url=self.url, timeout=HANG_S, verify=False
        )  # no TLS: loading certificates takes 30 ms

    def run(self, work: Any, timeout: float = HANG_S) -> Any:
        """Run a coroutine in the server's loop and return its result."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(timeout)


@contextmanager
def serve(
    directory: Path,
    *,
    flags: Mapping[str, Any] | None = None,
    fake: FakeModels | None = None,
    limited: bool = False,
) -> Iterator[TestServer]:
    """Serve `directory`/ws with data in `directory`/data.

    Args:
        flags: settings by dotted key. fake: the model server; one of its own when None.
        limited: keep the rates of SV-60 and the lag of SV-61; otherwise they do not bind.
    """
    if fake is None:
        with FakeModels() as own:
            own.script({"text": "hello"})
            with serve(directory, flags=flags, fake=own, limited=limited) as server:
                yield server
        return
    settings = {
        "agent.data_dir": str(directory / "data"),
        "provider.name": "anthropic",
        "provider.base_url": fake.anthropic_url,
        "provider.api_key": "sk-test-0123456789abcdef",
        "memory.enabled": False,
        "store.min_free_mb": 0,
        **(flags or {}),
    }
    env = {"WORKSPACE_DIR": str(directory / "ws")}
    loaded = load_settings(settings, env=env, cwd=directory, kind="serve", home=directory)
    runner = _Runner(loaded, limited)
    runner.start()
    try:
        serving, loop = runner.wait()
        yield TestServer(serving, fake, directory / "ws", directory / "data", runner.url, loop)
    finally:
        runner.stop()


class _Runner(threading.Thread):
    def __init__(self, loaded: Any, limited: bool) -> None:
        super().__init__(name="test server", daemon=True)
        self._loaded = loaded
        self._limited = limited
        self._ready = threading.Event()
        self._failure: BaseException | None = None
        self._serving: Serving | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._server: Listening | None = None
        self.url = ""

    def wait(self) -> tuple[Serving, asyncio.AbstractEventLoop]:
        if not self._ready.wait(START_S):
            raise TimeoutError(f"the server did not start within {START_S:.0f} s")
        if self._failure is not None:
            raise self._failure
        assert self._serving is not None and self._loop is not None
        return self._serving, self._loop

    def stop(self) -> None:
        if self._server is not None:
            self._server.should_exit = True
        self.join(HANG_S)
        assert not self.is_alive(), "the server did not end"

    def run(self) -> None:
        import uvloop

        try:
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                runner.run(self._main())
        except BaseException as error:  # noqa: BLE001 - told to the thread that waits
            self._failure = error
            self._ready.set()

    async def _main(self) -> None:
        self._loop = asyncio.get_running_loop()
        sock = bind("127.0.0.1", 0)
        try:
            unbound = {
                "request_rate": FAST,
                "new_conversation_rate": FAST,
                "failed_rate": FAST,
                "max_lag_s": 1e9,
            }
            change: dict[str, Any] = {} if self._limited else unbound
            async with open_server(
                self._loaded, lambda s: replace(s, **change), version=__version__
            ) as serving:
                self._serving = serving
                await listen(serving, sock, self._up)
        finally:
            sock.close()

    def _up(self, url: str, server: Listening) -> None:
        self.url, self._server = url, server
        self._ready.set()


def free_port() -> int:
    """Return a port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def until(condition: Any, what: str, timeout: float = HANG_S) -> Any:
    """Wait until `condition()` is true and return it; polls, because it looks from outside."""
    end = time.monotonic() + timeout
    while time.monotonic() < end:
        found = condition()
        if found:
            return found
        time.sleep(0.02)
    raise AssertionError(f"{what}: not within {timeout} s")


def say(client: httpx.Client, conversation: str, text: str, **query: Any) -> dict[str, Any]:
    """Send a message and return the answered turn."""
    answer = client.post(
        f"/api/conversations/{conversation}/messages", json={"content": text}, params={"wait": 30, **query}
    )
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def begin(client: httpx.Client, **wanted: Any) -> str:
    """Begin a conversation and return its id."""
    answer = client.post("/api/chat", json=wanted)
    assert answer.status_code == 200, answer.text
    return str(answer.json()["conversation_id"])


def change(server: TestServer, client: httpx.Client, files: dict[str, str]) -> str:
    """Return a conversation whose branch writes `files` and deletes `old.txt`."""
    (server.workspace / "old.txt").write_text("old\n")
    tools = [{"name": "write_file", "input": {"path": p, "content": text}} for p, text in files.items()]
    tools.append({"name": "delete_file", "input": {"path": "old.txt"}})
    conversation = begin(client)
    server.fake.reset()
    server.fake.script({"tools": tools}, {"text": "done"})
    say(client, conversation, "write")
    return conversation
