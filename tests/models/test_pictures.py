"""Pictures that a provider would refuse are lines of text, and one part that it refuses ends no session."""

import base64
import json
from typing import Any

import msgspec
import pytest
from support.model_settings import HELLO, NAMES, settings_for
from support.pictures import gif, jpeg, png, webp
from support.provider_rules import refusal

from bowerbird import Agent
from bowerbird.core.errors import ModelError
from bowerbird.core.messages import (
    BlobSource,
    ImageBlock,
    Message,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    user_text,
)
from bowerbird.core.requests import ModelRequest, Thinking
from bowerbird.models import ModelOverride, RetryPolicy, complete, open_model

BROKEN = b"\x89PNG\r\n\x1a\n\0\0"


def picture(name: object, media_type: str = "image/png") -> ImageBlock:
    return ImageBlock(media_type, BlobSource(str(name)))


def asked(*blocks: Any) -> ModelRequest:
    return ModelRequest((Message("user", (TextBlock("see"), *blocks)),), max_tokens=500)


def shown(body: dict[str, Any]) -> list[tuple[str, bytes]]:
    """Type and bytes of every picture that was sent, however deep it stands."""
    found: list[tuple[str, bytes]] = []

    def look(part: Any) -> None:
        if isinstance(part, list):
            for inner in part:
                look(inner)
        elif isinstance(part, dict):
            if part.get("type") == "image":
                found.append((part["source"]["media_type"], base64.b64decode(part["source"]["data"])))
            elif part.get("type") == "image_url":
                kind, data = part["image_url"]["url"].removeprefix("data:").split(";base64,")
                found.append((kind, base64.b64decode(data)))
            else:
                look(list(part.values()))

    look(body["messages"])
    return found


@pytest.fixture
async def seeing(fake, wire):
    """A model that is shown pictures by the name under which a test keeps them."""
    blobs: dict[str, bytes] = {}
    model = open_model(NAMES[wire], settings_for(fake), blobs=blobs.__getitem__)
    yield model, blobs
    await model.aclose()


def test_the_table_refuses_these_parts() -> None:
    """The other side of every test below."""

    def sent(content: bytes, kind: str = "image/png") -> dict[str, Any]:
        data = base64.b64encode(content).decode()
        return {"type": "image", "source": {"type": "base64", "media_type": kind, "data": data}}

    parts = {
        "Could not process": [sent(BROKEN)],
        "media type image/png": [sent(jpeg())],
        "dimensions exceed": [sent(png(8_001, 1))],
        "2000 pixels": [sent(png(2_001, 1))] * 21,
        "5 MB maximum": [sent(png(more=b"x" * (5 << 20)))],
        "too many": [sent(png())] * 101,
    }
    for words, content in parts.items():
        body = {"messages": [{"role": "user", "content": content}]}
        assert words in (refusal("/v1/messages", body, {}) or "")


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (png(8_001, 3), "8,001 × 3 pixels"),
        (png(3, 9_000), "3 × 9,000 pixels"),
        (jpeg(9_000, 2), "9,000 × 2 pixels"),
        (gif(2, 8_500), "2 × 8,500 pixels"),
        (webp(b"VP8 ", 9_000, 5), "9,000 × 5 pixels"),
        (webp(b"VP8L", 9_000, 5), "9,000 × 5 pixels"),
        (webp(b"VP8X", 9_000, 5), "9,000 × 5 pixels"),
        (BROKEN, "broken"),
        (b"\xff\xd8\xff\xe0", "broken"),
        (png(0, 5), "broken"),
        (b"BM bitmap", "broken, or of a format that is not known"),
        (b"", "broken"),
        (png(9, 9, b"x" * (5 << 20)), "larger than 5 MiB"),
    ],
    ids=str,
)  # fmt: skip
async def test_a_picture_that_would_be_refused_is_said_in_text(fake, seeing, content, why):
    model, blobs = seeing
    blobs["bad"], blobs["good"] = content, png()
    end = await complete(model, asked(picture("bad"), picture("good")))
    assert fake.refused == [] and shown(fake.requests[0]) == [("image/png", png())]
    said = json.dumps(fake.requests[0], ensure_ascii=False)
    assert f"[image: image/png, {len(content):,} bytes; not shown: {why}" in said
    assert any(why in note for note in end.repairs)


