"""What HTTP clients expect of the details (server 11, 13, 18)."""

import gzip
import json
import socket
from pathlib import Path
from typing import Any

import httpx
import pytest
from support.patience import HANG_S
from support.servers import TestServer, begin, change, say, serve


@pytest.mark.parametrize(
    "path",
    [
        "/health",
        "/api/conversations",
        "/api/workspace/files",
        "/openapi.json",
        "/api/workspace/file/h.txt",
    ],
)
def test_head_answers_like_get_without_a_body(server: TestServer, client: httpx.Client, path: str) -> None:
    """server 13: HEAD was 405."""
    (server.workspace / "h.txt").write_text("x\n")
    whole, head = client.get(path), client.head(path)
    assert head.status_code == whole.status_code == 200 and head.content == b""
    assert head.headers["content-type"] == whole.headers["content-type"]
    assert head.headers["content-length"] == whole.headers["content-length"]


def test_head_of_a_stream_and_of_what_has_no_get(server: TestServer, client: httpx.Client) -> None:
    """server 13: it neither hangs nor reads the file."""
    conversation = begin(client)
    stream = client.head(f"/api/conversations/{conversation}/events", timeout=60)
    assert stream.status_code == 200 and stream.headers["content-type"].startswith("text/event-stream")
    (server.workspace / "large.bin").write_bytes(b"\0" * 3_000_000)
    large = client.head(f"/api/files/{conversation}/large.bin")
    assert (large.status_code, large.headers["content-length"]) == (200, "3000000")
    assert client.get(f"/api/files/{conversation}/large.bin").content == b"\0" * 3_000_000
    wrong = client.head("/api/workspace/upload")
    assert wrong.status_code == 405 and "HEAD" not in wrong.headers["allow"]
    assert client.head("/api/nothing").status_code == 404
    assert "HEAD" in client.delete("/api/conversations").headers["allow"]


@pytest.mark.parametrize("route", ["/api/workspace/file/{path}", "/api/files/{conversation}/{path}"])
def test_an_unchanged_file_is_not_sent_again(server: TestServer, client: httpx.Client, route: str) -> None:
    """server 13: ETag and Last-Modified, 304, and ranges only of the version that the client has."""
    conversation = begin(client)
    (server.workspace / "e.txt").write_text("0123456789")
    url = route.format(path="e.txt", conversation=conversation)
    first = client.get(url)
    tag, date = first.headers["etag"], first.headers["last-modified"]
    for known in ({"If-None-Match": tag}, {"If-None-Match": f'"x", W/{tag}'}, {"If-Modified-Since": date}):
        again = client.get(url, headers=known)
        assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag)
    for unknown in (
        {"If-None-Match": '"x"'},
        {"If-Modified-Since": "rubbish"},
        {"If-None-Match": '"x"', "If-Modified-Since": date},
    ):
        assert client.get(url, headers=unknown).status_code == 200
    if "/files/" in route:
        part = client.get(url, headers={"Range": "bytes=2-3", "If-Range": tag})
        assert (part.status_code, part.content) == (206, b"23")
    (server.workspace / "e.txt").write_text("abcdefghij")
    changed = client.get(url, headers={"If-None-Match": tag})
    assert changed.status_code == 200 and changed.headers["etag"] != tag and "abcdefghij" in changed.text
    if "/files/" in route:
        assert client.get(url, headers={"Range": "bytes=2-3", "If-Range": tag}).content == b"abcdefghij"


def test_a_message_that_is_too_large_is_a_413_in_mb(tmp_path: Path) -> None:
    """server 13: it was a 422 that said `limits.message_mb allows 1048576`."""
    with serve(tmp_path, flags={"limits.message_mb": 0.5}) as server, server.http as client:
        conversation = begin(client)
        url = f"/api/conversations/{conversation}/messages"
        large = client.post(url, json={"content": "x" * 600_000})
        assert (large.status_code, large.json()["code"]) == (413, "message_too_large")
        assert large.json()["detail"] == "the message has 0.57 MiB of text; limits.message_mb allows 0.5 MiB"
        assert (
            client.post("/api/chat", content=b"{" + b" " * 9_000_000 + b"}").json()["detail"].endswith(" MiB")
        )


