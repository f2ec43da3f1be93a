"""docs/websocket.md names every frame that the code reads or sends, and its examples are frames (server 2)."""

import ast
import json
import re
from pathlib import Path
from typing import Any

import pytest

import bowerbird.core.events as core_events
import bowerbird.server.socket as socket_package
from bowerbird.core.wire.kinds import PLAIN_TYPES
from bowerbird.server.socket import viewer
from bowerbird.server.socket.commands import BadFrame, parse

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "websocket.md").read_text()
SOCKET = Path(str(socket_package.__file__)).parent
COMMANDS = (
    "message interrupt steer cancel resume ping tool_approval_response plan_approval toggle_plan_mode "
    "toggle_teams toggle_approval background cancel_background"
).split()


def sent_types() -> set[str]:
    """Types in literal bodies `{"type": "…"}` of the code that makes frames, and of events sent as they are."""
    found: set[str] = {*PLAIN_TYPES}
    for path in SOCKET.glob("*.py"):
        if path.name in ("commands.py", "streams.py"):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Dict):
                pairs = zip(node.keys, node.values, strict=True)
                found |= {
                    value.value
                    for key, value in pairs
                    if isinstance(key, ast.Constant) and key.value == "type"
                    and isinstance(value, ast.Constant) and isinstance(value.value, str)
                    and not value.value.startswith("websocket.")
                }  # fmt: skip
    small = (SOCKET / "small.py").read_text()
    for name in re.findall(r"(\w+): lambda e: \[msgspec\.to_builtins\(e\)\]", small):
        found.add(tag_of(name))
    return found


def tag_of(name: str) -> str:
    struct: Any = getattr(core_events, name)
    return str(struct.__struct_config__.tag)


def examples() -> list[dict[str, Any]]:
    block = re.search(r"```json\n(.*?)```", PAGE, re.S)
    assert block is not None
    lines = [line for line in block.group(1).splitlines() if line]
    return [json.loads(text) for text in (*lines, *re.findall(r"\| `(\{.*\})` \|", PAGE))]


@pytest.mark.parametrize("kind", sorted(sent_types()))
def test_every_event_of_the_code_is_on_the_page(kind: str) -> None:
    """server 2: with a row of its own and an example."""
    assert f"\n| `{kind}` |" in PAGE
    assert any(example["type"] == kind for example in examples())


@pytest.mark.parametrize("kind", COMMANDS)
def test_every_frame_of_clients_is_on_the_page_and_read(kind: str) -> None:
    """server 2."""
    [example] = [one for one in examples() if one["type"] == kind]
    assert not isinstance(parse(json.dumps(example)), BadFrame)
    unknown = parse('{"type": "nothing"}')
    assert isinstance(unknown, BadFrame)
    assert sorted(unknown.reason.removeprefix("type must be one of ").split(", ")) == sorted(COMMANDS)


def test_every_close_code_is_on_the_page() -> None:
    """server 2."""
    names = ("UNAUTHORIZED", "UNKNOWN", "TOO_MANY", "GOING_AWAY", "TRY_AGAIN", "POLICY", "TOO_BIG", "BROKEN")
    for name in names:
        assert f"\n| {getattr(viewer, name)} |" in PAGE
