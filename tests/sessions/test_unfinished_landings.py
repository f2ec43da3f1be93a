"""A running server finishes by itself what died half-way, without a start (issue 10)."""

import asyncio
import os
import signal
from pathlib import Path

import pytest
from support.fake_models import FakeModels
from support.patience import HANG_S
from support.sessions import place

from bowerbird.sessions.upkeep import retention
from bowerbird.workspace import Workspace


def killed_in_the_middle(root: Path, data: Path) -> None:
    """What a command leaves that is killed over its landing, while a server runs on the same data."""
    root.mkdir()
    for name in ("a", "b", "c"):
        (root / name).write_text("old")
    child = os.fork()
    if child == 0:
        try:
            workspace = Workspace(root, data_dir=data)
            branch = workspace.branch()

            async def change() -> None:
                for name in ("a", "b", "c"):
                    await branch.write_file(name, "new")

            asyncio.run(change())
            workspace._shared.landings.checkpoint = lambda point: (  # pyright: ignore -- the seam for this test
                os.kill(os.getpid(), signal.SIGKILL) if point == "place 1" else None
            )
            branch.land()
        finally:
            os._exit(9)
    assert os.WIFSIGNALED(os.waitpid(child, 0)[1])


async def test_a_landing_whose_process_died_is_finished_while_the_server_runs(
    tmp_path: Path, fake: FakeModels, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "FIRST_S", 0.05)
    monkeypatch.setattr(retention, "OFTEN_S", 0.05)
    root = tmp_path / "other"
    async with place(tmp_path, fake) as home:
        await asyncio.sleep(0.2)  # the first pass is over
        await asyncio.to_thread(killed_in_the_middle, root, home.data)
        async with asyncio.timeout(HANG_S):
            while {path.read_text() for path in root.glob("[abc]")} != {"new"}:
                await asyncio.sleep(0.02)
            while list(root.glob(".bowerbird*")):
                await asyncio.sleep(0.02)
