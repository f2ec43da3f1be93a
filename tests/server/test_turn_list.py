"""Turns and messages as resources, waiting and repeating (server 6, 9; security 15; REST ergonomics)."""

import json
import time
from typing import Any

import httpx
import pytest
from support.patience import HANG_S, patience
from support.servers import TestServer, until

from bowerbird.server.common.errors import problem_response


def begin(client: httpx.Client, **options: Any) -> str:
    return str(client.post("/api/chat", json=options).json()["conversation_id"])


def say(
    client: httpx.Client, thread: str, text: str, *, wait: float | None = 60, **more: Any
) -> httpx.Response:
    params = {} if wait is None else {"wait": wait}
    return client.post(
        f"/api/conversations/{thread}/messages",
        json={"content": text},
        params=params,
        timeout=patience(18),
        **more,
    )


def test_a_turn_is_found_by_its_id_and_waited_for(server: TestServer, client: httpx.Client) -> None:
    """server 6: after a 202 the answer is reached by `turn_id`."""
    server.fake.script({"text": "slowly", "ttft_s": 1.0})
    thread = begin(client)
    accepted = say(client, thread, "hi", wait=None)
    assert accepted.status_code == 202
    place = f"/api/conversations/{thread}/turns/{accepted.json()['turn_id']}"
    assert client.get(place).json()["state"] in ("queued", "running")
    shown = client.get(place, params={"wait": 60}, timeout=patience(18)).json()
    assert (shown["state"], shown["stop_reason"], shown["text"], shown["request"]) == (
        "done", "end_turn", "slowly", None,
    )  # fmt: skip
    listed = client.get(f"/api/conversations/{thread}/turns").json()
    assert [row["turn_id"] for row in listed["turns"]] == [shown["turn_id"]]
    missing = client.get(f"/api/conversations/{thread}/turns/t_unknown")
    assert (missing.status_code, missing.json()["code"]) == (404, "unknown_turn")
    other = begin(client)
    assert client.get(f"/api/conversations/{other}/turns/{shown['turn_id']}").status_code == 404
    fork = client.post(f"/api/conversations/{thread}/fork", json={"turn_id": "t_unknown"})
    assert (fork.status_code, fork.json()["code"]) == (404, "unknown_turn")


def test_messages_come_with_their_tool_calls_page_by_page(server: TestServer, client: httpx.Client) -> None:
    """server 6: `GET …/messages`; the conversation's own list has only the final texts."""
    call = {"name": "write_file", "input": {"path": "a.txt", "content": "x"}}
    server.fake.script({"text": "I write.", "tools": [call]}, {"text": "Written."})
    thread = begin(client)
    say(client, thread, "write")
    server.fake.script({"text": "Again."})
    say(client, thread, "and?")
    seen: list[dict[str, Any]] = []
    after: int | None = 0
    while after is not None:
        page = client.get(f"/api/conversations/{thread}/messages", params={"after": after, "limit": 2}).json()
        assert len(page["messages"]) <= 2
        seen += page["messages"]
        after = page["next_after"]
    assert [(m["role"], m["content"]) for m in seen] == [
        ("user", "write"), ("assistant", "I write."), ("assistant", "Written."),
        ("user", "and?"), ("assistant", "Again."),
    ]  # fmt: skip
    [made] = seen[1]["tool_calls"]
    assert (made["tool"], made["status"], made["input"]["path"]) == ("write_file", "ok", "a.txt")
    whole = client.get(f"/api/conversations/{thread}/calls/{made['id']}").json()
    assert whole["result"].startswith(made["result"][:20])


