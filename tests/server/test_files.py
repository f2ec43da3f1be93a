"""Files over real HTTP: SV-12, SV-14 … SV-17, SV-25 … SV-28, SV-52; acceptance 8 (partly), 9, 10, 11, 12."""

import os
import socket
import subprocess
from pathlib import Path
from typing import Any

import httpx
import pytest
from support.patience import HANG_S
from support.servers import TestServer, begin, say, until


def write_step(**files: str) -> dict[str, Any]:
    return {
        "tools": [
            {"name": name, "input": {"path": path.replace("__", "."), **more}}
            for path, content in files.items()
            for name, more in (("read_file", {}), ("write_file", {"content": content}))
        ]
    }


def agent_writes(server: TestServer, client: httpx.Client, conversation: str, **files: str) -> dict[str, Any]:
    server.fake.reset()
    server.fake.script(write_step(**files), {"text": "written"})
    return say(client, conversation, "write")


def listed(client: httpx.Client, **query: Any) -> dict[str, dict[str, Any]]:
    rows = client.get("/api/workspace/files", params=query).json()
    return {row["path"]: row for row in rows}


def test_an_agents_file_is_seen_before_it_lands_lands_and_comes_back(
    server: TestServer, client: httpx.Client
) -> None:
    """Acceptance 11; SV-14, SV-25, SV-26, SV-27."""
    conversation = begin(client)
    agent_writes(server, client, conversation, a__txt="hello\n")
    row = listed(client)["a.txt"]
    assert row == {
        "name": "a.txt", "path": "a.txt", "size": 6, "conversation_id": conversation, "state": "unlanded"
    }  # fmt: skip
    assert "a.txt" not in listed(client, conversation="none")
    assert not (server.workspace / "a.txt").exists()
    assert client.get("/api/workspace/file/a.txt").json()["content"] == "hello\n"
    assert client.get("/api/conversations", params={"limit": 1}).json()[0]["changed_files"] == 1
    url = f"/api/conversations/{conversation}"
    diff = client.get(f"{url}/diff").json()
    assert [w["path"] for w in diff["written"]] == ["/a.txt"] and diff["deleted"] == []
    patch = client.get(f"{url}/diff", params={"format": "unified"})
    assert "+hello" in patch.text and patch.headers["content-type"].startswith("text/x-diff")
    plan = client.get(f"{url}/landing-plan").json()
    landed = client.post(f"{url}/land", json={"plan": plan["plan"]})
    assert landed.status_code == 200, landed.text
    assert (server.workspace / "a.txt").read_text() == "hello\n"
    assert client.get(f"{url}/diff").json()["written"] == []
    assert listed(client)["a.txt"]["conversation_id"] is None
    record = landed.json()
    assert record["id"] in [row["id"] for row in client.get("/api/landings").json()]
    of_one = client.get("/api/landings", params={"conversation": conversation}).json()
    assert [row["id"] for row in of_one] == [record["id"]]
    undone = client.post(f"/api/landings/{record['id']}/undo", json={})
    assert undone.status_code == 200 and undone.json()["undoes"] == record["id"]
    assert not (server.workspace / "a.txt").exists()
    assert client.post("/api/landings/l_nothing/undo").status_code == 404
    # Engine 1: the way out of one that needs attention. Server 13: a landing of nothing was 200 with an id.
    assert client.post(f"/api/landings/{record['id']}/fix", json={"how": "retry"}).status_code == 422
    assert client.post("/api/landings/l_nothing/fix", json={"how": "retry"}).status_code == 404
    assert client.post(f"{url}/land").status_code == 200
    nothing = client.post(f"{url}/land")
    assert (nothing.status_code, nothing.json()["code"]) == (409, "nothing_to_land")


def test_a_stale_plan_and_a_conflict_change_nothing(server: TestServer, client: httpx.Client) -> None:
    """SV-26: 409 `stale`, 409 `landing_refused` with the paths."""
    (server.workspace / "c.txt").write_text("base\n")
    conversation = begin(client)
    agent_writes(server, client, conversation, c__txt="agent\n")
    url = f"/api/conversations/{conversation}"
    plan = client.get(f"{url}/landing-plan").json()["plan"]
    (server.workspace / "c.txt").write_text("user\n")
    stale = client.post(f"{url}/land", json={"plan": plan})
    assert (stale.status_code, stale.json()["code"]) == (409, "stale")
    refused = client.post(f"{url}/land", json={})
    assert (refused.status_code, refused.json()["code"]) == (409, "landing_refused")
    assert refused.json()["refused"][0]["path"].endswith("c.txt") and refused.json()["refused"][0]["reason"]
    assert (server.workspace / "c.txt").read_text() == "user\n"
    assert client.post(f"{url}/land", json={"sideways": True}).status_code == 422
    assert client.post(f"{url}/land", json={"force": True}).status_code == 200
    assert (server.workspace / "c.txt").read_text() == "agent\n"