def test_a_directory_is_no_file(server: TestServer, client: httpx.Client) -> None:
    """server 13: it was a 409."""
    (server.workspace / "dir").mkdir()
    conversation = begin(client)
    for url in ("/api/workspace/file/dir", f"/api/files/{conversation}/dir", f"/api/files/{conversation}/"):
        answer = client.get(url)
        assert (answer.status_code, answer.json()["code"]) == (404, "is_directory"), answer.text


def test_a_place_in_a_list_that_there_is_not_is_an_error(client: httpx.Client) -> None:
    """server 13: `before=<unknown>` was an empty page, which reads as the end of the list."""
    conversation = begin(client)
    for before in ("0123456789ab", "nothing", "x y"):
        answer = client.get("/api/conversations", params={"before": before})
        assert answer.status_code == 404 and "before" in answer.json()["detail"]
    assert client.get("/api/conversations", params={"before": conversation}).status_code == 200
    client.delete(f"/api/conversations/{conversation}")  # between two pages
    assert client.get("/api/conversations", params={"before": conversation}).status_code == 200


def test_a_comment_on_what_there_is_not_starts_no_turn(server: TestServer, client: httpx.Client) -> None:
    """server 13: it was a 202 and a paid turn."""
    conversation = begin(client)
    server.fake.reset()
    comment = {"path": "nothing.txt", "line": 1, "text": "why?"}
    answer = client.post(f"/api/conversations/{conversation}/comments", json={"comments": [comment]})
    assert answer.status_code == 404 and "nothing.txt" in answer.json()["detail"]
    assert client.get(f"/api/conversations/{conversation}/turns").json()["turns"] == []
    assert not server.fake.requests


def test_names_with_a_line_break_are_files_like_others(server: TestServer, client: httpx.Client) -> None:
    """server 13: 404."""
    (server.workspace / "two\nlines.txt").write_text("here\n")
    conversation = begin(client)
    assert client.get("/api/workspace/file/two%0Alines.txt").json()["content"] == "here\n"
    assert client.get(f"/api/files/{conversation}/two%0Alines.txt").text == "here\n"


def test_a_landing_of_which_everything_is_refused_is_an_error(
    server: TestServer, client: httpx.Client
) -> None:
    """server 13: `partial` with nothing left was 200 with an id that no list had."""
    conversation = begin(client)
    server.fake.reset()
    hook = {"name": "write_file", "input": {"path": ".envrc", "content": "x"}}
    server.fake.script({"tools": [hook]}, {"text": "done"})
    say(client, conversation, "write")
    before = client.get("/api/landings").json()
    answer = client.post(f"/api/conversations/{conversation}/land", json={"partial": True})
    assert (answer.status_code, answer.json()["code"]) == (409, "landing_refused")
    assert [row["path"] for row in answer.json()["refused"]] == ["/.envrc"]
    assert client.get("/api/landings").json() == before


def test_no_answer_about_a_landing_says_where_the_workspace_lies(
    server: TestServer, client: httpx.Client
) -> None:
    """server 11, SV-1."""
    conversation = change(server, client, {"n.txt": "n\n"})
    texts: list[str] = []

    def told(answer: httpx.Response) -> Any:
        assert answer.status_code == 200, answer.text
        texts.append(answer.text)
        return answer.json()

    landed = told(client.post(f"/api/conversations/{conversation}/land"))
    told(client.get("/api/landings"))
    told(client.get(f"/api/landings/{landed['id']}/diff"))
    told(client.post(f"/api/landings/{landed['id']}/undo"))
    assert not any(str(server.workspace.parent) in text for text in texts)