def test_a_repeated_message_waits_for_the_answer_and_then_has_it(
    server: TestServer, client: httpx.Client
) -> None:
    """server 6: another `wait` is the same request, and a stored 202 is followed by the real answer."""
    server.fake.script({"text": "at last", "ttft_s": 1.0})
    thread = begin(client)
    before = server.fake.request_count
    key = {"Idempotency-Key": f"k-{thread}"}
    first = say(client, thread, "hi", wait=0.05, headers=key)
    second = say(client, thread, "hi", wait=60, headers=key)
    third = say(client, thread, "hi", wait=0.05, headers=key)
    assert (first.status_code, second.status_code, third.status_code) == (202, 200, 200)
    assert second.headers["idempotency-replayed"] == "true"
    assert {r.json()["turn_id"] for r in (first, second, third)} == {first.json()["turn_id"]}
    assert (second.json()["text"], third.json()["text"]) == ("at last", "at last")
    assert server.fake.request_count == before + 1
    other = say(client, thread, "something else", headers=key)
    assert (other.status_code, other.json()["code"]) == (409, "key_reused")


def test_an_event_stream_can_end_with_its_turn(server: TestServer, client: httpx.Client) -> None:
    """server, ergonomics: `until=done`; without it a stream never ends."""
    server.fake.script({"text": "hello there", "ttft_s": 0.5})
    thread = begin(client)
    say(client, thread, "hi", wait=None)
    place = f"/api/conversations/{thread}/events"
    lines = {"Accept": "application/x-ndjson"}
    for _ in range(2):  # while it runs, then when nothing runs
        with client.stream(
            "GET", place, params={"after": 0, "until": "done"}, headers=lines, timeout=30
        ) as got:
            types = [json.loads(line)["type"] for line in got.iter_lines()]
        assert types.count("done") == 1 and types[-1] == "done" and "text_delta" in types
    started = time.monotonic()
    with client.stream("GET", place, params={"until": "done"}, headers=lines, timeout=HANG_S) as got:
        assert list(got.iter_lines()) == []
    assert time.monotonic() - started < patience(5)


def test_over_a_budget_a_plain_client_hears_done(server: TestServer, client: httpx.Client) -> None:
    """server 9: `error budget_exceeded`, then `done`; raising the limit goes on with the same turn."""
    server.fake.script({"text": "hello"})
    thread = begin(client)
    limit = {"scope": "session", "key": thread, "limit_usd": 0.000001}
    assert client.put("/api/budgets", json=limit).status_code == 200
    turn = say(client, thread, "hi", wait=None).json()["turn_id"]
    place = f"/api/conversations/{thread}/events"
    lines = {"Accept": "application/x-ndjson"}
    started = time.monotonic()
    with client.stream(
        "GET", place, params={"after": 0, "until": "done"}, headers=lines, timeout=HANG_S
    ) as got:
        events = [json.loads(line) for line in got.iter_lines()]
    assert time.monotonic() - started < patience(5)
    assert any(e["type"] == "error" and e["code"] == "budget_exceeded" for e in events)
    shown = client.get(f"/api/conversations/{thread}/turns/{turn}", params={"wait": 10}).json()
    assert (shown["state"], shown["waiting_for"], shown["stop_reason"]) == ("waiting", "budget", "budget")
    request = shown["request"]["request_id"]
    answered = client.post(f"/api/approvals/{request}", json={"decision": "raise", "amount": 5})
    assert answered.status_code == 200
    shown = client.get(
        f"/api/conversations/{thread}/turns/{turn}", params={"wait": 60}, timeout=patience(18)
    ).json()
    assert (shown["state"], shown["text"]) == ("done", "hello")


def test_a_plan_that_waits_is_in_the_answer(server: TestServer, client: httpx.Client) -> None:
    """server, ergonomics: `?wait` on a plan had no text; what is said next is its feedback (server 1)."""
    server.fake.script({"text": "1. look"}, {"text": "1. look again"})
    thread = begin(client, enable_plan_mode=True)
    shown = say(client, thread, "plan").json()
    assert (shown["state"], shown["waiting_for"], shown["text"]) == ("waiting", "plan", "1. look")
    assert shown["request"]["kind"] == "plan"
    shown = say(client, thread, "no, again").json()
    assert (shown["state"], shown["text"], shown["position"]) == ("waiting", "1. look again", 1)
    assert client.get(f"/api/conversations/{thread}/queue").json() == []