def test_changes_are_discarded_at_some_paths_or_all(server: TestServer, client: httpx.Client) -> None:
    """SV-28."""
    (server.workspace / "kept.txt").write_text("old\n")
    conversation = begin(client)
    agent_writes(server, client, conversation, kept__txt="new\n", d1__txt="1", d2__txt="2")
    url = f"/api/conversations/{conversation}"
    part = client.post(f"{url}/discard", json={"paths": ["kept.txt", "d1.txt"]}).json()
    assert sorted(part["paths"]) == ["/d1.txt", "/kept.txt"]
    assert [w["path"] for w in client.get(f"{url}/diff").json()["written"]] == ["/d2.txt"]
    shown = client.get("/api/workspace/file/kept.txt", params={"conversation": conversation}).json()
    assert shown["content"] == "old\n"
    assert client.post(f"{url}/discard", json={"paths": ["never.txt"]}).status_code == 404
    whole = client.post(f"{url}/discard").json()
    assert whole["paths"] == ["/d2.txt"] and whole["branch"].startswith("b_")
    assert client.get(f"{url}/diff").json() == {"written": [], "deleted": [], "git": []}


def test_comments_become_one_message_that_quotes_the_lines(server: TestServer, client: httpx.Client) -> None:
    """SV-28."""
    conversation = begin(client)
    agent_writes(server, client, conversation, code__py="one = 1\ntwo = 2\nthree = 3\n")
    server.fake.script({"text": "fixed"})
    comments = [{"path": "code.py", "side": "new", "line": 2, "end_line": 3, "text": "Use an enum."}]
    answer = client.post(f"/api/conversations/{conversation}/comments", json={"comments": comments})
    assert answer.status_code == 202 and answer.json()["turn_id"]
    said = client.get(f"/api/conversations/{conversation}").json()
    until(
        lambda: client.get(f"/api/conversations/{conversation}").json()["messages"][-1]["content"] == "fixed",
        "the comment is answered",
    )
    said = client.get(f"/api/conversations/{conversation}").json()["messages"][-2]["content"]
    assert "code.py lines 2-3" in said and "> two = 2\n> three = 3\n" in said and "Use an enum." in said


def test_two_conversations_never_see_each_others_unlanded_files(
    server: TestServer, client: httpx.Client
) -> None:
    """SV-52; the newest change of a path is what the workspace view shows."""
    first, second = begin(client), begin(client)
    agent_writes(server, client, first, shared__txt="first\n", only1__txt="1")
    agent_writes(server, client, second, shared__txt="second\n")
    assert "only1.txt" not in listed(client, conversation=second)
    assert client.get("/api/workspace/file/only1.txt", params={"conversation": second}).status_code == 404
    assert client.get("/api/workspace/file/shared.txt", params={"conversation": first}).json()["content"] == (
        "first\n"
    )
    assert listed(client)["shared.txt"]["conversation_id"] == second
    assert client.get("/api/workspace/file/shared.txt").json()["content"] == "second\n"
    assert listed(client)["only1.txt"]["conversation_id"] == first
    assert client.get("/api/workspace/files", params={"limit": 1}).headers["X-Truncated"] == "true"


@pytest.mark.parametrize(
    ("name", "content", "binary"),
    [
        ("plain.txt", "é\n".encode(), False),
        ("known.png", b"plain text", True),
        ("nul.txt", b"a\0b", True),
        ("latin.txt", b"\xe9\xe8", True),
    ],
)
def test_text_is_told_from_binary(
    server: TestServer, client: httpx.Client, name: str, content: bytes, binary: bool
) -> None:
    """SV-15."""
    (server.workspace / name).write_bytes(content)
    shown = client.get(f"/api/workspace/file/{name}").json()
    assert shown["binary"] is binary and shown["size"] == len(content) and shown["name"] == name
    assert shown["content"] == (None if binary else content.decode())


