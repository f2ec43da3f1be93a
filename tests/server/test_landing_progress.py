"""A landing of many files, and its undo, are seen while they run at every door (reliability 7)."""

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from support.fake_models import FakeModels
from support.heartbeat import heartbeat
from support.live_server import LiveServer, events, live_server
from support.patience import HANG_S, patience

from bowerbird.cli.client.http import Address, Requests
from bowerbird.cli.client.preferences import Preferences
from bowerbird.cli.client.server import ServerClient
from bowerbird.core.events import LandingProgress
from bowerbird.sessions.wishes import ToLand

pytestmark = pytest.mark.timeout(patience(60))
FILES = 150


class Halted:
    """Stops landings of a branch at the 100th file that is put in place or removed, until it is let go on."""

    def __init__(self, branch: Any) -> None:
        self.arrived, self._go = threading.Event(), threading.Event()
        self._seen = 0
        branch._shared.landings.checkpoint = self._point

    def _point(self, point: str) -> None:
        self._seen += point.startswith(("place", "remove"))
        if self._seen == 100:
            self.arrived.set()
            assert self._go.wait(HANG_S)

    def let_go(self) -> None:
        self._go.set()

    def again(self) -> None:
        self._seen = 0
        self.arrived.clear()
        self._go.clear()


@asynccontextmanager
async def place(tmp_path: Path, **flags: Any) -> AsyncIterator[tuple[LiveServer, str, Halted]]:
    """A server with a conversation whose branch has made many files."""
    (tmp_path / "workspace").mkdir()
    with FakeModels() as fake:
        async with live_server(tmp_path, fake, **flags) as live:
            conversation = await live.conversation()
            branch = await live.sessions.branch(conversation)
            for number in range(FILES):
                await branch.write_file(f"dir/{number}.txt", "new\n")
            halted = Halted(branch)
            try:
                yield live, conversation, halted
            finally:
                halted.let_go()


async def arrived(halted: Halted) -> None:
    assert await asyncio.to_thread(halted.arrived.wait, HANG_S)


async def seen_while_it_halts(live: LiveServer, conversation: str, viewer: Any) -> dict[str, Any]:
    """What a viewer, the conversation and the list say of the landing that halts; all the same."""
    while True:
        (*_, frame) = await events(viewer, "landing_progress")
        if frame["phase"] == "placing" and frame["done"] == 99:
            break
    wanted = {name: frame[name] for name in ("kind", "phase", "done", "total", "undoes")}
    shown = (await live.http.get(f"/api/conversations/{conversation}")).json()
    assert shown["landing"] == wanted
    listed = (await live.http.get("/api/landings/running")).json()
    assert listed == [{"conversation_id": conversation, **wanted}]
    return wanted


async def over(viewer: Any) -> dict[str, Any]:
    """The last word: nothing comes after it."""
    while (frame := (await events(viewer, "landing_progress"))[-1])["phase"] != "over":
        pass
    return frame


async def test_a_landing_and_its_undo_are_seen_while_they_run(tmp_path: Path) -> None:
    async with place(tmp_path) as (live, conversation, halted):
        base = f"/api/conversations/{conversation}"
        async with live.socket(conversation, "v=2") as viewer:
            landing = asyncio.create_task(live.http.post(f"{base}/land"))
            await arrived(halted)
            seen = await seen_while_it_halts(live, conversation, viewer)
            assert seen == {"kind": "land", "phase": "placing", "done": 99, "total": FILES, "undoes": None}
            halted.let_go()
            landed = (await landing).json()
            assert (await over(viewer))["done"] == FILES
            assert (await live.http.get(base)).json()["landing"] is None
            halted.again()
            undoing = asyncio.create_task(live.http.post(f"/api/landings/{landed['id']}/undo"))
            await arrived(halted)
            seen = await seen_while_it_halts(live, conversation, viewer)
            assert seen["kind"] == "undo" and seen["undoes"] == landed["id"]
            halted.let_go()
            assert (await undoing).status_code == 200
            assert (await over(viewer))["kind"] == "undo"
            assert (await live.http.get("/api/landings/running")).json() == []


async def test_a_terminal_far_from_the_server_is_told_how_far_it_is(tmp_path: Path) -> None:
    """UI-53 over `--server`: the same line as here, for `land` and for `undo`."""
    async with place(tmp_path) as (live, conversation, halted), aiohttp.ClientSession() as http:
        client = ServerClient(Requests(Address(live.address), http), Preferences())
        told: list[LandingProgress] = []
        landed: dict[str, Any] = {}
        for kind in ("land", "undo"):
            told.clear()
            halted.again()
            if kind == "land":
                work = asyncio.create_task(client.land(conversation, ToLand(), told.append))
            else:
                work = asyncio.create_task(client.undo(landed["id"], force=False, told=told.append))
            async with asyncio.timeout(HANG_S):
                while not any((each.phase, each.done) == ("placing", 99) for each in told):
                    await asyncio.sleep(0.02)
            assert {each.kind for each in told} == {kind}
            halted.let_go()
            landed = await work
            assert landed["state"] == "done"


async def test_a_policy_that_lands_many_files_says_how_far_it_is(tmp_path: Path) -> None:
    async with place(tmp_path, workspace__landing="turn") as (live, conversation, halted):
        live.fake.script(
            {"tools": [{"name": "write_file", "input": {"path": "/a", "content": "a"}}]}, {"text": "Done."}
        )
        async with live.socket(conversation, "v=2&on_disconnect=continue") as viewer:
            await viewer.send('{"type": "message", "content": "go on"}')
            await arrived(halted)
            while (frame := (await events(viewer, "landing_progress"))[-1])["phase"] != "placing":
                pass
            assert frame["turn_id"] and frame["total"] == FILES + 1
            halted.let_go()
            assert (await over(viewer))["turn_id"] == frame["turn_id"]
            await events(viewer, "done")
        assert (tmp_path / "workspace" / "dir" / "7.txt").exists()


async def test_nobody_reads_of_the_landings_of_others(tmp_path: Path) -> None:
    """SV-5: a landing that runs is its owner's."""
    async with place(tmp_path) as (live, conversation, halted):
        halted.let_go()
        live.sessions.live.publish(_published(conversation))
        assert len((await live.http.get("/api/landings/running")).json()) == 1
        live.sessions.live.publish(_published("ffffffffffff"))  # of no conversation that there is
        assert len((await live.http.get("/api/landings/running")).json()) == 1


def _published(thread_id: str) -> Any:
    from bowerbird.sessions.live.hub import Published

    return Published(thread_id, None, None, LandingProgress("land", "placing", 5, 500))


async def test_thousands_of_files_ticked_one_by_one_keep_nobody_waiting(tmp_path: Path) -> None:
    """The page names each ticked file; each was compared with each on the event loop, 43 s for 3,000 of them."""
    (tmp_path / "workspace").mkdir()
    with FakeModels() as fake:
        async with live_server(tmp_path, fake) as live:
            conversation = await live.conversation()
            branch = await live.sessions.branch(conversation)
            made = [f"/dir{number % 50}/file{number}.txt" for number in range(1_500)]
            for path in made:
                await branch.write_file(path, "new\n")
            async with heartbeat() as heart:
                answer = await live.http.post(f"/api/conversations/{conversation}/land", json={"paths": made})
            assert answer.status_code == 200, answer.text
            assert len(answer.json()["entries"]) == len(made)
            assert heart.own < 0.5