def test_a_question_of_the_agent_that_is_denied_is_declined(server: TestServer, client: httpx.Client) -> None:
    """TO-36, SV-29: the model was given "deny" as the person's word."""
    server.fake.script(
        {"tools": [{"name": "ask_user", "input": {"question": "Which colour?"}}]}, {"text": "as you like"}
    )
    conversation = begin(client)
    say(client, conversation, "paint it", wait=None)

    def mine() -> list[dict[str, Any]]:
        return [q for q in client.get("/api/approvals").json() if q["conversation_id"] == conversation]

    (question,) = until(mine, "the question is asked")
    url = f"/api/approvals/{question['request_id']}"
    assert client.post(url, json={"decision": "deny"}).status_code == 200
    until(
        lambda: client.get(f"/api/conversations/{conversation}").json()["status"] == "done", "the turn ends"
    )
    assert "does not want to answer" in str(server.fake.requests[-1]["messages"][-1]["content"])


def test_a_token_is_not_kept_with_its_key(server: TestServer, client: httpx.Client) -> None:
    """security 15: it is shown once, the table of answers included; tickets too."""
    key = {"Idempotency-Key": "make-ann"}
    made = client.post("/api/auth/tokens", json={"name": "ann-once", "role": "user"}, headers=key)
    assert made.status_code == 201, made.text
    again = client.post("/api/auth/tokens", json={"name": "ann-once", "role": "user"}, headers=key)
    assert again.status_code == 409 and "shown once" in again.json()["detail"]
    secret = made.json()["token"]
    ticket = client.post("/api/auth/ticket", headers={"Idempotency-Key": "tick"})
    kept = [secret, *([ticket.json()["ticket"]] if ticket.status_code < 300 else [])]
    files = [
        path for path in server.data_dir.rglob("*") if path.is_file() and path.name.startswith("agent.db")
    ]
    assert files
    for path in files:
        content = path.read_bytes()
        assert not [word for word in kept if word.encode() in content]


@pytest.mark.parametrize("body", [{"content": ""}, {"content": 5}, {"kind": "x", "content": "y"}])
def test_a_422_has_a_code_as_every_error_has(client: httpx.Client, body: dict[str, Any]) -> None:
    """server, ergonomics."""
    thread = begin(client)
    wrong = client.post(f"/api/conversations/{thread}/messages", json=body)
    assert (wrong.status_code, wrong.json()["code"]) == (422, "invalid")
    assert json.loads(bytes(problem_response(422, "invalid", []).body))["code"] == "invalid"


@pytest.mark.parametrize("word", ["approve", "auto_approve", "reject", "raise"])
def test_a_word_of_another_kind_answers_no_question_with_options(
    server: TestServer, client: httpx.Client, word: str
) -> None:
    """SV-29: a client that approves whatever waits told the agent that the colour is "approve"."""
    asking = {"name": "ask_user", "input": {"question": "Which?", "options": ["blue", "raise"]}}
    server.fake.script({"tools": [asking]}, {"text": "ok"})
    thread = begin(client)
    say(client, thread, "go")
    [asked] = [q for q in client.get("/api/approvals").json() if q["conversation_id"] == thread]
    place = f"/api/approvals/{asked['request_id']}"
    if word != "raise":
        refused = client.post(place, json={"decision": word})
        assert refused.status_code == 422 and "'blue', 'raise'" in str(refused.json()["detail"]), refused.text
        assert asked in client.get("/api/approvals").json()
    words = {"decision": word} if word == "raise" else {"decision": word, "feedback": f"rather {word}"}
    assert client.post(place, json=words).status_code == 200
    path = f"/api/conversations/{thread}"
    until(lambda: client.get(path).json()["status"] == "done", "the turn goes on", HANG_S)
    assert list(words.values())[-1] in str(server.fake.requests[-1]["messages"][-1])
