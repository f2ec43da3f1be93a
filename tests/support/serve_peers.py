"""What a drilled server talks to: a scripted model, and an MCP server whose tool acts on the world.

Here: both, and killing the server at a call of one of them. Not here: the drill (`serve_drill.py`).
"""

import json
import os
import re
import signal
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mcp.server.mcpserver import MCPServer
from support.fake_models import FakeModels
from support.mcp_servers import http_server

SEND = "mcp__outside__send"
SHELL = "shell"  # a conversation of this name runs a command that waits for the file `go`
MODEL, EXTERNAL = "model call", "external call"  # deaths by the hand of a peer
_DIRECTIVE = re.compile(r"\[\[drill (\w+) (\d+)\]\]")


def script(name: str, number: int, *, sends: bool) -> list[dict[str, Any]]:
    """What the model does about the n-th message of a conversation.

    Args:
        sends: into the world, and hears from it; what such a turn wrote never lands by itself (D-6).
    """
    edit = {"path": f"{name}/log.txt", "old": "end", "new": "+end"}
    new = {"path": f"{name}/new/{number}.txt", "content": f"{number}\n"}
    if name == SHELL:
        command = "echo half >> half.txt; [ -e go ] || sleep 600; echo whole >> whole.txt"
        return [
            {"tools": [{"name": "bash", "input": {"command": command}}]},
            {"text": "Done."},
            {"text": "Done."},
        ]
    return [
        {
            "tools": [
                {"name": "edit_file", "input": edit},
                {"name": SEND, "input": {"text": f"{name} m{number}"}}
                if sends
                else {"name": "todo_write", "input": {"items": []}},
            ]
        },
        {"tools": [{"name": "write_file", "input": new}]},
        {"text": f"Done {name} {number}."},
    ]


class Peers:
    """What the server talks to: a model, and an MCP server whose tool acts on the world.

    Attributes:
        outside: how often each text was sent. sends: whether the model lets it be sent. victim, at: kill this process at that call of that peer.
        asked: how often the model was. held: at which of these requests it never answers; 0 = at none.
    """

    def __init__(self) -> None:
        self.outside: Counter[str] = Counter()
        self.sends = True
        self.victim = 0
        self.at = ""
        self.died: Path | None = None
        self.asked = 0
        self.held = 0
        self._left = 0
        self._lock = threading.Lock()
        self.models = ""
        self.mcp = ""

    def aim(self, pid: int, point: str, died: Path) -> None:
        """Kill `pid` at the n-th call of a peer, `model call:2`, say."""
        name, _, number = point.partition(":")
        with self._lock:
            self.victim, self.at, self._left, self.died = pid, name, int(number or 1), died

    def passed(self, point: str) -> None:
        with self._lock:
            if self.at != point or not self.victim:
                return
            self._left -= 1
            if self._left == 0:
                os.kill(self.victim, signal.SIGKILL)
                self.victim = 0
                assert self.died is not None
                with self.died.open("a") as file:
                    file.write(point + "\n")

    def answer(self, body: dict[str, Any], _: int) -> dict[str, Any]:
        """The scripted model: a summary when asked for one, else the next step of the newest message."""
        self.passed(MODEL)
        self.asked += 1
        return {"hang": True} if self.asked == self.held else self._next(body)

    def _next(self, body: dict[str, Any]) -> dict[str, Any]:
        if "You summarise" in json.dumps(body.get("system") or ""):
            return {"text": "They asked; it was done."}
        name, number, step = "", "0", 0
        for message in body["messages"]:
            text = json.dumps(message["content"])
            found = _DIRECTIVE.findall(text) if message["role"] == "user" else []
            if found:
                (name, number), step = found[-1], 0
            elif message["role"] == "assistant":
                step += 1
        return script(name, int(number), sends=self.sends)[min(step, 2)] if name else {"text": "ready"}

    def send(self, text: str) -> str:
        """Send a text into the world."""
        with self._lock:
            self.outside[text] += 1
        self.passed(EXTERNAL)
        return "sent"


@contextmanager
def peers() -> Iterator[Peers]:
    """Serve both for as long as the block runs."""
    made = Peers()
    server = MCPServer("outside", log_level="CRITICAL")
    server.tool(name="send", structured_output=False)(made.send)
    with FakeModels() as fake, http_server(server) as address:
        fake.answer(made.answer)
        made.models, made.mcp = fake.anthropic_url, address
        yield made