@pytest.mark.parametrize(
    ("content", "kind"),
    [(png(), "png"), (jpeg(), "jpeg"), (gif(), "gif"), *((webp(k), "webp") for k in (b"VP8 ", b"VP8L", b"VP8X"))],
    ids=["png", "jpeg", "gif", "lossy", "lossless", "extended"],
)  # fmt: skip
async def test_a_picture_is_sent_as_what_it_is(fake, seeing, content, kind):
    model, blobs = seeing
    blobs["one"] = content
    result = ToolResultBlock("c", [TextBlock("a"), picture("one", "image/jpg")])
    call = Message("assistant", (ToolUseBlock("c", "look", {}),))
    await complete(model, ModelRequest((user_text("go"), call, Message("user", (result, picture("one"))))))
    assert fake.refused == [] and shown(fake.requests[0]) == [(f"image/{kind}", content)] * 2


async def test_of_many_pictures_of_which_one_is_large_the_newest_are_shown(fake, seeing):
    model, blobs = seeing
    blobs["small"], blobs["large"] = png(), png(2_001, 5)
    await complete(model, asked(*[picture("small")] * 40))
    await complete(model, asked(*[picture("large")] * 20))
    await complete(model, asked(*[picture("small")] * 12, *[picture("large")] * 9))
    await complete(model, asked(*[picture("small")] * 20, *[picture("large")] * 9))
    await complete(model, asked(*[picture("small")] * 101))
    assert fake.refused == []
    counts = [len(shown(request)) for request in fake.requests]
    assert counts == [40, 20, 11, 19, 91]
    assert shown(fake.requests[2])[-9:] == [("image/png", blobs["large"])] * 9
    assert "only the newest are" in json.dumps(fake.requests[2])


async def test_a_picture_in_a_result_that_is_an_error_ends_nothing(fake, seeing, wire):
    model, blobs = seeing
    blobs["one"] = png()
    call = Message("assistant", (ToolUseBlock("c", "look", {}),))
    result = Message("user", (ToolResultBlock("c", [TextBlock("failed"), picture("one")], is_error=True),))
    await complete(model, ModelRequest((user_text("go"), call, result)))
    assert fake.refused == [] and "failed" in json.dumps(fake.requests[0])
    assert wire == "openai" or "an error holds text only" in json.dumps(fake.requests[0])


REFUSALS = [
    "messages.0.content.1.image.source.base64.data: Could not process image",
    "messages.0.content.1.image.source.base64: image exceeds 5 MB maximum: 5272940 bytes > 5242880 bytes",
    "You uploaded an unsupported image. Please make sure your image is valid.",
    "Unable to process input image. Please retry or report",
    "Provided image is not valid",
    "unknown variant `image_url`, expected `text`",
    "No endpoints found that support image input",
]


@pytest.mark.parametrize("words", REFUSALS, ids=lambda words: words[-30:])
async def test_pictures_that_a_provider_refuses_are_left_out_and_others_are_not(fake, seeing, words):
    model, blobs = seeing
    name = f"bad {words}"  # what a process knows of a server outlives a test
    blobs[name], blobs["good"] = png(5, 5), png(6, 6)

    status = 404 if "endpoints" in words else 400  # OpenRouter

    def answer(body: dict[str, Any], _n: int) -> dict[str, Any]:
        refused = any(content == blobs[name] for _, content in shown(body))
        return {"status": status, "body": {"error": {"message": words}}} if refused else {"text": "I go on"}

    fake.answer(answer)
    bad = asked(picture(name))
    first = await complete(model, bad)
    assert (first.message.text, fake.request_count) == ("I go on", 2)
    assert any("refused" in note for note in first.repairs)
    later = msgspec.structs.replace(bad, messages=(*bad.messages, *asked(picture("good")).messages))
    await complete(model, later)
    assert fake.request_count == 3 and shown(fake.requests[2]) == [("image/png", blobs["good"])]
    assert "refused by the provider" in json.dumps(fake.requests[2])


async def test_words_about_pictures_where_none_is_are_no_reason_to_ask_again(fake, open_fake):
    fake.script({"status": 400, "body": {"error": {"message": REFUSALS[0]}}})
    with pytest.raises(ModelError):
        await complete(open_fake("openai"), HELLO)
    assert fake.request_count == 1


