"""What viewers get when an answer breaks off and begins again (D-13)."""

import json

import pytest

from bowerbird.core.events import AssistantStep, MessageRestart, TextLive
from bowerbird.core.messages import Message, TextBlock
from bowerbird.core.usage import Usage
from bowerbird.server.socket.translate import Translator
from bowerbird.sessions.live.hub import Lagged, Live, Published, TurnMark


def test_a_message_that_begins_again_keeps_its_id_and_loses_its_text() -> None:
    fold = Translator(cursor=4)
    whole = AssistantStep(Message("assistant", (TextBlock("whole"),), "m2"), "end_turn", "m", Usage())
    events = [
        Published("x", "t", None, TextLive("bro", "m1", 0)),
        Published("x", "t", None, MessageRestart("m1", "stream_cut")),
        Published("x", "t", None, TextLive("whole", "m2", 0)),
        Published("x", "t", 5, whole),
    ]
    frames = [json.loads(frame.text) for event in events for frame in fold.frames(event)]
    assert [(f["type"], f.get("content"), f["message_id"]) for f in frames] == [
        ("text_delta", "bro", "msg_5"),
        ("message_restart", None, "msg_5"),
        ("text_delta", "whole", "msg_5"),
        ("message_end", None, "msg_5"),
    ]


def test_who_comes_after_a_restart_gets_nothing_of_what_broke_off() -> None:
    live = Live()
    live.publish(Published("x", "t", None, TextLive("bro", "m1", 0)))
    live.publish(Published("x", "t", None, MessageRestart("m1", "stream_cut")))
    assert live.so_far("x") == ()
    live.publish(Published("x", "t", None, TextLive("wh", "m2", 0)))
    assert [published.event for published in live.so_far("x")] == [TextLive("wh", "m2", 0)]


@pytest.mark.parametrize("told", [True, False], ids=["the turn begins again", "only words come"])
def test_a_message_whose_process_died_is_void_for_viewers_of_another_process(told: bool) -> None:
    """D-13: who went on began under the same id, and viewers kept the dead one's words with the tail of the new."""
    live = Live()
    arrived: list[Published] = []
    live.tap("x", arrived.append, lambda: None)
    live.show(Published("x", "t", None, TextLive("dead words", "m1", 0)))
    if told:
        live.publish(Published("x", "t", None, TurnMark("running")))
    live.publish(Published("x", "t", None, TextLive("new", "m2", 0)))
    live.publish(Published("x", "t", None, TextLive(" words", "m2", 3)))
    assert [p.event.message_id for p in live.so_far("x") if isinstance(p.event, TextLive)] == ["m2"]
    fold = Translator(cursor=4)
    frames = [json.loads(frame.text) for published in arrived for frame in fold.frames(published)]
    kinds = [frame["type"] for frame in frames]
    assert kinds[:2] == ["text_delta", "message_restart"] and kinds.count("message_restart") == 1
    assert "".join(frame["content"] for frame in frames[2:] if frame["type"] == "text_delta") == "new words"


def test_the_next_message_of_a_turn_is_no_restart_where_only_the_place_of_the_last_was_told() -> None:
    """Another process's large answer is told by its place in the journal alone."""
    live = Live()
    live.show(Published("x", "t", None, TextLive("whole", "m1", 0)))
    live.show(Published("x", "t", 5, Lagged()))
    arrived: list[Published] = []
    live.tap("x", arrived.append, lambda: None)
    live.show(Published("x", "t", None, TextLive("next", "m2", 0)))
    assert [type(published.event) for published in arrived] == [TextLive]
