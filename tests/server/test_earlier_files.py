"""Files as they were: before a branch changed them, at the end of a turn, in a landing (UI-24, UI-26, UI-31)."""

from typing import Any

import httpx
from support.servers import TestServer


def write(path: str, content: str) -> dict[str, Any]:
    return {"name": "write_file", "input": {"path": path, "content": content}}


def say(client: httpx.Client, conversation: str, words: str) -> str:
    """Say something and wait for the answer; the turn."""
    done = client.post(
        f"/api/conversations/{conversation}/messages", params={"wait": 60}, json={"content": words}
    )
    assert done.status_code == 200, done.text
    return str(done.json()["turn_id"])


def two_turns(server: TestServer, client: httpx.Client, folder: str) -> tuple[str, str, str]:
    """A conversation of two turns that change the same file of a folder of the workspace."""
    landed = client.post(
        "/api/workspace/upload", params={"subdir": folder}, files=[("files", ("both.txt", b"landed\n"))]
    )
    assert landed.status_code == 200
    server.fake.script(
        {
            "tools": [
                {"name": "read_file", "input": {"path": f"/{folder}/both.txt"}},
                write(f"/{folder}/both.txt", "first\n"),
            ]
        },
        {"text": "1"},
        {"tools": [write(f"/{folder}/both.txt", "second\n"), write(f"/{folder}/new.txt", "new\n")]},
        {"text": "2"},
    )
    conversation = client.post("/api/chat").json()["conversation_id"]
    return conversation, say(client, conversation, "one"), say(client, conversation, "two")


def test_a_download_can_be_of_the_file_before_the_branch_changed_it(
    server: TestServer, client: httpx.Client
) -> None:
    """What is new has no version before; a range of the old one names its size."""
    conversation, _, _ = two_turns(server, client, "a")
    place = f"/api/files/{conversation}/a"
    assert client.get(f"{place}/both.txt").content == b"second\n"
    assert client.get(f"{place}/both.txt", params={"version": "old"}).content == b"landed\n"
    part = client.get(f"{place}/both.txt", params={"version": "old"}, headers={"Range": "bytes=0-0"})
    assert part.status_code == 206 and part.headers["content-range"] == "bytes 0-0/7"
    assert client.get(f"{place}/new.txt", params={"version": "old"}).status_code == 404
    assert client.get(f"/api/files/{conversation}/.bowerbird/x", params={"version": "old"}).status_code in (
        403,
        404,
    )
    assert client.get(f"{place}/both.txt", params={"version": "older"}).status_code == 422


def test_files_can_be_listed_and_read_as_of_a_turn(server: TestServer, client: httpx.Client) -> None:
    conversation, first, second = two_turns(server, client, "b")

    def listed(at: str) -> dict[str, str]:
        rows = client.get("/api/workspace/files", params={"conversation": conversation, "at": at}).json()
        return {row["path"]: row["state"] for row in rows}

    assert "b/new.txt" not in listed(first) and listed(second)["b/new.txt"] == "unlanded"
    assert listed(first)["b/both.txt"] == "unlanded"
    for at, content in ((first, "first\n"), (second, "second\n")):
        params = {"conversation": conversation, "at": at}
        assert client.get("/api/workspace/file/b/both.txt", params=params).json()["content"] == content
        downloaded = client.get(f"/api/files/{conversation}/b/both.txt", params={"at": at})
        assert downloaded.text == content
    params = {"conversation": conversation, "at": "t_unknown"}
    assert client.get("/api/workspace/file/b/both.txt", params=params).status_code == 404


def test_a_landing_says_what_it_did_also_after_it_was_taken_back(
    server: TestServer, client: httpx.Client
) -> None:
    conversation, _, _ = two_turns(server, client, "c")
    landing = client.post(f"/api/conversations/{conversation}/land", json={}).json()["id"]
    client.post(f"/api/landings/{landing}/undo")
    told = client.get(f"/api/landings/{landing}/diff").json()
    by_path = {row["path"]: row for row in told["written"]}
    assert by_path["/c/both.txt"]["hunks"][0]["text"] == "-landed\n+second\n"
    assert by_path["/c/new.txt"]["kind"] == "create" and told["deleted"] == []
    one = client.get(f"/api/landings/{landing}/diff", params={"path": "/c/new.txt"}).json()
    assert [row["path"] for row in one["written"]] == ["/c/new.txt"]
    assert client.get("/api/landings/l_unknown/diff").status_code == 404
