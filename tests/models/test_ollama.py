"""Ollama by its own wire: the context is as large as it is planned with, and nothing is cut in silence."""

import base64
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from support.fake_models import FakeModels
from support.model_settings import QUICK
from support.pictures import png
from support.provider_rules import refusal

from bowerbird import Agent
from bowerbird.core.messages import BlobSource, ImageBlock, Message, TextBlock, user_text
from bowerbird.core.requests import ModelRequest, Thinking
from bowerbird.models import Model, ModelOverride, ModelSettings, ProviderSettings, complete, open_model

Opener = Callable[..., Model]
BLOB = "sha256:" + "0" * 64


@pytest.fixture
async def opened(fake: FakeModels) -> AsyncIterator[Opener]:
    made: list[Model] = []

    def open_one(name: str = "qwen3:8b", **override: Any) -> Model:
        settings = ModelSettings(
            providers={"ollama": ProviderSettings(None, fake.openai_url)},
            retry=QUICK,
            overrides={f"ollama:{name}": ModelOverride(**override)},
            context_window=200_000,
        )
        made.append(open_model(f"ollama:{name}", settings, blobs={BLOB: png()}.__getitem__))
        return made[-1]

    yield open_one
    for model in made:
        await model.aclose()


async def test_an_agent_works_in_a_context_that_is_asked_for(
    opened: Opener, fake: FakeModels, tmp_path: Path
) -> None:
    fake.script(
        {"thinking": "I write", "text": "I write.", "tools": [
            {"name": "write_file", "input": {"path": "a.txt", "content": "a"}},
            {"name": "read_file", "input": {"path": "none"}}]},
        {"text": "Written."}, {"text": "Hello again."},
    )  # fmt: skip
    with Agent(workdir=tmp_path, language_model=opened(), max_subagent_depth=1) as agent:
        first = await agent.run("write a.txt")
        second = await agent.run([*first.messages, {"role": "user", "content": "and now?"}])
    assert (fake.refused, first.text, second.text) == ([], "Written.", "Hello again.")
    assert first.changes.written == ("/a.txt",) and set(fake.paths) == {"/api/chat"}
    asked, *results = fake.requests[1]["messages"][-3:]
    assert asked["tool_calls"][0]["function"] == {
        "name": "write_file", "arguments": {"path": "a.txt", "content": "a"},
    }  # fmt: skip
    assert asked["thinking"] == "I write"
    assert [result["tool_name"] for result in results] == ["write_file", "read_file"]
    assert results[1]["content"].startswith("Error: ")
    assert (
        {body["options"]["num_ctx"] for body in fake.requests} == {opened().info.context_window} == {32_768}
    )
    small = {"messages": [{"role": "user", "content": "x" * 30_000}], "options": {}}
    assert "cut silently" in (refusal("/api/chat", small, {}) or "")


async def test_the_context_is_what_a_person_sets(opened: Opener, fake: FakeModels) -> None:
    model = opened(context_window=65_536)
    await complete(model, ModelRequest((user_text("x"),)))
    assert fake.requests[0]["options"]["num_ctx"] == model.info.context_window == 65_536
    assert fake.requests[0]["truncate"] is False


async def test_thinking_pictures_and_forms_are_said_in_its_words(opened: Opener, fake: FakeModels) -> None:
    form = {"type": "object", "properties": {}}
    seen = Message("user", (TextBlock("see"), ImageBlock("image/png", BlobSource(BLOB))))
    for name, wish in (("qwen3:8b", Thinking(True, "max")), ("gpt-oss:20b", Thinking(True, "max")),
                       ("qwen3:8b", Thinking(False)), ("qwen3:8b", None)):  # fmt: skip
        await complete(opened(name, images=True), ModelRequest((seen,), thinking=wish, output_schema=form))
    assert [body.get("think", "unsaid") for body in fake.requests] == [True, "high", False, "unsaid"]
    assert fake.requests[0]["format"] == form
    assert fake.requests[0]["messages"] == [
        {"role": "user", "content": "see", "images": [base64.b64encode(png()).decode()]}
    ]


async def test_a_model_that_cannot_think_is_asked_without(opened: Opener, fake: FakeModels) -> None:
    refused = {"status": 400, "body": {"error": '"llama3:8b" does not support thinking'}}
    fake.answer(lambda body, _: refused if "think" in body else {"text": "fine"})
    end = await complete(
        opened("llama3:8b"), ModelRequest((user_text("x"),), thinking=Thinking(True, "high"))
    )
    assert end.message.text == "fine" and fake.request_count == 2