def test_long_text_is_cut_on_a_character_and_says_so(server: TestServer, client: httpx.Client) -> None:
    """SV-15: 102,400 bytes."""
    (server.workspace / "long.md").write_text("x" + "é" * 80_000)
    shown = client.get("/api/workspace/file/long.md").json()
    text, _, marker = shown["content"].rpartition("\n")
    assert shown["truncated"] is True and shown["language"] == "markdown"
    assert len(text.encode()) == 102_399 and set(text[1:]) == {"é"} and "160001" in marker


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("%2e%2e/%2e%2e/etc/passwd", 403), ("a/%2e%2e/%2e%2e/x", 403), (".agent/memory.md", 403),
        (".tasks/x", 403), ("x/../.team/y", 403), ("nothing", 404), ("a%00b", 404), ("out", 404), ("lead/passwd", 403),
    ],
)  # fmt: skip
def test_no_path_leads_outside_or_into_our_records(
    server: TestServer, client: httpx.Client, path: str, status: int
) -> None:
    """SV-15, SV-17."""
    records = server.workspace / ".agent"
    records.mkdir(exist_ok=True)
    (records / "memory.md").write_text("private")
    for link, target in (("out", ".agent/memory.md"), ("lead", "/etc")):
        if not (server.workspace / link).is_symlink():
            (server.workspace / link).symlink_to(target)
    conversation = begin(client)
    for url in (f"/api/workspace/file/{path}", f"/api/files/{conversation}/{path}"):
        assert client.get(url).status_code == status, url
    assert "lead" not in listed(client) and "out" not in listed(client)


def test_a_download_is_an_attachment_with_ranges(server: TestServer, client: httpx.Client) -> None:
    """SV-17."""
    (server.workspace / "d ä.bin").write_bytes(bytes(range(100)))
    conversation = begin(client)
    url = f"/api/files/{conversation}/d%20%C3%A4.bin"
    whole = client.get(url)
    assert whole.content == bytes(range(100)) and whole.headers["x-content-type-options"] == "nosniff"
    assert whole.headers["content-disposition"].startswith("attachment;")
    assert "filename*=UTF-8''d%20%C3%A4.bin" in whole.headers["content-disposition"]
    part = client.get(url, headers={"Range": "bytes=10-19"})
    assert part.status_code == 206 and part.content == bytes(range(10, 20))
    assert part.headers["content-range"] == "bytes 10-19/100"
    assert client.get(url, headers={"Range": "bytes=-5"}).content == bytes(range(95, 100))
    beyond = client.get(url, headers={"Range": "bytes=100-"})
    assert beyond.status_code == 416 and beyond.headers["content-range"] == "bytes */100"
    assert client.get(f"/api/files/none/{'x'}").status_code == 404


# ---------------------------------------------------------------- uploads


def test_an_upload_lands_and_can_be_undone(server: TestServer, client: httpx.Client) -> None:
    """SV-16; acceptance 9: the directory part of a name is dropped."""
    files = [("files", ("../../up1.txt", b"one")), ("files", ("C:\\x\\up2.txt", b"two"))]
    answer = client.post("/api/workspace/upload", params={"subdir": "sub"}, files=files)
    assert answer.json() == {"uploaded": ["sub/up1.txt", "sub/up2.txt"]}, answer.text
    assert (server.workspace / "sub/up1.txt").read_bytes() == b"one"
    newest = client.get("/api/landings").json()[0]
    assert newest["door"] == "web" and {e["path"] for e in newest["entries"]} >= {
        "/sub/up1.txt",
        "/sub/up2.txt",
    }
    again = client.post(
        "/api/workspace/upload", params={"subdir": "sub"}, files={"files": ("up1.txt", b"ONE")}
    )
    assert again.status_code == 200 and (server.workspace / "sub/up1.txt").read_bytes() == b"ONE"
    (server.workspace / "sub/up1.txt").write_bytes(b"edited by hand")
    third = client.post("/api/workspace/upload", params={"subdir": "sub"}, files={"files": ("up1.txt", b"3")})
    assert third.status_code == 200 and (server.workspace / "sub/up1.txt").read_bytes() == b"3"
    undone = client.post(f"/api/landings/{client.get('/api/landings').json()[0]['id']}/undo")
    assert undone.status_code == 200 and (server.workspace / "sub/up1.txt").read_bytes() == b"edited by hand"