# ---------------------------------------------------------------- reasoning

CLAUDE = "anthropic:claude-sonnet-4-5"
ON = Thinking(True, "high")
THOUGHT = ThinkingBlock("hm", "sig", CLAUDE)


@pytest.fixture
async def older(fake):
    """A model whose reasoning has a budget."""
    override = {CLAUDE: ModelOverride(thinking_form="budget")}
    model = open_model(CLAUDE, settings_for(fake, RetryPolicy(0), overrides=override))
    yield model
    await model.aclose()


def loop(*began: Any, more: bool = True) -> tuple[Message, ...]:
    """A turn in which the model called twice; its first message begins with `began`."""
    first = Message("assistant", (*began, ToolUseBlock("a", "look", {})))
    second = Message("assistant", (ToolUseBlock("b", "look", {}),))
    seen = (
        Message("user", (ToolResultBlock("a", "x"),)),
        second,
        Message("user", (ToolResultBlock("b", "y"),)),
    )
    return (user_text("go"), first, *seen, *((user_text("[note]"),) if more else ()))


async def test_an_answer_of_reasoning_only_ends_no_session(fake, older):
    alone = Message("assistant", (THOUGHT,))
    trailing = Message("assistant", (TextBlock("a"), THOUGHT, TextBlock(" ")))
    for message in (alone, trailing):
        await complete(older, ModelRequest((user_text("go"), message, user_text("on")), max_tokens=9_000))
    assert fake.refused == []


@pytest.mark.parametrize("thinking", [ON, None], ids=["on", "off"])
@pytest.mark.parametrize(
    "began", [(THOUGHT,), (), (TextBlock("I look"), THOUGHT)], ids=["with", "without", "late"]
)
async def test_reasoning_is_switched_on_and_off_within_a_turn(fake, older, thinking, began):
    for messages in (
        loop(*began),
        loop(*began, more=False),
        (*loop(*began), Message("assistant", (TextBlock("ok"),)), user_text("on")),
    ):
        await complete(older, ModelRequest(messages, max_tokens=9_000, thinking=thinking))
    assert fake.refused == []
    asked_for = ["thinking" in request for request in fake.requests]
    assert asked_for == ([began == (THOUGHT,)] * 2 + [True] if thinking else [False] * 3)


# ---------------------------------------------------------------- whole turns


async def test_a_turn_that_reads_a_picture_of_any_size_goes_on(fake, open_fake, wire, tmp_path):
    (tmp_path / "tall.png").write_bytes(png(3, 9_000))
    (tmp_path / "cut.jpg").write_bytes(jpeg()[:40])
    reads = [{"name": "read_file", "input": {"path": name}} for name in ("tall.png", "cut.jpg")]
    fake.script({"tools": reads}, {"text": "too large, and broken"})
    with Agent(workdir=tmp_path, language_model=open_fake(wire)) as agent:
        result = await agent.run("look")
    assert (fake.refused, result.text) == ([], "too large, and broken")
    sent = json.dumps(fake.requests[1]["messages"], ensure_ascii=False)
    assert "3 × 9,000 pixels, over 8,000" in sent and "broken, or of a format" in sent


async def test_a_turn_in_which_the_model_only_thought_goes_on(fake, open_fake, wire, tmp_path):
    fake.script({"thinking": "hm", "text": ""}, {"text": "done"})
    with Agent(workdir=tmp_path, language_model=open_fake(wire)) as agent:
        result = await agent.run("go")
        again = await agent.run([*result.messages, {"role": "user", "content": "and now?"}])
    assert (fake.refused, result.text, again.text) == ([], "done", "done")


async def test_reasoning_is_not_switched_on_behind_an_answer_that_was_only_thought_of(fake, older):
    said = (
        user_text("go"),
        Message("assistant", (ToolUseBlock("c1", "bash", {}),)),
        Message("user", (ToolResultBlock("c1", "ok"),)),
        Message("assistant", (THOUGHT,)),
        user_text("Your reply was empty."),
    )
    await complete(older, ModelRequest(said, thinking=ON))
    assert fake.refused == []
