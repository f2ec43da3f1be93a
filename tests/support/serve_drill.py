"""Kill drills with a real `bowerbird serve`: clients that speak REST and WebSocket, deaths, restarts.

Here: the drill: what is said, where a process dies, what was acknowledged. Not here: the processes
(`serve_processes.py`, `serve_child.py`), what they talk to (`serve_peers.py`), who judges what is left
(`serve_checker.py`).

A drill has several conversations. In each life of the server every one of them is sent one message; a message
whose acknowledgement never came is sent again with its key in the next life, one that was acknowledged never.
"""

import asyncio
import json
import os
import signal
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
from support.serve_peers import EXTERNAL, MODEL, Peers
from support.serve_processes import WAIT_S, Plain, Serves
from support.servers import free_port
from websockets.asyncio.client import connect
from websockets.exceptions import WebSocketException

START = "start\nend\n"
_GONE = (httpx.TransportError, WebSocketException, OSError)


def _lives(pid: int) -> bool:
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return status.rpartition(")")[2].split()[0] not in ("Z", "X")


@dataclass
class Talk:
    """One conversation, as its client knows it: how many messages were acknowledged, which one was not."""

    name: str
    thread: str = ""
    accepted: int = 0
    is_chat: bool = False


@dataclass
class ServeDrill:
    """One data directory, its conversations, the deaths so far.

    Attributes:
        policy: `review` or `turn`. url: of the database; SQLite in the data directory when empty.
        tier: of the sandbox. count: conversations. chats: how many of them belong to a chat. lives: processes started. kills: those that died by SIGKILL.
    """

    directory: Path
    peers: Peers
    policy: str = "review"
    url: str = ""
    tier: str = "none"
    count: int = 2
    chats: int = 1
    lives: int = 0
    kills: int = 0
    talks: list[Talk] = field(default_factory=list[Talk])
    undone: list[str] = field(default_factory=list[str])

    def __post_init__(self) -> None:
        self.peers.outside.clear()
        self.peers.sends = self.policy != "turn"
        self.project.mkdir(parents=True)
        (self.directory / "home").mkdir()
        self.talks = [Talk(f"s{number}", is_chat=number < self.chats) for number in range(self.count)]
        for talk in self.talks:
            (self.project / talk.name).mkdir()
            (self.project / talk.name / "log.txt").write_text(START)
        self.port = free_port()
        settings: dict[str, Any] = {
            "agent": {"workspace": str(self.project), "data_dir": str(self.data), "llm_max_retries": 0},
            "provider": {
                "name": "anthropic",
                "base_url": self.peers.models,
                "api_key": "sk-drill-0123456789",
            },
            "mcp_servers": {"outside": {"url": self.peers.mcp, "approval": "allow"}},
            "logging": {"level": "WARNING"},
            "memory": {"enabled": False},
            "sandbox": {"tier": self.tier} if self.tier != "auto" else {},
            "store": {"min_free_mb": 0, **({"url": self.url} if self.url else {})},
            "turn": {"max_attempts": 100},
            "workspace": {"landing": self.policy},
        }
        (self.directory / "config.yaml").write_text(json.dumps(settings))
        (self.directory / "config.yaml").chmod(0o600)

    @property
    def project(self) -> Path:
        return self.directory / "project"

    @property
    def data(self) -> Path:
        return self.directory / "data"

    @property
    def died(self) -> Path:
        return self.directory / "died"

    @property
    def delivered(self) -> Path:
        return self.directory / "delivered"

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def environment(self) -> dict[str, str]:
        return {"PATH": os.environ.get("PATH", ""), "HOME": str(self.directory / "home")}

    @property
    def log(self) -> str:
        path = self.directory / "serve.log"
        text = path.read_text() if path.exists() else ""
        fatal = text.rfind("Fatal Python error")
        return text[fatal:][:6000] if fatal >= 0 else text[-6000:]

    def files(self) -> dict[str, bytes]:
        """Return what the workspace holds."""
        found = (path for path in self.project.rglob("*") if path.is_file())
        return {str(path.relative_to(self.project)): path.read_bytes() for path in found}

    def hits(self) -> Counter[str]:
        """Return how often a process died at each point, as noted at the moment of death."""
        return Counter(self.died.read_text().splitlines()) if self.died.exists() else Counter()

    def config(self, kill: str | None, label: str = "") -> dict[str, Any]:
        place = self.directory
        return {
            "config": str(place / "config.yaml"), "cwd": str(place), "env": self.environment, "port": self.port,
            "kill": kill, "label": label, "died": str(self.died), "delivered": str(self.delivered),
            "log": str(place / "serve.log"), "modules": str(place / "modules"),
        }  # fmt: skip

    # ------------------------------------------------------------ lives

    def begin(self, serves: "Serves | Plain") -> None:
        """The first life: the conversations are made; one of them becomes that of a chat."""

        async def make(client: httpx.AsyncClient) -> None:
            for talk in self.talks:
                answer = await client.post("/api/chat", json={"title": talk.name})
                talk.thread = answer.raise_for_status().json()["conversation_id"]
            await self.everybody_speaks(client)  # the processes that follow find every module imported

        assert self.live(serves, None, make), self.log
        self.make_chats()

    def make_chats(self) -> None:
        """Write what a channel would have written when the chat began: there is no channel in this drill."""
        from support.serve_checker import execute

        for talk in self.talks:
            if talk.is_chat:
                change = f"UPDATE sessions SET channel = 'telegram', chat_id = '5' WHERE thread_id = '{talk.thread}'"
                execute(self, change)

    def live(self, serves: "Serves | Plain", point: str | None, work: Any = None, label: str = "") -> bool:
        """One life of the server: everybody says something; tell whether it outlived that.

        Args:
            point: where it dies; None = nowhere. work: what is done instead, given a client.
            label: put before the point's name in the count.
        """
        by_peer = point is not None and point.partition(":")[0] in (MODEL, EXTERNAL)
        if not self.peers.sends and (point or "").startswith(EXTERNAL):
            raise ValueError(f"nobody calls outside under the policy {self.policy}: no life passes {point!r}")
        pid = serves.start(self.config(None if by_peer else point, label))
        self.lives += 1
        if by_peer and point is not None:
            self.peers.aim(pid, point, self.died)
        try:
            asyncio.run(self._talk(pid, work or self.everybody_speaks))
        finally:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
        status = serves.wait()
        self.peers.victim = 0
        if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL:
            self.kills += 1
            return False
        assert os.waitstatus_to_exitcode(status) == 0, f"it ended with status {status}\n{self.log}"
        return True

    async def _talk(self, pid: int, work: Any) -> None:
        """Do `work` with the server; it may not listen yet, and it may die meanwhile."""
        async with asyncio.timeout(WAIT_S):
            while _lives(pid):
                try:
                    # Asked cheaply: who starts up needs the processor.
                    _, writer = await asyncio.open_connection("127.0.0.1", urlsplit(self.address).port)
                    writer.close()
                    async with httpx.AsyncClient(
                        base_url=self.address, timeout=WAIT_S, trust_env=False, verify=False
                    ) as client:
                        await work(client)
                    return
                except _GONE:
                    await asyncio.sleep(0.01)

    async def everybody_speaks(self, client: httpx.AsyncClient) -> None:
        """Each conversation is sent its next message; returns when all are answered."""
        work = [asyncio.ensure_future(self._say(client, talk)) for talk in self.talks]
        done = await asyncio.gather(*work, return_exceptions=True)
        for outcome in done:
            if isinstance(outcome, BaseException):
                raise outcome

    async def _say(self, client: httpx.AsyncClient, talk: Talk) -> None:
        number = talk.accepted + 1
        address = self.address.replace("http", "ws", 1)
        async with connect(f"{address}/api/chat/{talk.thread}/ws?v=2", proxy=None, max_size=None) as socket:
            answer = await client.post(
                f"/api/conversations/{talk.thread}/messages",
                json={"content": f"Message {talk.name} {number} [[drill {talk.name} {number}]]"},
                headers={"idempotency-key": f"{talk.name}-{number}"},
            )
            turn = answer.raise_for_status().json()["turn_id"]
            talk.accepted = number  # never sent again, whatever happens now
            if answer.headers.get("idempotency-replayed") or answer.json()["duplicate"]:
                return  # its turn may have ended before this socket was there
            while True:
                event = json.loads(await socket.recv())
                if event["type"] == "done" and event.get("turn_id") == turn:
                    return

    def finish(self, serves: "Serves | Plain") -> None:
        """Lives without a death until everything is answered and delivered."""

        async def settled(client: httpx.AsyncClient) -> None:
            await self.everybody_speaks(client)
            while True:
                answer = await client.get("/api/conversations")
                states = {row["id"]: row["status"] for row in answer.raise_for_status().json()}
                if not {"running", "queued"} & set(states.values()) and self.all_delivered():
                    return
                await asyncio.sleep(0.1)

        assert self.live(serves, None, settled), self.log

    def all_delivered(self) -> bool:
        from support.serve_checker import rows

        return not rows(self, "SELECT id FROM outbox WHERE state <> 'sent'")

    # ------------------------------------------------------------ what else may be cut short

    async def compact_and_speak(self, client: httpx.AsyncClient) -> None:
        for talk in self.talks:
            (await client.post(f"/api/conversations/{talk.thread}/compact", json={})).raise_for_status()
        await self.everybody_speaks(client)

    async def undo_newest(self, client: httpx.AsyncClient) -> None:
        """Take the newest landing back, unless that was done before."""
        landings = (await client.get("/api/landings")).raise_for_status().json()
        newest = landings[0]
        if newest["kind"] != "undo" and newest["state"] == "done":
            (await client.post(f"/api/landings/{newest['id']}/undo", json={})).raise_for_status()