def test_an_upload_can_go_to_one_conversations_branch(server: TestServer, client: httpx.Client) -> None:
    """SV-16."""
    conversation = begin(client)
    answer = client.post(
        "/api/workspace/upload", params={"conversation": conversation}, files={"files": ("mine.txt", b"m")}
    )
    assert answer.json() == {"uploaded": ["mine.txt"]}
    assert not (server.workspace / "mine.txt").exists()
    diff = client.get(f"/api/conversations/{conversation}/diff").json()
    assert [w["path"] for w in diff["written"]] == ["/mine.txt"]


@pytest.mark.parametrize(
    ("name", "subdir", "status"),
    [
        ("..", "", 422), (".", "", 422), ("x" * 256, "", 422), ("ok", "../out", 403), ("ok", ".agent", 403),
        (".agent", "", 403),
    ],
)  # fmt: skip
def test_a_bad_name_or_place_uploads_nothing(
    server: TestServer, client: httpx.Client, name: str, subdir: str, status: int
) -> None:
    """SV-16: all files or none."""
    files = [("files", ("fine.bin", b"fine")), ("files", (name, b"bad"))]
    answer = client.post("/api/workspace/upload", params={"subdir": subdir}, files=files)
    assert answer.status_code == status, answer.text
    assert not any(path.name == "fine.bin" for path in server.workspace.rglob("*"))
    assert list((server.data_dir / "uploads").iterdir()) == []


def test_too_large_too_many_and_no_files_are_refused(server: TestServer, client: httpx.Client) -> None:
    """SV-16: 10,485,760 bytes each, at most 50."""
    just = client.post("/api/workspace/upload", files={"files": ("just.bin", b"x" * 10_485_760)})
    assert just.status_code == 200
    over = [("files", ("small", b"s")), ("files", ("over.bin", b"x" * 10_485_761))]
    refused = client.post("/api/workspace/upload", files=over)
    assert (refused.status_code, refused.json()["code"]) == (413, "too_large")
    assert not (server.workspace / "small").exists()
    many = [("files", (f"f{n}", b"")) for n in range(51)]
    assert client.post("/api/workspace/upload", files=many).status_code == 422
    assert (
        client.post("/api/workspace/upload", data={"x": "y"}, files={"other": ("a", b"")}).status_code == 422
    )
    assert client.post("/api/workspace/upload", json={}).status_code == 415
    cut = client.post(
        "/api/workspace/upload",
        content=b'--b\r\nContent-Disposition: form-data; name="files"; filename="cut"\r\n\r\nabc',
        headers={"content-type": "multipart/form-data; boundary=b"},
    )
    assert cut.status_code == 422 and not (server.workspace / "cut").exists()


def test_an_endless_upload_is_refused_early_and_costs_no_memory(server: TestServer) -> None:
    """Acceptance 12: 413 while it streams; what is sent afterwards is thrown away."""
    before = rss_kib()
    host, _, port = server.url.removeprefix("http://").partition(":")
    head = (
        f"POST /api/workspace/upload HTTP/1.1\r\nHost: {host}:{port}\r\n"
        f"Content-Type: multipart/form-data; boundary=b\r\nContent-Length: {1 << 30}\r\n\r\n"
        '--b\r\nContent-Disposition: form-data; name="files"; filename="big"\r\n\r\n'
    ).encode()
    with socket.create_connection((host, int(port)), timeout=HANG_S) as stream:
        stream.sendall(head)
        for _ in range(11 * 16 + 1):
            stream.sendall(b"x" * 65536)
        answer = stream.recv(65536)
    assert answer.startswith(b"HTTP/1.1 413 "), answer[:200]
    assert rss_kib() - before < 10 * 1024
    assert not (server.workspace / "big").exists()


