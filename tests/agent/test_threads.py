"""`create_agent` for programs written for LangGraph's shape (AG-68, AG-69)."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from support.fake_models import FakeModels

import bowerbird
from bowerbird.config import load_settings
from bowerbird.core.errors import InvalidArgument

CONFIG = {"configurable": {"thread_id": "telegram_1", "channel": "telegram", "chat_id": "1", "user_id": "7"}}


@dataclass
class HumanMessage:
    """A message object as LangChain has them."""

    content: Any
    type: str = "human"


@pytest.fixture
async def agent(tmp_path: Path, fake: FakeModels) -> Any:
    flags = {
        "agent.data_dir": str(tmp_path / "data"), "agent.workspace": str(tmp_path / "work"),
        "provider.model": "claude-sonnet-4-5", "provider.api_key": "k", "provider.base_url": fake.anthropic_url,
        "scheduler.enabled": True, "gateway.enabled": True,
        "gateway.bridges": {"music": {"allowed_commands": ["echo"], "token": "a-token-of-16-chars"}},
    }  # fmt: skip
    settings = load_settings(flags, env={}, cwd=tmp_path, home=tmp_path).settings
    made, checkpointer, client = await bowerbird.create_agent(settings)
    assert client is None
    yield made
    await checkpointer.aclose()


SHAPES: list[Any] = [
    {"role": "user", "content": "hi"}, {"type": "human", "content": "hi"}, ("user", "hi"), ("human", "hi"), "hi",
    HumanMessage("hi"), HumanMessage([{"type": "text", "text": "hi"}]),
]  # fmt: skip


async def test_messages_come_in_every_usual_shape(agent: Any, fake: FakeModels) -> None:
    """AG-69."""
    fake.script(*[{"text": "hello"} for _ in SHAPES])
    for number, message in enumerate(SHAPES):
        config = {"configurable": {"thread_id": f"t{number}"}}
        answer = await agent.ainvoke({"messages": [message]}, config=config)
        assert [(m.type, m.content) for m in answer["messages"]] == [("human", "hi"), ("ai", "hello")], (
            message
        )
        assert answer["messages"][-1]["content"] == [{"type": "text", "text": "hello"}]


async def test_calls_and_results_read_as_such_programs_read_them(agent: Any, fake: FakeModels) -> None:
    """AG-69: and the tools of schedules and of the host are there (AG-68)."""
    call = {
        "name": "schedule_task",
        "input": {"prompt": "p", "schedule_type": "interval", "schedule_value": "3600"},
    }
    fake.script({"tools": [call]}, {"text": "done"})
    answer = await agent.ainvoke({"messages": "remind me"}, config=CONFIG)
    assert [m.type for m in answer["messages"]] == ["human", "ai", "tool", "ai"]
    assert answer["messages"][1].tool_calls[0]["name"] == "schedule_task"
    assert "Scheduled task" in str(answer["messages"][2]["content"])
    offered = {tool["name"] for tool in fake.requests[0]["tools"]}
    assert {"schedule_task", "list_tasks", "cancel_task", "host_execute", "web_fetch"} <= offered


async def test_what_is_no_message_is_named(agent: Any, fake: FakeModels) -> None:
    """AG-69: nothing is stored, and no model is asked."""
    for messages in ([], [("ai", "hi")], [5], [("a", "b", "c")], [{"role": "user"}], None):
        with pytest.raises(InvalidArgument):
            await agent.ainvoke({"messages": messages}, config=CONFIG)
    assert fake.request_count == 0
