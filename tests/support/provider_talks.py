"""Long sessions with every provider at its own address, whose servers refuse what the real ones refuse.

Here: one session of many turns on a whole server: the default tools, MCP tools that no provider takes as they are,
parallel calls, reasoning, pictures and documents, summaries, turns that are stopped, interrupted or outlive a
restart, models of other providers in between, and random faults of the provider. `wrong` says in the end what was
refused by the rules (`provider_rules`), and which turns failed that nothing had to fail. Not here: rules. Used by
the tests (a few turns) and by `drills/wires.py` (200 of each provider).
"""

import asyncio
import base64
import json
import os
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from support.fake_models import FakeModels
from support.fake_wire import Step, error_body
from support.live_server import LiveServer, live_server
from support.mcp_servers import RAW
from support.patience import HANG_S
from support.pictures import jpeg, png, webp
from support.provider_rules import bound_signatures, unbound, unmarked

from bowerbird.core.messages import Message, ToolResultBlock, user_text
from bowerbird.core.requests import ModelRequest, Thinking
from bowerbird.models import ModelSettings, ProviderSettings, RetryPolicy, complete, open_model
from bowerbird.models.providers.thinking import EFFORTS
from bowerbird.tools.builtin import builtin_tools

WIRES: dict[str, tuple[str, ...]] = {
    "anthropic": ("anthropic:claude-sonnet-5-5", "anthropic:claude-opus-4-6", "anthropic:claude-opus-4-5"),
    "openai": ("openai:gpt-5.2", "openai:gpt-4.1", "openai:o3"),
    "responses": ("openai:gpt-6-sol", "openai:gpt-5.4", "openai:gpt-5.1-codex-max"),
    "google": ("google-genai:gemini-3.8-flash", "google-genai:gemini-2.5-flash"),
    "deepseek": ("deepseek:deepseek-v4-pro", "deepseek:deepseek-v4-flash"),
    "mistral": ("mistral:mistral-large-2512", "mistral:mistral-medium-3-5"),
    "ollama": ("ollama:qwen3:8b", "ollama:gpt-oss:20b"),
    "openrouter": ("openrouter:anthropic/claude-sonnet-5", "openrouter:mistralai/devstral-2512"),
    "azure": ("openai:gpt-5.2", "openai:gpt-5.5"),
}
"""Models of each wire; `azure` is OpenAI's prefix at another address."""
HOSTS = {
    "anthropic": "http://api.anthropic.com",
    "openai": "http://api.openai.com/v1",
    "google-genai": "http://generativelanguage.googleapis.com/v1beta/openai",
    "deepseek": "http://api.deepseek.com/v1",
    "mistral": "http://api.mistral.ai/v1",
    "openrouter": "http://openrouter.ai/api/v1",
}
AZURE = "http://here.openai.azure.com/openai/v1"
FILES = {
    "a.txt": b"alpha\n" * 400,
    "notes.md": b"# Notes\n\nNothing yet.\n",
    "pic.png": png(),
    "pic.jpg": jpeg(),
    "pic.webp": webp(b"VP8X", 40, 30),
    "wide.png": png(9_000, 20),
    "tall.png": png(30, 2_500),
    "broken.png": png()[:20],
    "lies.png": jpeg(),
    "doc.pdf": b"%PDF-1.4\n1 0 obj<</Type/Catalog>>endobj\ntrailer<</Root 1 0 R>>\n%%EOF\n",
}
OVERFLOW = {
    "anthropic": "prompt is too long: 210000 tokens > 200000 maximum",
    "google": "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
    "mistral": "Prompt contains 200000 tokens too large for model with 131072 maximum context length",
}


def whole(kind: str, body: Any) -> Step:
    """An answer with status 200 that is no stream."""
    return {"body": body, "headers": {"content-type": kind}}


