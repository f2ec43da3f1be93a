"""Whose it is, over REST with tokens: SV-5, SV-6, SV-34, SV-56; acceptance 8 (sockets and the walk: access/)."""

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from support.patience import HANG_S
from support.servers import TestServer, begin, say, serve, until
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from bowerbird.store.rows.tokens import make_token


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestServer]:
    flags = {"server.auth": "token", "server.metrics_token": "metrics-0123456789"}
    with serve(tmp_path_factory.mktemp("owners"), flags=flags) as running:
        yield running


def of(server: TestServer, name: str, role: str) -> httpx.Client:
    """A client that comes as this user."""
    store = server.serving.context.store
    _, secret = server.run(store.write(lambda c: make_token(c, f"{name}-{role}", role, user=name)))  # type: ignore[arg-type]
    return httpx.Client(base_url=server.url, timeout=HANG_S, headers={"Authorization": f"Bearer {secret}"})


@pytest.fixture(scope="module")
def people(server: TestServer) -> Iterator[dict[str, httpx.Client]]:
    clients = {
        "ada": of(server, "ada", "user"), "bob": of(server, "bob", "user"),
        "reader": of(server, "ada", "viewer"), "root": of(server, "root", "admin"),
    }  # fmt: skip
    yield clients
    for client in clients.values():
        client.close()


def test_nothing_of_another_user_exists(server: TestServer, people: dict[str, httpx.Client]) -> None:
    """Acceptance 8: 404 for A's conversation, file, approval and landing."""
    ada, bob = people["ada"], people["bob"]
    step: dict[str, Any] = {
        "tools": [{"name": "write_file", "input": {"path": "ada.txt", "content": "a"}, "id": "c1"}]
    }
    server.fake.script(step, {"text": "ok"})
    mine = begin(ada)
    say(ada, mine, "write")
    landing = ada.post(f"/api/conversations/{mine}/land").json()["id"]
    server.fake.reset()
    server.fake.script(
        {"tools": [{"name": "write_file", "input": {"path": "x", "content": "a"}}]}, {"text": "k"}
    )
    asking = begin(ada, enable_approval=True)
    ada.post(f"/api/conversations/{asking}/messages", json={"content": "ask"})
    (question,) = until(lambda: ada.get("/api/approvals").json(), "the question is asked")
    assert bob.get("/api/conversations").json() == [] and bob.get("/api/approvals").json() == []
    assert bob.get("/api/landings").json() == [] and bob.get("/api/usage").json()["rows"] == []
    searched = {name: people[name].get("/api/conversations?search=write") for name in ("ada", "bob", "root")}
    assert {name: len(found.json()) for name, found in searched.items()} == {"ada": 1, "bob": 0, "root": 1}
    for method, path in [
        ("GET", f"/api/conversations/{mine}"), ("DELETE", f"/api/conversations/{mine}"),
        ("POST", f"/api/conversations/{mine}/restore"), ("GET", f"/api/conversations/{mine}/diff"),
        ("POST", f"/api/conversations/{mine}/land"), ("POST", f"/api/conversations/{mine}/discard"),
        ("POST", f"/api/conversations/{mine}/fork"), ("POST", f"/api/conversations/{mine}/compact"),
        ("GET", f"/api/conversations/{mine}/calls/c1"), ("GET", f"/api/conversations/{mine}/traces"),
        ("GET", f"/api/files/{mine}/ada.txt"), ("POST", f"/api/landings/{landing}/undo"),
        ("GET", f"/api/workspace/files?conversation={mine}"), ("GET", f"/api/tools?conversation={mine}"),
        ("GET", f"/api/workspace/file/ada.txt?conversation={mine}"),
    ]:  # fmt: skip
        assert bob.request(method, path).status_code == 404, (method, path)
    body = {"decision": "approve"}
    assert bob.post(f"/api/approvals/{question['request_id']}", json=body).status_code == 404
    assert bob.post(f"/api/conversations/{mine}/messages", json={"content": "hi"}).status_code == 404
    limit = {"scope": "session", "key": mine, "limit_usd": 1}
    assert bob.put("/api/budgets", json=limit).status_code == 404
    assert ada.post(f"/api/approvals/{question['request_id']}", json=body).status_code == 200
    assert bob.post(f"/api/approvals/{question['request_id']}", json=body).status_code == 404
    assert {row["id"] for row in people["root"].get("/api/conversations").json()} >= {mine, asking}


