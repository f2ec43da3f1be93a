"""One conversation over several providers (MO-23, acceptance 3), and files in it (MO-7)."""

import base64
import hashlib
import json

from support.model_settings import NAMES, settings_for
from support.pictures import png

from bowerbird.core.errors import StoreError
from bowerbird.core.messages import (
    BlobSource,
    ImageBlock,
    Message,
    TextBlock,
    ToolResultBlock,
    message_from_data,
    message_to_data,
    user_text,
)
from bowerbird.core.requests import ModelRequest, Thinking, ToolSpec
from bowerbird.models import ModelOverride, complete, open_model

KEYS = {
    "text": {"type", "text"},
    "thinking": {"type", "thinking", "signature", "origin"},
    "tool_use": {"type", "id", "name", "input"},
    "tool_result": {"type", "tool_use_id", "content", "is_error", "data"},
}
TOOL = ToolSpec("look", "Looks.", {"type": "object", "properties": {}})


async def turn(fake, model, history, step):
    """Let `model` call a tool and answer, each message going through its stored form."""
    fake.script({**step, "tools": [{"name": "look", "input": {}}]}, {**step, "text": "seen"})
    history = [*history, user_text("go on")]
    for _ in range(2):
        request = ModelRequest(tuple(history), tools=(TOOL,), thinking=Thinking(True))
        end = await complete(model, request)
        history.append(message_from_data(json.loads(json.dumps(message_to_data(end.message)))))
        if end.stop_reason == "tool_use":
            results = tuple(ToolResultBlock(use.id, "there", data={"n": 1}) for use in end.message.tool_uses)
            history.append(Message("user", results))
    return history


async def test_a_session_goes_from_anthropic_to_openai_and_back(fake, open_fake):
    """MO-1 … MO-6, MO-23: each message goes through its stored form."""
    first, second = open_fake("anthropic"), open_fake("openai")
    history = await turn(fake, first, [], {"thinking": "deep", "signature": "signed-1"})
    history = await turn(fake, second, history, {"thinking": "other thoughts"})
    openai_request = json.dumps(fake.requests[-1])
    assert "signed-1" not in openai_request and "deep" not in openai_request
    history = await turn(fake, first, history, {"thinking": "again", "signature": "signed-2"})
    blocks = [block for message in fake.requests[-1]["messages"] for block in message["content"]]
    signatures = [block["signature"] for block in blocks if block["type"] == "thinking"]
    assert signatures == ["signed-1", "signed-1", "signed-2"]  # unchanged and in place, none of the other's
    assert "other thoughts" not in json.dumps(fake.requests[-1])
    for message in history:
        for block in message_to_data(message)["content"]:
            assert set(block) <= KEYS[block["type"]], "no key beyond MO-2 … MO-6 is stored"
    assert '"n"' not in json.dumps([request["messages"] for request in fake.requests])  # `data` is never sent


async def test_every_call_has_its_result_directly_after_it_on_both_wires(fake, open_fake):
    history: list[Message] = []
    for wire in ("openai", "anthropic", "openai"):
        history = await turn(fake, open_fake(wire), history, {"thinking": "t"})
    messages = fake.requests[-1]["messages"]
    for index, message in enumerate(messages):
        for call in message.get("tool_calls") or ():
            assert messages[index + 1]["tool_call_id"] == call["id"]


async def test_files_are_read_from_the_blob_store_and_a_lost_one_stops_nothing(fake, wire):
    content = png()
    name = f"sha256:{hashlib.sha256(content).hexdigest()}"

    def read(blob: str) -> bytes:
        if blob != name:
            raise StoreError(f"blob {blob} cannot be read")
        return content

    seeing = {NAMES[wire]: ModelOverride(images=True)}
    model = open_model(NAMES[wire], settings_for(fake, overrides=seeing), blobs=read)
    images = (ImageBlock("image/png", BlobSource(name)), ImageBlock("image/png", BlobSource("sha256:lost")))
    await complete(model, ModelRequest((Message("user", (TextBlock("see"), *images)),)))
    await model.aclose()
    sent = json.dumps(fake.requests[0])
    assert base64.b64encode(content).decode() in sent and "[image: image/png, not available]" in sent
