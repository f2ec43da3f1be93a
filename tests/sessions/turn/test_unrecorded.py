"""What a command changed whose end could not be recorded never lands unannounced (D-8, law 7; a stranger's finding)."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from support.fake_models import FakeModels
from support.full_disk import ALONE, can_mount
from support.patience import HANG_S, patience
from support.servers import TestServer, serve

pytestmark = pytest.mark.timeout(patience(30))
NARROW = 24  # MB of the disk that a command fills; 16 of them are the server's reserve


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[TestServer, httpx.Client]]:
    with FakeModels() as fake, serve(tmp_path, fake=fake) as server, server.http as client:
        yield server, client


def conversation(client: httpx.Client) -> str:
    return client.post("/api/chat", json={}).json()["conversation_id"]


def turn(fake: FakeModels, client: httpx.Client, thread: str, *commands: str) -> tuple[dict[str, Any], str]:
    """Let the agent run commands at once; returns the turn and all that its calls were told."""
    fake.reset()
    fake.script({"tools": [{"name": "bash", "input": {"command": c}} for c in commands]}, {"text": "done"})
    path = f"/api/conversations/{thread}/messages"
    ended = client.post(f"{path}?wait=60", json={"content": "go"})
    assert ended.status_code == 200, ended.text
    rows = client.get(path, params={"limit": 200}).json()["messages"]
    calls = [c for r in rows if r["turn_id"] == ended.json()["turn_id"] for c in r.get("tool_calls", ())]
    return ended.json(), "\n".join(str(call["result"]) for call in calls)


def differing(client: httpx.Client, thread: str) -> dict[str, dict[str, Any]]:
    rows = client.get(f"/api/conversations/{thread}/diff").json()["written"]
    return {row["path"].lstrip("/"): row for row in rows}


def full_with(server: TestServer, name: str) -> None:
    """Let the store have no room as soon as a branch has a file of this name: between a command and its record."""
    space = server.serving.application.store.space
    space.is_low = lambda: any((server.data_dir / "branches").glob(f"*/open/{name}"))  # type: ignore[method-assign]


def test_a_command_without_a_record_is_taken_back(served: tuple[TestServer, httpx.Client]) -> None:
    """The file that it wrote stayed on the branch of the failed turn, and landed without a word."""
    server, client = served
    thread = conversation(client)
    turn(server.fake, client, thread, "echo first > kept")
    full_with(server, "torn")
    ended, _ = turn(server.fake, client, thread, "echo half > torn; echo changed > kept")
    assert (ended["state"], ended["error"]["type"]) == ("failed", "StorageFull")
    assert "what bash had changed by then was taken back" in ended["error"]["message"]
    found = differing(client, thread)
    assert list(found) == ["kept"] and "first" in found["kept"]["hunks"][0]["text"]
    # Commands see it, too, and the turn can be resumed: its call runs again.
    server.serving.application.store.space.is_low = lambda: False  # type: ignore[method-assign]
    server.fake.reset()
    server.fake.script({"text": "done"})
    again = client.post(f"/api/conversations/{thread}/resume").json()["turn_id"]
    sessions = server.serving.application.sessions
    assert server.run(sessions.wait(again)).state == "done"
    told = client.get(f"/api/conversations/{thread}/messages", params={"limit": 200}).text
    assert "kept as they are" not in told  # they are not
    assert set(differing(client, thread)) == {"kept", "torn"} and "changed" in json.dumps(
        differing(client, thread)
    )


def test_what_one_call_did_is_taken_back_and_what_the_call_before_it_did_stays(
    served: tuple[TestServer, httpx.Client],
) -> None:
    """Calls of one answer run in their order, each with a mark of its own."""
    server, client = served
    thread = conversation(client)
    full_with(server, "torn")
    ended, _ = turn(server.fake, client, thread, "echo fine > fine", "sleep 1; echo half > torn")
    assert ended["state"] == "failed"
    assert list(differing(client, thread)) == ["fine"]


REALLY_FULL = """
import json, sys
from pathlib import Path
sys.path[:0] = [sys.argv[1], sys.argv[2]]
import support.full_disk as disk
from support.fake_models import FakeModels
from support.servers import serve
from test_unrecorded import NARROW, conversation, differing, turn

place, disk.SIZE_MB = Path(sys.argv[3]), NARROW
disk.mount_small(place)
with FakeModels() as fake, serve(place, fake=fake) as server, server.http as client:
    thread = conversation(client)
    turn(fake, client, thread, "echo first > kept")
    ended, told = turn(fake, client, thread, "head -c 30000000 /dev/zero > torn; true")
    after = turn(fake, client, thread, "cat kept; ls")
    print(json.dumps([ended["error"], told, list(differing(client, thread)), after[0]["state"], after[1]]))
"""


def test_a_small_disk_that_a_command_fills_keeps_nothing_of_it(tmp_path: Path) -> None:
    """The torn file of a command on a 24 MB disk landed: neither the tool's result nor the turn's error named it."""
    if not can_mount():
        pytest.skip("this host gives no user namespaces: no disk of one's own can be filled")
    here = Path(__file__).parent
    words = [sys.executable, "-c", REALLY_FULL, str(here), str(here.parents[1]), str(tmp_path)]
    ran = subprocess.run(
        [*ALONE, *words], capture_output=True, text=True, timeout=HANG_S * 5, check=False, cwd=tmp_path.parent
    )
    assert ran.returncode == 0, ran.stderr[-4000:]
    error, told, differs, state, seen = json.loads(ran.stdout.splitlines()[-1])
    assert "taken back" in (told if error is None else error["message"])
    assert (differs, state, seen.split()) == (["kept"], "done", ["first", "kept"])