def test_the_api_speaks_of_conversations(client: httpx.Client) -> None:
    """server 18: "session" and "conversation" were mixed; a fork is made, so it is a 201."""
    conversation = begin(client)
    url = f"/api/conversations/{conversation}"
    forked = client.post(f"{url}/fork")
    assert forked.status_code == 201 and forked.json()["conversation_id"] != conversation
    for answer in (
        client.post(f"{url}/fork", json={"turn_id": "t_unknown"}),
        client.get(f"{url}/turns/t_unknown"),
        client.delete(f"{url}/queue/t_unknown"),
        client.get("/api/conversations/0123456789ab"),
    ):
        assert answer.status_code in (404, 409) and "session" not in answer.json()["detail"], answer.text
    described = json.dumps(client.get("/openapi.json").json()["paths"])
    assert " session" not in described.lower()


def test_a_hidden_file_is_said_to_be_hidden(server: TestServer, client: httpx.Client) -> None:
    """D-10: over REST too, and by default."""
    (server.workspace / ".env").write_text("KEY=SUPERSECRETVALUE42\n")
    conversation = begin(client)
    for url in ("/api/workspace/file/.env", f"/api/files/{conversation}/.env"):
        answer = client.get(url)
        assert answer.status_code == 404 and "hidden from agents" in answer.json()["detail"]
    assert ".env" not in [row["path"] for row in client.get("/api/workspace/files").json()]
    server.fake.reset()
    server.fake.script({"tools": [{"name": "read_file", "input": {"path": ".env"}}]}, {"text": "no"})
    say(client, conversation, "read it")
    asked = json.dumps(server.fake.requests)
    assert "SUPERSECRETVALUE42" not in asked and "hidden from agents by the setting workspace.hide" in asked
    assert "Hidden from you and from commands" in asked


def test_an_encoded_body_is_refused_in_words(client: httpx.Client) -> None:
    """server 11: it was read as if it were plain, or called invalid JSON."""
    url, kind = f"/api/conversations/{begin(client)}/messages", {"Content-Type": "application/json"}
    body = json.dumps({"content": "x"}).encode()
    for encoding, sent in (("gzip", gzip.compress(body)), ("gzip", body), ("br", body)):
        wrong = client.post(url, content=sent, headers={**kind, "Content-Encoding": encoding})
        assert (wrong.status_code, wrong.json()["code"]) == (415, "unsupported_media_type")
        assert "Content-Encoding" in wrong.json()["detail"]
    assert client.post(url, content=body, headers={**kind, "Content-Encoding": "identity"}).status_code == 202


def test_a_request_comes_from_one_origin(server: TestServer, client: httpx.Client) -> None:
    """Security: of two, the first was checked and the other let through."""
    own = str(client.base_url).rstrip("/")
    for second in ("http://evil.example", own):
        wrong = client.post("/api/chat", headers=[("Origin", own), ("Origin", second)])
        assert (wrong.status_code, wrong.json()["code"]) == (400, "bad_request")
    assert client.post("/api/chat", headers={"Origin": own}).status_code == 200


def test_who_leaves_with_a_request_behind_a_stream_is_noticed(
    server: TestServer, client: httpx.Client, caplog: pytest.LogCaptureFixture
) -> None:
    """SV-20, SV-59: only the newest request heard of it: the stream went on, and each left a traceback in the log."""
    conversation = begin(client)
    name, port = server.url.partition("://")[2].split(":")
    head = f" HTTP/1.1\r\nHost: {name}:{port}\r\n\r\n"
    for _ in range(3):
        with socket.create_connection((name, int(port)), timeout=HANG_S) as leaving:
            stream = f"GET /api/conversations/{conversation}/events{head}GET /health/live{head}"
            leaving.sendall(stream.encode())
            seen = b""
            while b": connected" not in seen:
                seen += leaving.recv(65_536)
    say(client, conversation, "hi")  # which the streams would show
    say(client, conversation, "hi again")
    assert [row.getMessage() for row in caplog.records if row.levelname == "ERROR"] == []
