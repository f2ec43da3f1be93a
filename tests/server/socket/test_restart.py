"""What viewers get when an answer breaks off and begins again (D-13)."""

import json

from bowerbird.core.events import AssistantStep, MessageRestart, TextLive
from bowerbird.core.messages import Message, TextBlock
from bowerbird.core.usage import Usage
from bowerbird.server.socket.translate import Translator
from bowerbird.sessions.live.hub import Live, Published


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