def rss_kib() -> int:
    status = Path("/proc/self/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("VmRSS")).split()[1])


# ---------------------------------------------------------------- skills


@pytest.mark.parametrize("name", ["../x", "/abs", "UPPER", "", "a" * 65, ".hidden", "a/b"])
def test_no_skill_name_makes_a_file_anywhere(server: TestServer, client: httpx.Client, name: str) -> None:
    """Acceptance 9; SV-12."""
    before = sorted(server.workspace.parent.rglob("SKILL.md"))
    answer = client.post("/api/skills", json={"name": name, "description": "d", "body": "b"})
    assert answer.status_code == 422
    assert sorted(server.workspace.parent.rglob("SKILL.md")) == before


def test_a_skill_is_written_read_replaced_and_deleted(server: TestServer, client: httpx.Client) -> None:
    """SV-12."""
    skill = {"name": "greet", "description": 'Say "hi"\nkindly: ✓ \\ \x07', "body": "Be kind.\n"}
    made = client.post("/api/skills", json=skill)
    assert made.json() == {"name": "greet", "description": 'Say "hi" kindly: ✓ \\ \x07'}
    assert (server.workspace / "skills/greet/SKILL.md").is_file()
    assert client.get("/api/skills/greet").json() == {**made.json(), "body": "Be kind.\n"}
    assert "greet" in [row["name"] for row in client.get("/api/skills").json()]
    assert client.post("/api/skills", json=skill).status_code == 409
    replaced = client.post("/api/skills", json={**skill, "body": "New."}, params={"overwrite": True})
    assert replaced.status_code == 200 and client.get("/api/skills/greet").json()["body"] == "New."
    assert client.delete("/api/skills/greet").json() == {"status": "deleted"}
    assert client.get("/api/skills/greet").status_code == 404
    assert client.delete("/api/skills/greet").status_code == 404


def test_presets_tools_sandbox_and_workspaces_are_listed(client: httpx.Client) -> None:
    """SV-11, SV-13, SV-30, SV-62."""
    assert {"coding", "work"} <= {row["name"] for row in client.get("/api/presets").json()}
    tools = {row["name"]: row["description"] for row in client.get("/api/tools").json()}
    assert tools["read_file"] and "enter_plan_mode" not in tools and len(tools) <= 16

    def offered(**asked: Any) -> set[str]:
        found = client.get("/api/tools", params={"conversation": begin(client, **asked)})
        return {row["name"] for row in found.json()}

    assert offered(enable_plan_mode=True) == {*tools, "exit_plan_mode"}
    every = offered(tools="full")
    assert {*tools, "enter_plan_mode", "exit_plan_mode", "ls", "todo_add", "run_tournament"} <= every
    sandbox = client.get("/api/sandbox").json()
    assert set(sandbox) == {
        "tier", "minimum", "reasons", "isolation", "network", "network_reason", "limits"
    }  # fmt: skip
    assert client.get("/api/workspaces").json()[0]["landing"] == "review"


# ---------------------------------------------------------------- clean-up


def test_an_idle_conversation_is_released_and_keeps_its_unlanded_files(tmp_path: Path) -> None:
    """SV-53, acceptance 10: the other's files and running command are untouched."""
    from support.servers import serve

    with serve(tmp_path, flags={"workspace.cleanup_delay": 0.3}) as server, server.http as client:
        sandboxes = server.serving.application.sandboxes
        if server.run(sandboxes.status()).tier == "none":
            pytest.skip("commands cannot run here")
        first, second = begin(client), begin(client)
        run = {"tools": [{"name": "bash", "input": {"command": "echo x > made.txt"}}]}
        server.fake.script(run, {"text": "ok"})
        say(client, first, "run")
        branch = client.get(f"/api/conversations/{first}").json()["branch"]["id"]
        server.fake.reset()
        beat = {"tools": [{"name": "bash", "input": {"command": "echo s > started; sleep 600"}}]}
        server.fake.script(beat, {"text": "ok"})
        client.post(f"/api/conversations/{second}/messages", json={"content": "sleep"})
        working = client.get(f"/api/conversations/{second}").json()["branch"]["id"]
        until(lambda: sandboxes.is_busy(working), "the second's command runs")
        until(lambda: branch not in sandboxes._sandboxes, "the first is released")
        other = client.get(f"/api/conversations/{second}").json()
        assert other["status"] == "running" and other["branch"]["id"] in sandboxes._sandboxes
        diff = client.get(f"/api/conversations/{first}/diff").json()
        assert [w["path"] for w in diff["written"]] == ["/made.txt"]
        server.fake.reset()
        server.fake.script(
            {"tools": [{"name": "bash", "input": {"command": "cat made.txt"}, "id": "cat1"}]}, {"text": "k"}
        )
        say(client, first, "again")
        assert "x" in client.get(f"/api/conversations/{first}/calls/cat1").json()["result"]
        assert client.post(f"/api/conversations/{second}/cancel").status_code == 202


def test_no_process_of_this_module_is_left(server: TestServer) -> None:
    children = subprocess.run(
        ["ps", "--ppid", str(os.getpid()), "-o", "comm="], capture_output=True, text=True, check=False
    ).stdout.split()
    assert "sleep" not in children