def in_stream(wire: str) -> Step:
    """A failure in an answer that has begun."""
    if wire == "messages":
        said = 'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}\n\n'
    elif wire == "responses":
        said = 'event: error\ndata: {"type":"error","code":"server_error","message":"it failed"}\n\n'
    elif wire == "ollama":
        return whole("application/x-ndjson", '{"error":"an error was encountered while running the model"}\n')
    else:
        said = 'data: {"choices":[{"delta":{"content":"so "}}]}\n\ndata: {"error":{"code":502,"message":"upstream"}}\n\n'
    return whole("text/event-stream", said)


FAULTS = (
    "cut", "ended", "cut_call", "busy", "broken", "overloaded", "in_stream", "in_whole", "page", "malformed", "strange",
    "empty", "only_thought", "too_long", "too_long_call", "filtered", "refused", "quota", "overflow", "picture", "part",
    "paused", "twice",
)  # fmt: skip


@dataclass
class Talk:
    """One session with the models of `wire`, from a seed."""

    wire: str
    seed: int
    turns: int
    faults: bool = True
    draw: random.Random = field(init=False)
    wrong: list[str] = field(default_factory=list[str])
    counts: Counter[str] = field(default_factory=Counter[str])
    steps: list[Any] = field(default_factory=list[Any])  # what the model does next; a string is a fault
    conversation: str = ""
    model: str = ""
    turn: str = ""
    ends: str = ""  # what the turn at hand may end as, beside `done`
    refused: int = 0
    hanging: bool = False
    bad: Callable[[dict[str, Any]], bool] | None = None  # whether a request holds what is refused
    said: Step = field(default_factory=dict[str, Any])

    def __post_init__(self) -> None:
        self.draw = random.Random(f"{self.wire} {self.seed}")

    # ------------------------------------------------------------ the model

    def answer(self, body: dict[str, Any], path: str) -> Step:
        """What the model of a request says."""
        wire = next(w for end, w in _WIRES.items() if path.partition("?")[0].endswith(end))
        self.counts["requests"] += 1
        text = json.dumps(body)
        self.counts["with pictures"] += any(word in text for word in _PICTURES)
        self.counts["with files"] += '"document"' in text
        if wire == "messages" and body["model"].startswith("claude-sonnet-5-5"):
            self.counts["reasoning that could not stand"] += unbound(body)
        choice = body.get("tool_choice")
        if not body.get("tools") or choice in ("none", {"type": "none"}):
            return {"text": "In short: it went on. " * 20, "usage": {"input": 50}}
        if self.bad is not None and self.bad(body):
            self.wrong.append(f"turn {self.counts['turns']}, {self.model}: what was refused was sent again")
            return self.said
        while self.steps:
            step = self.steps.pop(0)
            made = self._fault(step, wire, body) if isinstance(step, str) else self._said(step, wire, body)
            if made is not None:
                return made
        return {"text": "All done."}

    def _said(self, step: Step, wire: str, body: dict[str, Any]) -> Step:
        """A step with calls of tools that are offered."""
        made = dict(step)
        self.hanging |= "hang_after" in made
        if "calls" in made:
            made["tools"] = [self._call(body, wire) for _ in range(made.pop("calls"))]
            if len({json.dumps(tool) for tool in made["tools"]}) < len(made["tools"]):
                made["tools"] = made["tools"][:1]
        if wire == "messages":
            made["signature"] = bound_signatures(body)[-1]
        made.setdefault("usage", {"input": len(json.dumps(body)) // 5, "output": 30})
        return made

    def _call(self, body: dict[str, Any], wire: str) -> dict[str, Any]:
        draw = self.draw
        path = draw.choice([*FILES, *FILES, "none.txt"])
        ways: list[tuple[str, dict[str, Any]]] = [
            ("read_file", {"path": path}), ("read_file", {"path": path}), ("list_files", {}),
            ("write_file", {"path": f"made{draw.randint(0, 9)}.txt", "content": f"line {draw.random()}\n" * 50}),
            ("edit_file", {"path": "/notes.md", "old": "Nothing yet.", "new": "Something."}),
            ("search_files", {"pattern": "alpha"}), ("think", {"thought": "hm " * draw.randint(1, 40)}),
            ("tool_that_is_none", {}),
        ]  # fmt: skip
        if draw.random() < 0.35:
            names = _offered(body, wire)
            for end in ("show", "fail", "list", "either", "deep", "read", "chosen", "echo"):
                name = next((name for name in names if name.endswith(end) and "strange" in name), None)
                if name is not None:
                    ways.append((name, {"text": "hi"} if end == "echo" else {}))
            ways = ways[8:] or ways
        name, given = draw.choice(ways)
        self.counts["MCP calls"] += "strange" in name
        return {"name": name, "input": given}

    def _fault(self, kind: str, wire: str, body: dict[str, Any]) -> Step | None:
        """What the provider does in place of an answer; None where it cannot happen here."""
        self.counts[kind] += 1
        if kind == "part":
            return self._part(wire, body)
        made = self._failures(wire, body).get(kind) or self._answers(wire, body).get(kind)
        if made is not None and kind in ("filtered", "refused", "quota"):
            self.ends = kind
        return made

    def _failures(self, wire: str, body: dict[str, Any]) -> dict[str, Step | None]:
        """What a provider answers with that is none, or breaks off."""
        said: Step = {"text": "I begin to say ", "deltas": 5}
        begun = [{"name": "list_files", "input": {"path": "/"}}]
        failed = {"error": {"type": "api_error", "code": 502, "message": "Provider returned error"}}
        filtered = {"error": {"message": "The response was filtered", "code": "content_filter"}}
        page = {"body": "<html><title>Bad gateway</title></html>", "headers": {"content-type": "text/html"}}
        picture = "messages.1.content.1.image.source.base64: Could not process image"
        long = OVERFLOW.get(self.wire, "maximum context length is 128000 tokens [context_length_exceeded]")

        def refused(words: str) -> Step:
            return {"status": 400, "body": error_body(400, wire == "messages", words)}

        return {
            "cut": {**said, "cut_after": 2},
            "ended": {**said, "end_after": 2},
            "cut_call": {"tools": begun, "cut_after": 1},
            "busy": {"status": 429, "headers": {"retry-after": "0"}},
            "broken": {"status": self.draw.choice([500, 502, 503, 520])},
            "overloaded": {"status": 529 if wire == "messages" else 503},
            "in_stream": in_stream(wire),
            "in_whole": None if wire == "ollama" else whole("application/json", failed),
            "page": {"status": 502, **page},
            "filtered": {"status": 400, "body": filtered},
            "quota": {"status": 402, "body": {"error": {"message": "Insufficient Balance"}}},
            "overflow": refused(long) if _is_long(body) else None,
            "picture": refused(picture) if any(word in json.dumps(body) for word in _PICTURES) else None,
        }

    def _answers(self, wire: str, body: dict[str, Any]) -> dict[str, Step | None]:
        """What a model answers with that is of no use, or is not all."""
        call = {"name": "read_file", "raw": '{"path": "a.t'}
        same = {"name": "list_files", "input": {}, "id": "call_same"}
        signed = {"signature": bound_signatures(body)[-1]} if wire == "messages" else {}
        is_lines = wire == "ollama"  # arguments are an object there
        return {
            "malformed": None if is_lines else {"tools": [{**call, "raw": self.draw.choice(_MALFORMED)}]},
            "strange": {"tools": [{"name": name, "input": {}} for name in self.draw.sample(_STRANGE, 2)]},
            "empty": {"text": ""},
            "only_thought": {"thinking": "hm", "text": "", **signed},
            "too_long": {"text": "It goes on and", "stop": "max_tokens"},
            "too_long_call": None if is_lines else {"tools": [call], "stop": "max_tokens"},
            "refused": {"text": "No.", "stop": "refusal"} if wire in ("messages", "chat") else None,
            "paused": {"text": "I pause.", "stop": "pause_turn"} if wire == "messages" else None,
            "twice": {"tools": [same, {**same, "input": {"path": "/"}}]},
        }

    def _part(self, wire: str, body: dict[str, Any]) -> Step | None:
        """A refusal of a message in the middle or of a tool, for a reason that nobody has heard of.

        What is named is refused until it is no longer sent.
        """
        name = "input" if wire == "responses" else "messages"
        parts: list[Any] = body[name]
        if len(parts) < 6:
            return None
        if self.draw.random() < 0.3:
            named = self.draw.choice(_offered(body, wire))
            self.bad = lambda sent: named in _offered(sent, wire)
            said = f"Invalid schema for function '{named}': the moon is full"
        else:
            able = [at for at, part in enumerate(parts[:-1]) if at and _says(part)]
            if not able:
                return None
            at = self.draw.choice(able)
            part = unmarked(parts[at])
            self.bad = lambda sent: any(unmarked(one) == part for one in sent.get(name, ()))
            said = (
                f"{name}.{at}: the moon is full"
                if wire == "messages"
                else f"Invalid '{name}[{at}]': the moon is full"
            )
        self.said = {"status": 400, "body": error_body(400, wire == "messages", said)}
        return self.said

    # ------------------------------------------------------------ the person

    def plan(self) -> None:
        """Decide what the model will do in the next turn, and what goes wrong meanwhile."""
        draw, self.ends, self.bad = self.draw, "", None
        steps: list[Any] = []
        for _ in range(draw.choice([0, 0, 1, 1, 2, 3])):
            thinking = {"thinking": "I look " * draw.randint(1, 30)} if draw.random() < 0.4 else {}
            text = {"text": "I look."} if draw.random() < 0.5 else {"text": ""}
            steps.append({**thinking, **text, "calls": draw.choice([1, 1, 2, 3, 4])})
        thinking = {"thinking": "so it is"} if draw.random() < 0.3 else {}
        steps.append({**thinking, "text": draw.choice(["Done.", "It is so. " * 60])})
        if self.faults:
            some = draw.sample(FAULTS, draw.choice([0, 0, 0, 1, 1, 2]))
            if {"empty", "only_thought"} <= {*some}:
                some.pop()  # that the model says nothing twice is a failure of its own
            for kind in some:
                steps.insert(draw.randint(0, len(steps) - 1), kind)
        self.steps = steps

    async def go(self, live: LiveServer, turns: int) -> None:
        """Have so many turns."""
        if not self.conversation:
            self.model = WIRES[self.wire][0]
            self.conversation = await live.conversation(model=self.model, enable_approval=False)
        for _ in range(turns):
            await self._between(live)
            self.plan()
            await self._one(live)
            self._judge(live)

    async def calm(self, live: LiveServer) -> None:
        """Have a last turn in which nothing goes wrong, with the wire's first model."""
        await self._change(live, model=WIRES[self.wire][0])
        self.model = WIRES[self.wire][0]
        self.bad, self.ends, self.steps = None, "", [{"calls": 2, "thinking": "I look"}, {"text": "The end."}]
        await self._one(live, plain=True)
        self._judge(live)

    async def _between(self, live: LiveServer) -> None:
        draw = self.draw
        if draw.random() < 0.25 or self.model not in WIRES[self.wire]:
            own = draw.random() < 0.5 or self.model not in WIRES[self.wire]
            every = [name for wire, names in WIRES.items() if wire != "azure" for name in names]
            self.model = draw.choice(WIRES[self.wire] if own else every)
            self.counts["models changed"] += 1
            await self._change(live, model=self.model)
        if draw.random() < 0.25:
            on = draw.random() < 0.7
            await self._change(live, enable_thinking=on, thinking_effort=draw.choice(["high", "max"]))

    async def _change(self, live: LiveServer, **changes: Any) -> None:
        answer = await live.http.patch(f"/api/conversations/{self.conversation}", json=changes)
        if answer.status_code != 200:
            self.wrong.append(f"{changes} was refused: {answer.text}")

    async def _one(self, live: LiveServer, *, plain: bool = False) -> None:
        draw, chance = self.draw, 1.0 if plain else self.draw.random()
        hangs = self.faults and chance < 0.12
        if hangs:
            self.steps.insert(
                draw.randint(0, len(self.steps) - 1), {"text": "I am slow ", "deltas": 4, "hang_after": 2}
            )
        self.hanging = False
        turn = await self._say(live, plain=plain)
        async with asyncio.timeout(HANG_S):
            while (
                hangs and not self.hanging and (await live.sessions.turn(turn)).state in ("queued", "running")
            ):
                await asyncio.sleep(0.02)
            if self.hanging:
                await asyncio.sleep(0.05)
                self.ends = "any"
                turn = await self._stop(live, turn)
            await live.sessions.wait(turn)
            self.turn = turn
        await self._check(live)

    async def _stop(self, live: LiveServer, turn: str) -> str:
        if self.draw.random() < 0.5:
            self.counts["cancelled"] += 1
            await live.http.post(f"/api/conversations/{self.conversation}/cancel", json={})
            return turn
        self.counts["interrupted"] += 1
        self.steps = [{"calls": 2}, {"text": "Another way."}]
        return await self._say(live, kind="interrupt")

    async def _say(self, live: LiveServer, kind: str = "message", *, plain: bool = False) -> str:
        place, draw = f"/api/conversations/{self.conversation}/messages", self.draw
        content = draw.choice(
            ["Go on.", "And now? " * 30, "Look at the pictures.", "Größe, 世界 \U0001f426?"]
        )
        chance = 1.0 if plain else draw.random()
        if chance < 0.15:
            names = draw.sample(["pic.png", "pic.jpg", "pic.webp", "tall.png", "broken.png", "wide.png"], 2)
            urls = [
                f"data:{_TYPES[name[-3:]]};base64,{base64.b64encode(FILES[name]).decode()}" for name in names
            ]
            answer = await live.http.post(
                place, json={"content": content, "kind": kind, "attachments": [{"url": url} for url in urls]}
            )
        elif chance < 0.25 and kind == "message":
            files = [("files", ("doc.pdf", FILES["doc.pdf"])), ("files", ("pic.png", FILES["pic.png"]))]
            answer = await live.http.post(place, data={"content": content}, files=files)
        else:
            answer = await live.http.post(place, json={"content": content, "kind": kind})
        if answer.status_code == 415:  # a broken picture is refused at the door
            answer = await live.http.post(place, json={"content": content, "kind": kind})
        if answer.status_code != 202:
            raise AssertionError(f"a message was refused: {answer.status_code} {answer.text}")
        self.counts["turns"] += 1
        return str(answer.json()["turn_id"])

    def _judge(self, live: LiveServer) -> None:
        for said in live.fake.refused[self.refused :]:
            self.wrong.append(f"turn {self.counts['turns']}, {self.model}: {said}")
        self.refused = len(live.fake.refused)

    async def _check(self, live: LiveServer) -> None:
        """Hold the turn at hand against what may have become of it."""
        ended = await live.sessions.turn(self.turn)
        if ended.state == "done" or self.ends == "any":
            return
        if self.ends:
            self.counts["turns that had to end"] += 1
            return
        self.wrong.append(
            f"turn {self.counts['turns']}, {self.model}: {ended.state}, {ended.stop_reason}: {ended.error}"
        )


_PICTURES = ('"image_url"', '"input_image"', '"type": "image"', '"images"')
_MALFORMED = ['{"path": "a', "[1, 2]", "path=a.txt", '{"path": }', "null", '"a.txt"']
_STRANGE = ["functions.bash", "read file", "x" * 140, "größe", "bash\n", "mcp..x"]
_TYPES = {"png": "image/png", "jpg": "image/jpeg", "ebp": "image/webp"}
_WIRES = {
    "/messages": "messages", "/chat/completions": "chat", "/responses": "responses", "/api/chat": "ollama",
}  # fmt: skip


def _offered(body: dict[str, Any], wire: str) -> list[str]:
    tools = body.get("tools") or []
    return [tool["name"] if "name" in tool else tool["function"]["name"] for tool in tools]


def _says(part: dict[str, Any]) -> bool:
    """Whether there is something in a part that can be left out, and was not yet."""
    content = part.get("content") or part.get("output")
    if isinstance(content, list):
        content = [one for one in content if one["type"] != "tool_use" and "thinking" not in one["type"]]
    return bool(content) and "the provider refused it" not in str(part)


def _is_long(body: dict[str, Any]) -> bool:
    return len(body.get("messages") or body.get("input") or ()) > 40


@contextmanager
def at_the_vendors(fake: FakeModels) -> Iterator[None]:
    """Let `fake` stand, as a proxy of the environment, where the vendors' hosts are."""
    before = {name: os.environ.get(name) for name in ("HTTP_PROXY", "http_proxy", "NO_PROXY", "no_proxy")}
    os.environ.update(dict.fromkeys(("HTTP_PROXY", "http_proxy"), f"http://127.0.0.1:{fake.port}"))
    for name in ("NO_PROXY", "no_proxy"):
        os.environ.pop(name, None)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


async def talk(
    place: Path, wire: str, seed: int, turns: int, *, faults: bool = True, restarts: int = 1
) -> Talk:
    """Have a session of so many turns with the models of `wire`, over so many restarts of the server."""
    made = Talk(wire, seed, turns, faults)
    workspace = place / "workspace"
    workspace.mkdir(parents=True)
    for name, content in FILES.items():
        (workspace / name).write_bytes(content)
    parts = 1 + restarts
    with FakeModels() as fake, at_the_vendors(fake):
        fake.answer(lambda body, n: made.answer(body, fake.paths[n]))
        for part in range(parts):
            async with live_server(place, fake, **settings_of(place, fake, wire)) as live:
                if part and made.turn:
                    async with asyncio.timeout(HANG_S):
                        await live.sessions.wait(made.turn)
                await made.go(live, turns // parts)
                if part == parts - 1:
                    await made.calm(live)
                    records = await live.sessions.history(made.conversation)
                    made.counts["summaries"] = sum(record.type == "compaction" for record in records)
    return made


async def efforts(wire: str) -> list[str]:
    """Ask the models of `wire` at every effort, in a turn with parallel calls; returns what was refused."""
    step = {"thinking": "I look", "text": "", "tools": [{"name": "list_files"}, {"name": "think"}]}
    tools = tuple(tool.spec for tool in builtin_tools())
    wishes = (None, Thinking(False), *(Thinking(True, effort) for effort in EFFORTS))
    with FakeModels() as fake, at_the_vendors(fake):
        hosts = HOSTS | {"ollama": fake.openai_url} | ({"openai": AZURE} if wire == "azure" else {})
        at = {name: ProviderSettings("k-0123456789", url) for name, url in hosts.items()}
        fake.script(step)
        for name in WIRES[wire]:
            model = open_model(name, ModelSettings(providers=at, retry=RetryPolicy(retries=0)))
            said = [user_text("go")]
            for wish in (*wishes, *wishes):
                end = await complete(model, ModelRequest(tuple(said), ("Look.",), tools, thinking=wish))
                results = tuple(ToolResultBlock(use.id, "seen") for use in end.message.tool_uses)
                said += [end.message, Message("user", results)]
            await model.aclose()
        return list(fake.refused)


def settings_of(place: Path, fake: FakeModels, wire: str) -> dict[str, Any]:
    hosts = HOSTS | {"ollama": fake.anthropic_url, "anthropic": HOSTS["anthropic"]}
    if wire == "azure":
        hosts |= {"openai": AZURE}
    key = "sk-of-the-test-0123456789"
    strange = {
        "command": sys.executable,
        "args": ["-I", "-S", str(RAW), str(place / "notes"), "strange"],
        "approval": "allow",
    }
    return {
        "providers": {name: {"base_url": url, "api_key": key} for name, url in hosts.items()},
        "agent__context_window": 60_000,
        "mcp_servers": {"strange": strange},
        "env": {"ANTHROPIC_BASE_URL": HOSTS["anthropic"]},
    }
