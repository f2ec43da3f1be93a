"""Every frame of the WebSocket is described where it is defined, and read back as it was sent (server 2, house F6)."""

import json
import re
from typing import Any, get_args

import msgspec
import pytest

from bowerbird.core import wire
from bowerbird.core.events import (
    ApprovalAnswer,
    ApprovalRequest,
    AssistantStep,
    LiveEvent,
    ModeChange,
    StepEvent,
    ToolOutcome,
)
from bowerbird.core.wire.base import ClientFrame, ServerFrame
from bowerbird.core.wire.described import describe
from bowerbird.server.socket.endpoint import BadFrame, parse
from bowerbird.server.socket.simple_frames import MAKERS, NOT_SENT

EVERY = {**wire.SERVER_FRAMES, **wire.CLIENT_FRAMES}
# Pieces of a message are sent by the translator, under the same names.
ELSEWHERE = {"text_delta", "thinking_delta", "message_restart"}


def parameters(kinds: dict[str, Any]) -> Any:
    return pytest.mark.parametrize("kind", kinds.values(), ids=kinds.keys())


@parameters(EVERY)
def test_a_frame_says_what_it_means_and_what_each_member_is(kind: type[ServerFrame | ClientFrame]) -> None:
    """server 2: meaning, members, an example."""
    described = describe(kind)
    assert described.meaning.endswith("."), described.meaning
    assert described.example["type"] == described.type
    without = [member.name for member in described.members if not member.meaning]
    assert not without, f"{kind.__name__}'s docstring has no words for {without}"


@parameters(wire.SERVER_FRAMES)
def test_an_example_is_what_is_sent_to_the_byte(kind: type[ServerFrame]) -> None:
    example = describe(kind).example
    text = json.dumps(example, separators=(",", ":"), ensure_ascii=False)
    frame = wire.read_frame(text)
    assert type(frame) is kind
    assert wire.text_of(frame) == text


@parameters(wire.CLIENT_FRAMES)
def test_an_example_of_a_command_is_read(kind: type[ClientFrame]) -> None:
    assert type(parse(json.dumps(describe(kind).example))) is kind


def test_an_unknown_command_is_told_which_there_are() -> None:
    unknown = parse('{"type": "nothing"}')
    assert isinstance(unknown, BadFrame)
    assert re.findall(r"\w+_?\w*", unknown.reason)[-len(wire.CLIENT_FRAMES) :] == list(wire.CLIENT_FRAMES)


@parameters({str(event.__struct_config__.tag): event for event in get_args(LiveEvent)})
def test_every_live_event_has_a_frame(kind: Any) -> None:
    """House R3: either it is made by hand, or the frame of its name has all its members."""
    tag = str(kind.__struct_config__.tag)
    if kind in MAKERS or tag in ELSEWHERE:
        return
    frame = wire.SERVER_FRAMES.get(tag)
    assert frame is not None, f"{kind.__name__} is never shown: give core/wire a frame {tag!r}"
    assert set(kind.__struct_fields__) <= set(frame.__struct_fields__)


@parameters({str(event.__struct_config__.tag): event for event in get_args(StepEvent)})
def test_every_step_is_sent_or_there_is_a_reason(kind: Any) -> None:
    """House R3: what the translator makes frames of with what it remembers, or a table names."""
    remembered = {AssistantStep, ToolOutcome, ApprovalRequest, ApprovalAnswer, ModeChange}
    places = [kind in remembered, kind in MAKERS, kind in NOT_SENT]
    assert places.count(True) == 1, f"say in simple_frames.py what viewers are told of {kind.__name__}"


def test_a_type_of_a_later_version_is_passed_over_with_its_place() -> None:
    frame = wire.read_frame('{"type": "of_tomorrow", "cursor": 7, "turn_id": "t_1", "x": [1]}')
    assert frame == wire.Unknown("of_tomorrow", cursor=7, turn_id="t_1")


@pytest.mark.parametrize("text", ["5", "[]", "{", '{"type": "text_delta"}', '{"cursor": 1}'])
def test_what_is_no_frame_is_refused(text: str) -> None:
    with pytest.raises(msgspec.DecodeError):
        wire.read_frame(text)


def test_bytes_of_file_names_that_are_no_text_are_shown() -> None:
    text = wire.text_of(wire.ToolCall("read_file", {"path": "caf\udce9"}, "call_1"))
    assert json.loads(text)["input"] == {"path": "caf\\xe9"}
