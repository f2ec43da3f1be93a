"""Turns of the loop collected event by event, and what their requests carried."""

import os
from contextlib import aclosing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from support.fake_models import FakeModels

from bowerbird.agent.agent import Agent
from bowerbird.core.events import Done, RunEvent, ToolOutcome
from bowerbird.models import ModelSettings, ProviderSettings, RetryPolicy
from bowerbird.tools import Tool

NAME = "anthropic:claude-sonnet-4-5"
READ: Any = {"effect": "read"}


async def add(a: int, b: int) -> int:
    """Add two numbers.

    Args:
        a: First.
        b: Second.
    """
    return a + b


ADD = Tool(add, **READ)


def call(name: str, **arguments: Any) -> dict[str, Any]:
    """A call as a step of the fake model has it."""
    return {"name": name, "input": arguments}


def settings_for(fake: FakeModels) -> ModelSettings:
    """Settings of a model that asks `fake` and never tries again."""
    return ModelSettings(
        providers={"anthropic": ProviderSettings(api_key="test-key", base_url=fake.anthropic_url)},
        retry=RetryPolicy(retries=0),
    )


@dataclass
class Told:
    """The events of one turn."""

    events: list[RunEvent] = field(default_factory=list)

    @property
    def done(self) -> Done:
        assert isinstance(self.events[-1], Done), self.events[-1]
        return self.events[-1]

    @property
    def outcomes(self) -> list[ToolOutcome]:
        return [e for e in self.events if isinstance(e, ToolOutcome)]

    def of(self, kind: type[Any]) -> list[Any]:
        return [e for e in self.events if isinstance(e, kind)]


def may_call(body: dict[str, Any]) -> bool:
    """Whether a request offers tools that may be called."""
    return bool(body.get("tools")) and body.get("tool_choice") != {"type": "none"}


def results(body: dict[str, Any]) -> list[dict[str, Any]]:
    """Tool results in a request as the Anthropic wire carries them, oldest first."""
    return [
        block
        for message in body["messages"]
        if isinstance(message["content"], list)
        for block in message["content"]
        if block["type"] == "tool_result"
    ]


def texts(body: dict[str, Any]) -> list[str]:
    """All texts of a request's messages, oldest first."""
    found: list[str] = []
    for message in body["messages"]:
        content = message["content"]
        if isinstance(content, str):
            found.append(content)
        else:
            found += [block["text"] for block in content if block["type"] == "text"]
    return found


def result_of(block: dict[str, Any]) -> str:
    content = block["content"]
    return content if isinstance(content, str) else "".join(b.get("text", "") for b in content)


async def events_of(agent: Agent, inputs: Any) -> list[Any]:
    """All events of one run of `agent`."""
    async with aclosing(agent.stream(inputs)) as events:
        return [event async for event in events]


def fingerprint(root: Path) -> dict[str, tuple[bytes, int]]:
    """Bytes and time of every file below `root`."""
    found: dict[str, tuple[bytes, int]] = {}
    for base, _dirs, names in os.walk(root):
        for name in names:
            path = Path(base) / name
            found[str(path.relative_to(root))] = (path.read_bytes(), path.stat().st_mtime_ns)
    return found
