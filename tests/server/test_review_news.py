"""Whoever watches a conversation hears of its review, through whatever door it came (F1, R1)."""

from pathlib import Path
from typing import Any

import pytest
from support.fake_models import FakeModels
from support.live_server import LiveServer, events, live_server
from support.patience import patience

pytestmark = pytest.mark.timeout(patience(60))


def written(path: str) -> dict[str, Any]:
    return {"name": "write_file", "input": {"path": path, "content": "a note\n"}}


async def counted(live: LiveServer) -> int:
    (row,) = (await live.http.get("/api/conversations")).json()
    return row["changed_files"]


async def test_each_review_over_rest_tells_the_viewers_and_counts_again(tmp_path: Path) -> None:
    """F1: no test failed when `landing` was not published after a REST landing."""
    (tmp_path / "workspace").mkdir()
    with FakeModels() as fake:
        async with live_server(tmp_path, fake) as live:
            fake.script({"tools": [written("/a.txt"), written("/b.txt")]}, {"text": "Done."})
            conversation = await live.conversation()
            base = f"/api/conversations/{conversation}"
            await live.http.post(f"{base}/messages", params={"wait": 60}, json={"content": "Write them"})
            assert await counted(live) == 2
            async with live.socket(conversation, "v=2&after=1000") as viewer:

                async def heard() -> str:
                    return str((await events(viewer, "landing"))[-1]["message"])

                landed = (await live.http.post(f"{base}/land", json={"paths": ["a.txt"]})).json()
                assert await heard() == f"landed 1 paths as {landed['id']}"
                assert await counted(live) == 1
                undone = (await live.http.post(f"/api/landings/{landed['id']}/undo")).json()
                assert await heard() == f"took {landed['id']} back as {undone['id']}"
                left = await counted(live)
                gone = await live.http.post(f"{base}/discard", json={"paths": ["b.txt"]})
                assert gone.status_code == 200 and await heard() == "discarded 1 paths"
                assert await counted(live) == left - 1
                await live.http.post(f"{base}/discard")
                assert (await heard()).startswith("discarded")
                assert await counted(live) == 0


async def test_a_landing_by_the_service_is_heard_like_one_over_rest(tmp_path: Path) -> None:
    """R1: every door lands through the service, so none has to tell anybody itself."""
    from bowerbird.sessions.wishes import ToLand

    (tmp_path / "workspace").mkdir()
    with FakeModels() as fake:
        async with live_server(tmp_path, fake) as live:
            fake.script({"tools": [written("/a.txt")]}, {"text": "Done."})
            conversation = await live.conversation()
            base = f"/api/conversations/{conversation}"
            await live.http.post(f"{base}/messages", params={"wait": 60}, json={"content": "Write it"})
            async with live.socket(conversation, "v=2&after=1000") as viewer:
                landing = await live.sessions.review.land(conversation, ToLand(), actor="ann", door="cli")
                assert landing.actor == "ann" and landing.door == "cli"
                assert "landed 1 paths" in (await events(viewer, "landing"))[-1]["message"]
                assert await counted(live) == 0
