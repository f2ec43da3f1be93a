"""`/asyncapi.json`: the socket's frames for machines, valid and true (house R3)."""

import json
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from support.fake_models import FakeModels
from support.live_server import LiveServer, events, live_server, say

from bowerbird.core import wire

SCHEMA = json.loads((Path(__file__).parent / "asyncapi-3.0.0.json").read_text())


def valid(described: dict[str, Any]) -> list[str]:
    errors = jsonschema_rs.validator_for(SCHEMA).iter_errors(described)
    return [f"{list(error.instance_path)}: {error.message[:200]}" for error in errors]


def frame_schema(described: dict[str, Any], kind: str) -> dict[str, Any]:
    """The schema of one message, with what it refers to."""
    return {**described["components"]["messages"][kind]["payload"], "components": described["components"]}


@pytest.mark.parametrize("auth", ["none", "token"])
async def test_the_description_is_valid_and_has_every_frame(
    tmp_path: Path, fake: FakeModels, auth: str
) -> None:
    """Checked against the AsyncAPI Initiative's own schema; behind a credential where one is needed."""
    async with live_server(tmp_path, fake, server__auth=auth) as server:
        if auth == "token":
            assert (await server.http.get("/asyncapi.json")).status_code == 401
            return
        described = (await server.http.get("/asyncapi.json")).json()
    assert valid(described) == []
    assert described["components"]["messages"].keys() == {*wire.SERVER_FRAMES, *wire.CLIENT_FRAMES}
    assert valid({**described, "channels": {"conversation": {"address": 5}}})


async def test_what_a_turn_sends_is_what_the_description_says(server: LiveServer) -> None:
    """Every frame of a turn with a tool, checked against its schema."""
    server.fake.script({"tools": [{"name": "think", "input": {"thought": "hm"}}]}, {"text": "done"})
    described = (await server.http.get("/asyncapi.json")).json()
    conversation = await server.conversation()
    async with server.socket(conversation, "v=2") as socket:
        await say(socket, "hi")
        seen = await events(socket, "done")
    assert {"hello", "turn_started", "tool_call", "tool_result", "text_delta", "done"} <= {
        frame["type"] for frame in seen
    }
    for frame in seen:
        schema = frame_schema(described, frame["type"])
        found = [e.message for e in jsonschema_rs.validator_for(schema).iter_errors(frame)]
        assert found == [], frame
