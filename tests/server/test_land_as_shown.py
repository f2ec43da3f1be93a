"""What lands is what was shown: a review is one answer, and a landing names the state of each path in it."""

from pathlib import Path
from typing import Any

import pytest
from support.fake_models import FakeModels
from support.live_server import LiveServer, events, live_server
from support.patience import patience
from support.random_reviews import run_rounds

pytestmark = pytest.mark.timeout(patience(120))


async def reviewed(live: LiveServer, fake: FakeModels, *names: str) -> str:
    """Return a conversation whose agent wrote some files."""
    calls = [{"name": "write_file", "input": {"path": f"/{name}", "content": f"{name}\n"}} for name in names]
    fake.script({"tools": calls}, {"text": "Done."})
    conversation = await live.conversation()
    base = f"/api/conversations/{conversation}"
    await live.http.post(f"{base}/messages", params={"wait": 60}, json={"content": "Write them"})
    return conversation


async def drawn(live: LiveServer, conversation: str) -> tuple[dict[str, str], dict[str, str]]:
    """Return what a page draws: by path its new text, and its state."""
    answer = (await live.http.get(f"/api/conversations/{conversation}/review")).json()
    texts = {
        row["path"]: "".join(
            line[1:] + "\n" for hunk in row["hunks"] for line in hunk["text"].splitlines() if line[:1] in " +"
        )
        for row in answer["diff"]["written"]
    }
    return texts, {entry["path"]: entry["state"] for entry in answer["plan"]["entries"]}


@pytest.mark.parametrize("how", ["content", "mode", "gone", "workspace", "more"])
async def test_what_moved_after_it_was_shown_is_refused_by_name(tmp_path: Path, how: str) -> None:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    with FakeModels() as fake:
        async with live_server(tmp_path, fake) as live:
            conversation = await reviewed(live, fake, "a.txt", "b.txt")
            _, seen = await drawn(live, conversation)
            branch = await live.sessions.branch(conversation)
            if how == "content":
                await branch.write_file("/a.txt", "other\n")
            elif how == "mode":
                await branch.set_executable("/a.txt", True)
            elif how == "gone":
                await branch.delete("/a.txt")
                await branch.mkdir("/a.txt")
            elif how == "workspace":
                (workspace / "a.txt").write_text("a.txt\n")
            else:
                await branch.write_file("/c.txt", "nobody saw it\n")
            place = f"/api/conversations/{conversation}/land"
            answer = await live.http.post(place, json={"seen": seen})
            moved = "/c.txt" if how == "more" else "/a.txt"
            assert answer.status_code == 409, answer.text
            assert {row["path"]: row["reason"] for row in answer.json()["refused"]} == {moved: "moved"}
            assert not (workspace / "b.txt").exists()
            unmoved = ["/b.txt"] if how != "more" else ["/a.txt", "/b.txt"]
            answer = await live.http.post(place, json={"seen": seen, "paths": unmoved})
            assert answer.status_code == 200, answer.text
            assert sorted(p.name for p in workspace.iterdir() if p.name != "a.txt" or how == "more") == [
                path[1:] for path in unmoved
            ]


async def test_some_hunks_land_as_they_were_shown_or_not_at_all(tmp_path: Path) -> None:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    lines = [f"{n}\n" for n in range(40)]
    (workspace / "a.txt").write_text("".join(lines))
    with FakeModels() as fake:
        async with live_server(tmp_path, fake) as live:
            conversation = await reviewed(live, fake, "b.txt")
            branch = await live.sessions.branch(conversation)
            changed = ["first\n", *lines[1:-1], "last\n"]
            await branch.write_file("/a.txt", "".join(changed))
            answer = (await live.http.get(f"/api/conversations/{conversation}/review")).json()
            hunks = next(row for row in answer["diff"]["written"] if row["path"] == "/a.txt")["hunks"]
            seen = {entry["path"]: entry["state"] for entry in answer["plan"]["entries"]}
            wanted = {"paths": ["/a.txt"], "hunks": [hunks[0]["id"]], "seen": seen}
            await branch.write_file("/a.txt", "".join([*changed, "more\n"]))
            place = f"/api/conversations/{conversation}/land"
            assert (await live.http.post(place, json=wanted)).status_code == 409
            await branch.write_file("/a.txt", "".join(changed))
            assert (await live.http.post(place, json=wanted)).status_code == 200
            assert (workspace / "a.txt").read_text() == "".join(["first\n", *lines[1:]])


async def test_whatever_changes_while_a_review_is_open_what_lands_is_what_was_drawn(tmp_path: Path) -> None:
    """Random changes by other doors between drawing and landing; the whole count runs in the drills."""
    rounds = await run_rounds(tmp_path, seed=1, count=25)
    assert rounds.wrong == []
    assert rounds.landed > 5 and rounds.refused > 2


async def test_every_change_of_a_branch_is_told_whatever_door_made_it(tmp_path: Path) -> None:
    (tmp_path / "workspace").mkdir()
    with FakeModels() as fake:
        async with live_server(tmp_path, fake) as live:
            conversation = await reviewed(live, fake, "a.txt")
            async with live.socket(conversation, "v=2&after=1000") as viewer:

                async def told() -> int:
                    return int((await events(viewer, "branch_update"))[-1]["changed"])

                base = f"/api/conversations/{conversation}"
                await live.http.post(f"{base}/land", json={})
                assert await told() == 0
                files: Any = {"files": ("up.txt", b"mine\n")}
                query = {"conversation": conversation}
                answer = await live.http.post("/api/workspace/upload", params=query, files=files)
                assert answer.status_code == 200, answer.text
                assert await told() == 1
