"""Background commands over REST and the socket (server 4, SV-10, DE-31): only the agent could list or cancel one."""

import asyncio
import json
from typing import Any

import pytest
from support.agent_turns import call
from support.fake_models import FakeModels
from support.live_server import LiveServer
from support.patience import HANG_S, patience

pytestmark = pytest.mark.timeout(patience(24))


async def begun(server: LiveServer, fake: FakeModels) -> tuple[str, str]:
    """A conversation whose agent has started a command that does not end; its id and the command's."""
    if (await server.http.get("/api/sandbox")).json()["tier"] == "none":
        pytest.skip("no commands can run here")
    fake.script(
        {"tools": [call("background_run", command="echo up; echo 1 > made; sleep 600")]}, {"text": "It runs."}
    )
    conversation = await server.conversation()
    path = f"/api/conversations/{conversation}"
    said = await server.http.post(f"{path}/messages?wait=60", json={"content": "go"})
    assert said.json()["state"] == "done", said.text
    async with asyncio.timeout(HANG_S):
        while True:
            [run] = (await server.http.get(f"{path}/background")).json()
            if run["tail"]:
                break
            await asyncio.sleep(0.02)
    assert (run["status"], run["output"]) == ("running", "up\n")
    return conversation, str(run["task_id"])


async def test_a_command_is_listed_and_cancelled_and_until_then_land_and_discard_are_refused(
    server: LiveServer, fake: FakeModels
) -> None:
    conversation, task = await begun(server, fake)
    path = f"/api/conversations/{conversation}"
    for refused in ("land", "discard"):
        told = await server.http.post(f"{path}/{refused}", json={})
        assert (told.status_code, told.json()["code"]) == (409, "branch_busy"), told.text
        assert task in told.json()["detail"] and "background/{task_id}/cancel" in told.json()["detail"]
    assert (await server.http.post(f"{path}/background/bg_unknown/cancel")).status_code == 404
    ended = await server.http.post(f"{path}/background/{task}/cancel")
    assert ended.json()["status"] == "killed", ended.text
    again = await server.http.post(f"{path}/background/{task}/cancel")
    assert again.json() == ended.json()
    landed = await server.http.post(f"{path}/land", json={})
    assert landed.status_code == 200, landed.text


async def test_deleting_a_conversation_cancels_its_commands(server: LiveServer, fake: FakeModels) -> None:
    conversation, task = await begun(server, fake)
    branch = (await server.sessions.row(conversation)).branch_id
    deleted = await server.http.delete(f"/api/conversations/{conversation}")
    assert deleted.status_code == 200, deleted.text
    runs = server.serving.application.sandboxes.background_runs(branch)
    assert [(run["task_id"], run["status"]) for run in runs] == [(task, "killed")]


async def test_a_socket_lists_and_cancels_them(server: LiveServer, fake: FakeModels) -> None:
    conversation, task = await begun(server, fake)
    async with server.socket(conversation, "v=2") as socket:

        async def asked(frame: dict[str, Any]) -> dict[str, Any]:
            await socket.send(json.dumps(frame))
            async with asyncio.timeout(HANG_S):
                while True:
                    event = json.loads(await socket.recv())
                    if event["type"] in ("background_runs", "error"):
                        return event

        shown = await asked({"type": "background"})
        assert [(run["task_id"], run["status"]) for run in shown["runs"]] == [(task, "running")]
        assert (await asked({"type": "cancel_background"}))["code"] == "bad_frame"
        assert (await asked({"type": "cancel_background", "task_id": "bg_none"}))["type"] == "error"
        shown = await asked({"type": "cancel_background", "task_id": task})
        assert [(run["task_id"], run["status"]) for run in shown["runs"]] == [(task, "killed")]