def test_what_one_user_always_allows_is_nobody_elses(
    server: TestServer, people: dict[str, httpx.Client]
) -> None:
    """UI-71, SV-56: neither seen, followed nor taken back by another one; an admin sees all."""
    ada, bob = people["ada"], people["bob"]
    step = {"tools": [{"name": "write_file", "input": {"path": "mine/x", "content": "a"}}]}
    server.fake.reset()
    server.fake.answer(lambda body, _n: step if len(body["messages"]) == 1 else {"text": "done"})

    def asks(client: httpx.Client) -> dict[str, Any]:
        conversation = begin(client, enable_approval=True)
        client.post(f"/api/conversations/{conversation}/messages", json={"content": "go"})

        def waiting() -> list[dict[str, Any]]:
            rows = client.get("/api/approvals").json()
            return [row for row in rows if row["conversation_id"] == conversation]

        (question,) = until(waiting, "the question is asked")
        return question

    question = asks(ada)
    assert question["tools"][0]["rules"] == ["write_file(mine/*)"]
    answered = ada.post(f"/api/approvals/{question['request_id']}", json={"decision": "always_everywhere"})
    assert answered.status_code == 200
    (rule,) = until(lambda: ada.get("/api/permissions").json(), "the rule is kept")
    assert (rule["scope"], rule["user"], rule["by"]) == ("everywhere", "ada", "ada")
    assert bob.get("/api/permissions").json() == [] and people["root"].get("/api/permissions").json() == [
        rule
    ]
    theirs = asks(bob)
    bob.post(f"/api/approvals/{theirs['request_id']}", json={"decision": "deny"})
    place = f"/api/permissions/{rule['id']}"
    assert bob.delete(place).status_code == 404 and people["reader"].delete(place).status_code == 403
    assert ada.delete(place).status_code == 200 and ada.delete(place).status_code == 404
    assert ada.delete("/api/permissions/0").status_code == 422


def test_the_questions_of_one_user_are_nobody_elses(
    server: TestServer, people: dict[str, httpx.Client]
) -> None:
    """SV-29, SV-56: neither seen nor answered, over REST or a socket; those of subagents neither."""
    ada, bob = people["ada"], people["bob"]
    write = {"tools": [{"name": "write_file", "input": {"path": "x", "content": "a"}}]}
    server.fake.answer(lambda body, _n: write if len(body["messages"]) == 1 else {"text": "done"})
    asking = begin(ada, enable_approval=True)
    ada.post(f"/api/conversations/{asking}/messages", json={"content": "ask"})

    def waiting() -> list[dict[str, Any]]:
        return [row for row in ada.get("/api/approvals").json() if row["conversation_id"] == asking]

    (question,) = until(waiting, "the question is asked")
    assert (question["conversation_id"], question["subagent_id"]) == (asking, None)
    assert bob.get("/api/approvals").json() == []
    for decision in ("approve", "deny", "auto_approve"):
        refused = bob.post(f"/api/approvals/{question['request_id']}", json={"decision": decision})
        assert refused.status_code == 404
    for path in ("subagents", "subagents/subagent_0", "attempts", "attempts/c_1", "check", "queue"):
        assert bob.get(f"/api/conversations/{asking}/{path}").status_code == 404, path
    for path in ("subagents/subagent_0/merge", "subagents/subagent_0/discard", "cancel", "resume", "restore"):
        assert bob.post(f"/api/conversations/{asking}/{path}").status_code == 404, path
    attempt = bob.post(f"/api/conversations/{asking}/attempts", json={"task": "x", "checks": ["true"]})
    assert attempt.status_code == 404
    mine = begin(bob)
    address = f"{server.url.replace('http', 'ws')}/api/chat"
    credential = {"Authorization": bob.headers["authorization"]}
    with connect(f"{address}/{asking}/ws", additional_headers=credential, proxy=None) as socket:
        assert json.loads(socket.recv(30))["code"] == "not_found"
        with pytest.raises(ConnectionClosed) as closed:
            socket.recv(30)
        assert closed.value.rcvd is not None and closed.value.rcvd.code == 4004
    with connect(f"{address}/{mine}/ws", additional_headers=credential, proxy=None) as socket:
        for more in ({}, {"request_id": question["request_id"]}):
            socket.send(json.dumps({"type": "tool_approval_response", "decision": "approve", **more}))
            assert json.loads(socket.recv(30))["code"] == "no_pending_request"
    assert [row["request_id"] for row in waiting()] == [question["request_id"]]
    assert people["reader"].get("/api/approvals").json() != []
    body = {"decision": "deny"}
    answer = people["reader"].post(f"/api/approvals/{question['request_id']}", json=body)
    assert answer.status_code == 403
    assert ada.post(f"/api/approvals/{question['request_id']}", json=body).status_code == 200
    until(lambda: ada.get(f"/api/conversations/{asking}").json()["status"] == "done", "it ends")


