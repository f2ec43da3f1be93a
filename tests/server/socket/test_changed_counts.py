"""How many files an agent changed: the same figure at every door, and none that it left alone (UI-87, SV-42)."""

from pathlib import Path

from support.live_server import LiveServer, events, say

MOVES = [
    {"name": "move_file", "input": {"src": "one", "dst": "two"}},
    {"name": "delete_file", "input": {"path": "gone.txt"}},
    {"name": "write_file", "input": {"path": "new.txt", "content": "new\n"}},
]


def _project(tmp_path: Path) -> None:
    work = tmp_path / "workspace"
    (work / "one").mkdir(parents=True)
    for name in ("one/a.txt", "one/b.txt", "gone.txt", "stays.txt", "a_first.txt"):
        (work / name).write_text(f"what stands in {name}, a line of its own\n" * 3)


async def test_turn_list_and_review_name_one_figure(server: LiveServer, tmp_path: Path) -> None:
    """UI-87, SV-42: two moved files, their old directory, a deleted file and a new one are five."""
    _project(tmp_path)
    server.fake.script({"tools": MOVES}, {"text": "moved"})
    conversation = await server.conversation()
    async with server.socket(conversation, "v=2") as socket:
        await say(socket, "move them")
        seen = await events(socket, "done")
    row = (await server.http.get(f"/api/conversations/{conversation}")).json()
    diff = (await server.http.get(f"/api/conversations/{conversation}/diff")).json()
    moved = {entry["renamed_from"] for entry in diff["written"] if entry["renamed_from"]}
    shown = len(diff["written"]) + len([path for path in diff["deleted"] if path not in moved])
    assert moved == {"/one/a.txt", "/one/b.txt"}
    assert (seen[-1]["changed"], row["changed_files"], shown) == (5, 5, 5)


async def test_an_update_lists_no_file_that_the_agent_left_alone(server: LiveServer, tmp_path: Path) -> None:
    """SV-42: `branch_update` after deletions alone has no files, and says how many changes there are."""
    _project(tmp_path)
    server.fake.script(
        {"text": "nothing yet"},
        {"tools": [{"name": "delete_file", "input": {"path": path}} for path in ("gone.txt", "one/a.txt")]},
        {"text": "deleted"},
    )
    conversation = await server.conversation()
    async with server.socket(conversation, "v=2") as socket:
        await say(socket, "look")
        await events(socket, "done")
        await say(socket, "delete two")
        seen = await events(socket, "done")
    updates = [event for event in seen if event["type"] == "branch_update"]
    assert updates, "a viewer with v=2 hears of changed files"
    assert (updates[-1]["files"], updates[-1]["changed"]) == ([], 2)
