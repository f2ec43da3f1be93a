"""kill -9 of the process that receives, in real processes with real settings (AS-4, acceptance 2, SE-50)."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.fake_models import FakeModels
from support.patience import HANG_S

MODEL = "anthropic:claude-sonnet-4-5"
CHILD = Path(__file__).resolve().parent.parent / "support" / "chat_child.py"


def started(directory: Path, fake: FakeModels, kill: str | None) -> "subprocess.Popen[bytes]":
    flags = {
        "provider.api_key": "k", "provider.base_url": fake.anthropic_url,
        "agent.workspace": str(directory / "project"), "dispatch.lease_s": 2, "dispatch.heartbeat_s": 0.6,
    }  # fmt: skip
    given: dict[str, Any] = {"directory": str(directory), "kill": kill, "flags": flags, "model": MODEL}
    tests = CHILD.parent.parent
    path = f"{tests}{os.pathsep}{tests.parent / 'src'}"
    return subprocess.Popen(
        [sys.executable, str(CHILD), json.dumps(given)], env={**os.environ, "PYTHONPATH": path}
    )


def update(number: int, text: str, **values: Any) -> str:
    message = {
        "channel": "chat", "chat_id": "1", "user_id": "1", "user_name": "Ann", "text": text, "is_private": True,
        "message_id": str(number), "dedupe_key": f"bot:{number}", "received_at": "2026-11-20T05:12:00+00:00",
        **values,
    }  # fmt: skip
    return json.dumps(message) + "\n"


def sent(directory: Path) -> list[str]:
    path = directory / "sent"
    return [json.loads(line)["text"] for line in path.read_text().splitlines()] if path.exists() else []


@pytest.mark.parametrize("kill", ["before", "after", "carrying"])
async def test_an_update_is_one_turn_wherever_its_process_is_killed(
    tmp_path: Path, fake: FakeModels, kill: str
) -> None:
    """Acceptance 2: before and after the commit of an update: one turn, one answer each, in order."""
    fake.answer(lambda body, n: {"text": f"answer {json.dumps(body['messages'][-1]).count('two') + 1}"})
    media = {"media": [{"kind": "photo", "ref": "p"}]} if kill == "carrying" else {}
    (tmp_path / "updates").write_text(update(1, "one", **media) + update(2, "two"))
    child = started(tmp_path, fake, kill)
    assert await asyncio.to_thread(child.wait, HANG_S) == -signal.SIGKILL
    child = started(tmp_path, fake, None)
    try:
        async with asyncio.timeout(HANG_S):
            while len(sent(tmp_path)) < 2:
                await asyncio.sleep(0.05)
    finally:
        child.terminate()
        await asyncio.to_thread(child.wait, HANG_S)
    assert sent(tmp_path) == ["answer 1", "answer 2"]
    assert (tmp_path / "offset").read_text() == "2"
    log = (tmp_path / "data" / "sessions" / "chat_1.jsonl").read_text().splitlines()
    assert [json.loads(line)["content"] for line in log] == ["one", "answer 1", "two", "answer 2"]
