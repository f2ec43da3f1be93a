"""Traces of a session with real settings: nothing secret in them, no gap over a restart (MO acceptance 8)."""

import asyncio
import io
import json
import logging
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text
from support.fake_models import FakeModels
from support.killed_app import application
from support.patience import HANG_S

from bowerbird.app import Application
from bowerbird.app.logs import log_to_stderr
from bowerbird.sessions import NewSession

MODEL = "anthropic:claude-sonnet-4-5"
KEY, SEARCH_KEY, STRANGER = "planted-in-settings-0123", "planted-in-a-section-4567", "ghp_" + "a1B2" * 9
LONG_PATH = "a/" + "readable-directory-name/" * 2 + "readable.txt"


@pytest.fixture
def fake() -> Any:
    with FakeModels() as server:
        yield server


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> Iterator[io.StringIO]:
    """What the log of a server writes at DEBUG, other libraries' lines among it."""
    root, written = logging.getLogger(), io.StringIO()
    handlers, level = root.handlers[:], root.level
    levels = {name: logging.getLogger(name).level for name in logging.root.manager.loggerDict}
    monkeypatch.setattr(sys, "stderr", written)
    log_to_stderr("DEBUG", "text", (KEY, SEARCH_KEY))
    yield written
    root.handlers[:] = handlers
    root.setLevel(level)
    for name, was in levels.items():
        logging.getLogger(name).setLevel(was)


async def turn(opened: Application, thread: str) -> None:
    await opened.drive(thread)
    receipt = await opened.sessions.submit(thread, f"my key is {KEY}")
    async with asyncio.timeout(HANG_S):
        await opened.sessions.wait(receipt.turn_id)


async def test_planted_keys_are_in_no_trace_log_or_error_and_numbers_have_no_gap(
    fake: FakeModels, tmp_path: Path, log: io.StringIO
) -> None:
    """MO-34, MO-35: keys of settings, of a tool's output, of strangers; a 64-character path stays readable."""
    project = tmp_path / "project"
    (project / LONG_PATH).parent.mkdir(parents=True)
    (project / LONG_PATH).write_text(f"{KEY}\n{SEARCH_KEY}\n{STRANGER}\n")
    assert len(LONG_PATH) == 62
    flags = {
        "provider.api_key": KEY, "provider.base_url": fake.anthropic_url, "web.brave_api_key": SEARCH_KEY,
    }  # fmt: skip
    read = {"tools": [{"name": "read_file", "input": {"path": "/" + LONG_PATH}}]}
    failing = {"status": 401, "body": {"error": {"message": f"bad key {KEY}"}}}
    for steps in ((read, {"text": "done"}), (read, failing)):
        fake.script(*steps)
        async with application(tmp_path, flags, MODEL) as opened:
            known = await opened.sessions.list()
            if not known:
                new = NewSession(workspace=str(project), flags={"enable_tracing": True})
                await opened.sessions.create(new)
                known = await opened.sessions.list()
            await turn(opened, known[0].thread_id)
            history = await opened.sessions.history(known[0].thread_id)
            errors = [r.body.get("error") for r in history if r.type == "turn_ended"]
    async with application(tmp_path, flags, MODEL) as opened:
        rows = await opened.store.read(
            lambda c: c.execute(text("SELECT body FROM traces ORDER BY n")).scalars().all()
        )
    records = [json.loads(body) for body in rows]
    traced = "\n".join(rows)
    assert [r["seq"] for r in records if r["type"] == "llm_request"] == [1, 2, 3, 4]
    assert [r["seq"] for r in records if r["type"] == "llm_response"] == [1, 2, 3, 4]
    # The provider did get the key and the text: what is sent is never changed.
    assert fake.headers[0]["x-api-key"] == KEY and KEY in json.dumps(fake.requests[1])
    for place in (traced, log.getvalue(), json.dumps(errors)):
        assert not [secret for secret in (KEY, SEARCH_KEY, STRANGER) if secret in place]
    logging.getLogger("some.library").debug("sent %r", {"x-api-key": KEY})
    assert "some.library" in log.getvalue() and KEY not in log.getvalue()
    assert LONG_PATH in traced and "[redacted:" in traced
