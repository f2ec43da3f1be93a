"""A part of a request that its provider refuses by name is left out, said, and the session goes on."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from support.agent_turns import Told, call
from support.fake_models import FakeModels
from support.fake_wire import error_body
from support.model_settings import HELLO, QUICK, settings_for
from support.sessions import place

from bowerbird import Agent
from bowerbird.core.errors import ModelError
from bowerbird.core.events import Notice
from bowerbird.core.messages import Message, ThinkingBlock, ToolResultBlock, ToolUseBlock, user_text
from bowerbird.core.requests import ModelRequest, Thinking, ToolSpec
from bowerbird.models import Model, ModelSettings, ProviderSettings, complete, open_model

BAD = "the moon is full"
Opener = Callable[[str], Model]


@pytest.fixture
async def opened(fake: FakeModels) -> AsyncIterator[Opener]:
    made: list[Model] = []

    def open_one(name: str) -> Model:
        at = {name.partition(":")[0]: ProviderSettings("k", fake.openai_url)}
        made.append(open_model(name, ModelSettings(providers=at, retry=QUICK)))
        return made[-1]

    yield open_one
    for model in made:
        await model.aclose()


def refuses(fake: FakeModels, words: str, said: str) -> None:
    """Let the server refuse every request in which `words` stand, naming what `said` names."""
    steps: list[dict[str, Any]] = [
        {"tools": [call("read_file", path="a.txt")]},
        {"text": "done"},
        {"text": "more"},
    ]

    def answer(body: dict[str, Any], n: int) -> dict[str, Any]:
        if words in msgspec.json.encode(body).decode():
            return {"status": 400, "body": error_body(400, "system" in body, said)}
        return steps.pop(0) if len(steps) > 1 else steps[0]

    fake.answer(answer)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("anthropic:claude-sonnet-4-5", f"messages.2.content.0: {BAD}"),
        ("openai:gpt-4.1", f"Invalid 'messages[3].content': {BAD}"),
        ("deepseek:deepseek-v4-pro", f"messages[3]: {BAD}"),
        ("ollama:qwen3:8b", f"messages[3]: {BAD}"),
    ],
)
async def test_a_result_that_is_refused_by_its_place_is_left_out_of_this_and_all_later_requests(
    opened: Opener, fake: FakeModels, tmp_path: Path, name: str, said: str
) -> None:
    (tmp_path / "a.txt").write_text(BAD)
    refuses(fake, BAD, said)
    with Agent(workdir=tmp_path, language_model=opened(name), max_subagent_depth=0) as agent:
        events = Told([event async for event in agent.stream("go")][:-1])
        first = await agent.run([{"role": "user", "content": "again"}])
    (notice,) = events.of(Notice)
    assert notice.kind == "left_out" and "is left out from now on" in notice.text and BAD in notice.text
    assert fake.refused == [] and first.stop_reason == "completed"
    assert len([body for body in fake.requests if BAD in str(body)]) == 1
    assert "the provider refused it" in str(fake.requests[2])


async def test_what_was_left_out_stands_in_the_journal(fake: FakeModels, tmp_path: Path) -> None:
    async with place(tmp_path, fake) as opened:
        thread = await opened.session()
        opened.maker.models = settings_for(fake)  # it may ask a second time
        refuses(fake, BAD, f"messages.0.content.0: {BAD}")
        await opened.ask(thread, BAD)
        (body, *_) = await opened.bodies(thread, "assistant")
    assert len(body["left_out"]) == 1 and "part 0 of message 0 is left out" in body["left_out"][0]


@pytest.mark.parametrize("said", [f"Invalid schema for function 'odd': {BAD}", f"tools.1.custom.name: {BAD}",
                                  f"* GenerateContentRequest.tools[0].function_declarations[1].name: {BAD}"])  # fmt: skip
async def test_a_tool_that_is_refused_is_no_longer_offered(
    opened: Opener, fake: FakeModels, said: str
) -> None:
    refuses(fake, '"odd"', said)
    tools = tuple(ToolSpec(name, "d", {"type": "object", "properties": {}}) for name in ("even", "odd"))
    model = opened("google-genai:gemini-2.5-pro")
    await complete(model, msgspec.structs.replace(HELLO, tools=tools))
    assert [tool["function"]["name"] for tool in fake.requests[-1]["tools"]] == ["even"]


async def test_a_message_that_is_refused_keeps_the_reasoning_it_began_with(
    opened: Opener, fake: FakeModels
) -> None:
    name = "anthropic:claude-opus-4-5"
    use = ToolUseBlock("c1", "bash", {"command": BAD})
    said = (
        user_text("go"),
        Message("assistant", (ThinkingBlock("hm", "sig", name), use)),
        Message("user", (ToolResultBlock("c1", "ok"),)),
    )
    fake.answer(lambda body, _: {"status": 400, "body": error_body(400, True, f"messages.1: {BAD}")}
                if BAD in str(body) else {"text": "done"})  # fmt: skip
    end = await complete(opened(name), ModelRequest(said, thinking=Thinking(True)))
    assert (fake.refused, end.message.text) == ([], "done")
    assert [block["type"] for block in fake.requests[-1]["messages"][1]["content"]] == [
        "thinking",
        "tool_use",
    ]


@pytest.mark.parametrize("said", [f"system.0: {BAD}", f"messages.99: {BAD}", BAD])
async def test_a_refusal_that_names_no_part_ends_the_turn_with_its_words(
    opened: Opener, fake: FakeModels, said: str
) -> None:
    fake.script({"status": 400, "body": error_body(400, True, said)})
    with pytest.raises(ModelError, match=BAD) as failed:
        await complete(opened("anthropic:claude-sonnet-5"), HELLO)
    assert failed.value.kind == "bad_request" and len(fake.requests) == 1


async def test_a_part_that_is_refused_again_without_its_content_is_an_error(
    open_fake: Callable[..., Model], fake: FakeModels, wire: str
) -> None:
    fake.script({"status": 400, "body": error_body(400, True, f"messages.0: {BAD}")})
    with pytest.raises(ModelError, match=BAD):
        await complete(open_fake(wire), HELLO)
    assert len(fake.requests) == 2
