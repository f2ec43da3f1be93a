"""A process that drives one turn of an application with real settings, to be killed while its model is silent.

Run as a program: killed_app.py JSON, with `flags` (settings by key), `directory` (base and home), `thread` and
`text`. `flags` of the session are those of its row.
"""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from support.fake_models import FakeModels
from support.patience import HANG_S

from bowerbird.app import Application, open_application
from bowerbird.config import load_settings

HERE = Path(__file__)


@asynccontextmanager
async def application(
    directory: Path, flags: dict[str, Any], model: str, *, drives_all: bool = False
) -> AsyncIterator[Application]:
    """The application of `directory`; opening it again is a restart."""
    project = directory / "project"
    project.mkdir(exist_ok=True)
    chosen = {"agent.data_dir": str(directory / "data"), "agent.llm_max_retries": 0, **flags}
    env = {"HOME": str(directory)}
    if "agent.workspace" in chosen:  # the server's own is said in its settings, not for one command
        env["BOWERBIRD_WORKSPACE_DIR"] = chosen.pop("agent.workspace")
    loaded = load_settings(chosen, env=env, cwd=directory, home=directory, workspace=project)
    async with open_application(
        loaded, workspace=project, model=model, attended=True, drives_all=drives_all
    ) as opened:
        yield opened


async def killed_turn(
    fake: FakeModels, directory: Path, flags: dict[str, Any], model: str, thread: str, requests: int
) -> None:
    """Drive a turn in a process of its own; kill -9 it once the model server has had so many requests."""
    tests = HERE.parent.parent
    given = {"directory": str(directory), "flags": flags, "model": model, "thread": thread}
    child = subprocess.Popen(
        [sys.executable, str(HERE), json.dumps(given)],
        env={**os.environ, "PYTHONPATH": f"{tests}{os.pathsep}{tests.parent / 'src'}"},
    )
    try:
        await fake.wait_requests(requests, timeout=HANG_S)
    finally:
        child.send_signal(signal.SIGKILL)
        child.wait()


async def _drive(directory: str, flags: dict[str, Any], model: str, thread: str) -> None:
    async with application(Path(directory), flags, model) as opened:
        await opened.drive(thread)
        receipt = await opened.sessions.submit(thread, "the turn that is killed")
        await opened.sessions.wait(receipt.turn_id)


if __name__ == "__main__":
    asyncio.run(_drive(**json.loads(sys.argv[1])))
