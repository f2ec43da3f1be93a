"""A path of one route's answer is a path for every other route (server 10)."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from support.servers import TestServer, change

WITH_SLASH = ("diff", "deleted", "plan", "landed", "landing", "landing_diff", "discarded", "refused")
FILES = {"src/a.txt": "a\n", "src/deep/b b.txt": "b\n", "c.txt": "c\n"}


def paths_of(client: httpx.Client, conversation: str) -> dict[str, list[str]]:
    """Return the paths of files that each route's answer names."""
    url = f"/api/conversations/{conversation}"
    diff = client.get(f"{url}/diff").json()
    plan = client.get(f"{url}/landing-plan").json()
    files = client.get("/api/workspace/files", params={"conversation": conversation}).json()
    return {
        "files": [row["path"] for row in files if row["state"] == "unlanded"],
        "file": [client.get(f"/api/workspace/file/{p}").json()["path"] for p in FILES],
        "diff": [row["path"] for row in diff["written"] if row["type"] == "file"],
        "deleted": diff["deleted"],
        "plan": [row["path"] for row in plan["entries"] if row["op"] != "mkdir"],
    }


@pytest.fixture
def conversation(server: TestServer, client: httpx.Client) -> Iterator[str]:
    made = change(server, client, FILES)
    yield made
    client.post(f"/api/conversations/{made}/discard", json={})


def is_ok(answer: httpx.Response) -> httpx.Response:
    assert answer.status_code in (200, 202), (answer.request.url, answer.text)
    return answer


def test_every_route_takes_the_paths_of_every_other(
    server: TestServer, client: httpx.Client, conversation: str
) -> None:
    """server 10: with or without a leading slash, each route means the same file."""
    url = f"/api/conversations/{conversation}"
    found = paths_of(client, conversation)
    assert all(found.values()), found
    for route, paths in found.items():
        assert all(path.startswith("/") == (route in WITH_SLASH) for path in paths), (route, paths)
    for path in sorted({path for paths in found.values() for path in paths}):
        plain = path.lstrip("/")
        whole = f"/{plain}"
        for form in (plain, whole):
            rows = is_ok(client.get(f"{url}/diff", params={"path": form})).json()
            assert [*(row["path"] for row in rows["written"]), *rows["deleted"]] == [whole]
            entries = is_ok(client.get(f"{url}/landing-plan", params={"path": form})).json()["entries"]
            assert whole in [row["path"] for row in entries]
            assert all(whole.startswith(row["path"]) for row in entries)
            side = "old" if plain == "old.txt" else "new"
            comment = {"path": form, "line": 1, "side": side, "text": "why?"}
            server.fake.script({"text": "because"})
            is_ok(client.post(f"{url}/comments", json={"comments": [comment]}))
            if plain == "old.txt":
                gone = client.get(f"/api/files/{conversation}/{form}", params={"version": "old"})
                assert is_ok(gone).text == "old\n"
                continue
            assert is_ok(client.get(f"/api/workspace/file/{form}")).json()["content"] == FILES[plain]
            assert is_ok(client.get(f"/api/files/{conversation}/{form}")).text == FILES[plain]


def test_landing_undo_discard_and_upload_take_both_forms(server: TestServer, client: httpx.Client) -> None:
    """server 10, for the routes that change something."""
    conversation = change(server, client, FILES)
    url = f"/api/conversations/{conversation}"
    landed: list[dict[str, Any]] = []
    for form in ("src/a.txt", "/c.txt", "old.txt"):
        landed.append(is_ok(client.post(f"{url}/land", json={"paths": [form]})).json())
        names = [row["path"] for row in landed[-1]["entries"] if row["op"] != "mkdir"]
        assert names == [f"/{form.lstrip('/')}"]
    assert {row["id"] for row in landed} <= {row["id"] for row in client.get("/api/landings").json()}
    for record, form in zip(landed, ("/src/a.txt", "c.txt", "/old.txt"), strict=True):
        shown = is_ok(client.get(f"/api/landings/{record['id']}/diff", params={"path": form})).json()
        assert [*(row["path"] for row in shown["written"]), *shown["deleted"]] == [f"/{form.lstrip('/')}"]
        undone = is_ok(client.post(f"/api/landings/{record['id']}/undo", json={"paths": [form]})).json()
        assert f"/{form.lstrip('/')}" in [row["path"] for row in undone["entries"]]
    for form in ("src/deep/b b.txt", "/c.txt"):
        gone = is_ok(client.post(f"{url}/discard", json={"paths": [form]})).json()
        assert gone["paths"] == [f"/{form.lstrip('/')}"]
    (server.workspace / "there").mkdir(exist_ok=True)
    for form in ("there", "/there"):
        sent = client.post(
            "/api/workspace/upload", params={"subdir": form}, files={"files": ("Makefile", form.encode())}
        )
        assert is_ok(sent).json() == {"uploaded": ["there/Makefile"]}
    for form in ("/there/.envrc", "there/.envrc"):
        sent = client.post(
            "/api/workspace/upload",
            params={"subdir": "there", "accept": form},
            files={"files": (".envrc", form.encode())},
        )
        assert is_ok(sent).json() == {"uploaded": ["there/.envrc"]}
    elsewhere = client.post("/api/workspace/upload", params={"subdir": "/etc"}, files={"files": ("x", b"x")})
    assert elsewhere.status_code == 403 and not (server.workspace / "etc").exists()


def test_a_path_outside_is_refused_by_every_route(
    server: TestServer, client: httpx.Client, conversation: str
) -> None:
    """server 13: `landing-plan?path=../x` was an empty plan."""
    del server
    url = f"/api/conversations/{conversation}"
    for answer in (
        client.get(f"{url}/diff", params={"path": "../x"}),
        client.get(f"{url}/landing-plan", params={"path": "../x"}),
        client.get("/api/workspace/file/..%2Fx"),
        client.get(f"/api/files/{conversation}/..%2Fx"),
        client.post(f"{url}/land", json={"paths": ["../x"]}),
        client.post(f"{url}/discard", json={"paths": ["../x"]}),
        client.post(f"{url}/comments", json={"comments": [{"path": "../x", "line": 1, "text": "?"}]}),
    ):
        assert answer.status_code == 403, (answer.request.url, answer.text)
