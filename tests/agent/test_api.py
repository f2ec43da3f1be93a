"""The public face: `bowerbird.Agent` with models from settings, `create_agent` with durable threads."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from support.agent_turns import texts
from support.fake_models import FakeModels

import bowerbird
from bowerbird.config import Settings, load_settings
from bowerbird.core.errors import ConfigError, InvalidArgument, ModelError, NoModel

HEAVY = ("anthropic", "openai", "sqlalchemy", "pygit2", "tree_sitter", "pydantic_monty", "genai_prices")


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home and a current directory without settings, and an environment without keys."""
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "ANTHROPIC_BASE_URL", "MODEL", "LLM_PROVIDER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_public_names_are_there_and_importing_costs_nothing() -> None:
    for name in bowerbird.__all__:
        assert getattr(bowerbird, name) is not None
    assert bowerbird.BranchBusy is bowerbird.errors.BranchBusy
    with pytest.raises(AttributeError):
        _ = bowerbird.nothing_of_this_name
    code = f"import sys, bowerbird; bowerbird.Agent(); print([m for m in {HEAVY!r} if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


async def test_a_named_model_gets_its_key_and_host_from_the_environment(
    fake: FakeModels, elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """AG-8, MO-17."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "from-the-environment")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", fake.anthropic_url)
    fake.script({"text": "hi"})
    with bowerbird.Agent(language_model="anthropic:claude-sonnet-4-5") as agent:
        result = await agent.run("hello")
    assert result.text == "hi"
    assert fake.headers[0]["x-api-key"] == "from-the-environment"
    with bowerbird.Agent() as agent:
        assert (await agent.run("hello")).text == "hi"
    assert fake.requests[1]["model"] == "claude-sonnet-5"


async def test_without_model_and_key_the_run_says_what_to_set(elsewhere: Path) -> None:
    """AG-8."""
    with bowerbird.Agent() as agent, pytest.raises(NoModel, match="ANTHROPIC_API_KEY"):
        await agent.run("hello")


async def test_an_unknown_provider_is_refused_with_the_known_ones(elsewhere: Path) -> None:
    """MO-16."""
    with bowerbird.Agent(language_model="nonsense:x") as agent, pytest.raises(ConfigError, match="anthropic"):
        await agent.run("hello")


# ---------------------------------------------------------------- threads


@pytest.fixture
async def threads(fake: FakeModels, elsewhere: Path) -> AsyncIterator["Threads"]:
    """Make agents with `create_agent`; their stores are closed at the end."""
    makes = Threads(fake, elsewhere)
    yield makes
    await makes.close_all()


class Threads:
    """Makes agents and closes their stores, twice, as AG-70 allows."""

    def __init__(self, fake: FakeModels, root: Path) -> None:
        self.fake, self.root = fake, root
        self.opened: list[Any] = []

    async def __call__(self, **flags: Any) -> Any:
        agent, checkpointer, client = await bowerbird.create_agent(settings(self.fake, self.root, flags))
        assert client is None
        self.opened.append(checkpointer)
        return agent

    async def close_all(self) -> None:
        for checkpointer in self.opened:
            await checkpointer.aclose()
            await checkpointer.aclose()
        self.opened.clear()


def settings(fake: FakeModels, root: Path, flags: Mapping[str, Any] | None = None) -> Settings:
    given = {
        "agent.data_dir": str(root / "data"),
        "agent.workspace": str(root / "workspace"),
        "provider.model": "claude-sonnet-4-5",
        "provider.api_key": "k",
        "provider.base_url": fake.anthropic_url,
        "agent.llm_max_retries": 0,
        **(flags or {}),
    }
    return load_settings(given, env={}, cwd=root, home=root).settings


def say(text: str, thread: str = "telegram_12345") -> tuple[dict[str, Any], dict[str, Any]]:
    message = {"role": "user", "content": text}
    return {"messages": [message]}, {"configurable": {"thread_id": thread, "user_id": "7"}}


async def test_a_thread_remembers_and_its_answer_is_the_last_message(fake: FakeModels, threads: Any) -> None:
    """AG-69: state is the thread's journal."""
    agent = await threads()
    fake.script({"text": "first answer"}, {"text": "second answer"})
    state, config = say("one")
    first = await agent.ainvoke(state, config=config)
    assert first["messages"][-1]["content"] == [{"type": "text", "text": "first answer"}]
    second = await agent.ainvoke(*say("two"))
    assert [m["content"][0]["text"] for m in second["messages"]] == [
        "one", "first answer", "two", "second answer",
    ]  # fmt: skip
    said = [text for text in texts(fake.requests[1]) if not text.startswith("Date: ")]
    assert said[:2] == ["one", "first answer"]


async def test_threads_know_nothing_of_each_other_and_survive_the_process(
    fake: FakeModels, threads: Any, elsewhere: Path
) -> None:
    agent = await threads()
    fake.script({"text": "ok"})
    await asyncio.gather(agent.ainvoke(*say("a", "web_1")), agent.ainvoke(*say("b", "web_2")))
    assert sorted(texts(r)[0] for r in fake.requests) == ["a", "b"]
    await threads.close_all()
    again = await threads()
    answer = await again.ainvoke(*say("c", "web_1"))
    assert [m["content"][0]["text"] for m in answer["messages"]] == ["a", "ok", "c", "ok"]


async def test_streaming_yields_each_message_of_the_turn_once(fake: FakeModels, threads: Any) -> None:
    """AG-69."""
    agent = await threads()
    fake.script({"tools": [{"name": "think", "input": {"thought": "x"}}]}, {"text": "done"})
    state, config = say("go")
    seen = [chunk["messages"][0] async for chunk in agent.astream(state, config=config)]
    assert [m["role"] for m in seen] == ["user", "assistant", "user", "assistant"]
    assert seen[-1]["content"][0]["text"] == "done"
    assert seen[2]["content"][0]["type"] == "tool_result"


async def test_a_missing_thread_id_is_refused(threads: Any) -> None:
    """AG-69."""
    agent = await threads()
    for config in (None, {}, {"configurable": {}}):
        with pytest.raises(InvalidArgument, match="thread_id"):
            await agent.ainvoke(say("x")[0], config=config)


async def test_a_model_failure_is_raised(fake: FakeModels, threads: Any) -> None:
    """AG-33."""
    agent = await threads()
    fake.script({"status": 400})
    with pytest.raises(ModelError):
        await agent.ainvoke(*say("x"))


async def test_a_default_tier_that_cannot_be_built_stops_the_factory(fake: FakeModels, threads: Any) -> None:
    """AG-68, AG-70, MO-41."""
    tiers = {"standard": {"name": "vllm", "model": "x"}}
    with pytest.raises(ConfigError, match="standard"):
        await threads(**{"model_router.enabled": True, "model_router.tiers": tiers})


async def test_with_the_router_on_the_base_model_is_not_built(fake: FakeModels, threads: Any) -> None:
    """AG-68."""
    tier = {"name": "anthropic", "model": "claude-haiku-4-5", "base_url": fake.anthropic_url, "api_key": "k"}
    agent = await threads(
        **{"model_router.enabled": True, "model_router.tiers": {"standard": tier}, "provider.model": "unused"}
    )
    fake.script({"text": "ok"})
    await agent.ainvoke(*say("x"))
    assert fake.requests[0]["model"] == "claude-haiku-4-5"
    assert "switch_model" in [t["name"] for t in fake.requests[0]["tools"]]
