"""What a server keeps of sessions that are over: the same however many there were (reliability 10)."""

import gc
import json
from pathlib import Path

import pytest
from support.fake_models import FakeModels
from support.live_server import LiveServer, events, live_server

from bowerbird.core.messages import Message
from bowerbird.sessions.journal import history_cache
from bowerbird.subagents import session_tree
from bowerbird.subagents.shared_budget import Purse
from bowerbird.workspace.shared import Held

SESSIONS = 5
KEPT = 2


async def spoken(server: LiveServer, sessions: int) -> None:
    """Have sessions of two turns each, every turn with an edit."""
    for _ in range(sessions):
        conversation = await server.conversation()
        async with server.socket(conversation) as socket:
            for n in range(2):
                edit = {"tools": [{"name": "write_file", "input": {"path": f"f{n}", "content": f"{n}\n"}}]}
                asked = f"[[fake {json.dumps({'steps': [edit, {'text': 'done'}]})}]]"
                await socket.send(json.dumps({"type": "message", "content": asked}))
                await events(socket, "done")


def alive(*kinds: type) -> dict[str, int]:
    """Count what is alive of each kind."""
    gc.collect()
    return {kind.__name__: sum(type(each) is kind for each in gc.get_objects()) for kind in kinds}


async def test_what_is_kept_of_sessions_is_that_of_a_few(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reliability 10: memory grew by 17 KB a turn: what the subagents of each session share, and who holds each
    branch, were kept for ever; histories are those of the sessions used last."""
    monkeypatch.setattr(history_cache, "MOST_SESSIONS", KEPT)
    monkeypatch.setattr(session_tree, "_MOST_GROUPS", KEPT)
    with FakeModels() as fake:
        async with live_server(tmp_path, fake) as server:
            await spoken(server, KEPT)
            few = alive(Message, Purse, Held)
            await spoken(server, SESSIONS)
            many = alive(Message, Purse, Held)
    assert few["Message"] > 0
    assert few["Purse"] > 0
    assert many["Purse"] <= few["Purse"]
    assert many["Held"] <= few["Held"]
    assert many["Message"] < few["Message"] * 2, "nearly all of the last two sessions"