def test_a_viewer_reads_and_changes_nothing(server: TestServer, people: dict[str, httpx.Client]) -> None:
    """SV-56."""
    mine = begin(people["ada"])
    reader = people["reader"]
    assert reader.get(f"/api/conversations/{mine}").status_code == 200
    for method, path, body in [
        ("POST", "/api/chat", {}), ("DELETE", f"/api/conversations/{mine}", None),
        ("PATCH", f"/api/conversations/{mine}", {"title": "x"}),
        ("POST", f"/api/conversations/{mine}/messages", {"content": "x"}),
        ("POST", f"/api/conversations/{mine}/land", {}), ("PUT", "/api/budgets", {"scope": "user", "limit_usd": 1}),
    ]:  # fmt: skip
        assert reader.request(method, path, json=body).status_code == 403, (method, path)


def test_skills_and_other_peoples_limits_need_an_admin(people: dict[str, httpx.Client]) -> None:
    """SV-12, SV-32, SV-34, SV-56."""
    skill = {"name": "mine", "description": "d", "body": "b"}
    assert people["ada"].post("/api/skills", json=skill).status_code == 403
    assert people["ada"].get("/metrics").status_code == 403
    limit = {"scope": "deployment", "limit_usd": 1000}
    assert people["ada"].put("/api/budgets", json=limit).status_code == 403
    assert people["root"].post("/api/skills", json=skill).status_code == 200
    assert people["root"].put("/api/budgets", json=limit).status_code == 200
    assert people["root"].get("/metrics").status_code == 200
    assert people["root"].delete("/api/skills/mine").status_code == 200


def test_without_a_credential_health_says_only_that_it_lives(server: TestServer) -> None:
    """SV-6, SV-34."""
    with server.http as nobody:
        assert nobody.get("/health").json() == {"status": "ok"}
        assert nobody.get("/health/ready").status_code == 200
        assert nobody.get("/api/conversations").status_code == 401
        assert nobody.get("/metrics").status_code in (401, 403)
        token = {"Authorization": "Bearer metrics-0123456789"}
        assert b"bowerbird_http_requests" in nobody.get("/metrics", headers=token).content
        assert nobody.get("/api/conversations", headers=token).status_code == 401


def test_a_key_of_one_user_is_another_key_for_the_next(people: dict[str, httpx.Client]) -> None:
    """SV-3: nobody is answered with somebody else's conversation."""
    key = {"Idempotency-Key": "the-same"}
    first = people["ada"].post("/api/chat", headers=key).json()
    second = people["bob"].post("/api/chat", headers=key).json()
    assert first != second and people["ada"].post("/api/chat", headers=key).json() == first
