"""Conversations over real HTTP: SV-6 … SV-10, SV-19, SV-21 … SV-24, SV-29, SV-32, SV-33, SV-62."""

import re
from typing import Any

import httpx
import pytest
from support.servers import TestServer, begin, say, until

ASK = {"text": "", "tools": [{"name": "web_fetch", "input": {"url": "https://example.org/"}}]}


def messages_url(conversation: str) -> str:
    return f"/api/conversations/{conversation}/messages"


def test_health_names_model_version_sandbox_and_store(client: httpx.Client) -> None:
    """SV-6."""
    body = client.get("/health").json()
    assert body["status"] == "ok"
    assert body["model"] == "claude-sonnet-5"
    assert body["sandbox"] in ("overlay", "copy", "none")
    assert body["store"] == "sqlite"
    assert re.fullmatch(r"\d+\.\d+\.\d+.*", body["version"])


@pytest.mark.parametrize("body", [None, b"", b"{}", b"null"], ids=["absent", "empty", "object", "null"])
def test_an_empty_or_absent_body_begins_a_conversation(client: httpx.Client, body: bytes | None) -> None:
    """SV-7."""
    headers = {"content-type": "application/json"} if body is not None else {}
    answer = client.post("/api/chat", content=body, headers=headers)
    assert answer.status_code == 200
    assert re.fullmatch(r"[0-9a-f]{12}", answer.json()["conversation_id"])


@pytest.mark.parametrize(
    ("given", "kept"), [("max", "max"), ("xhigh", "max"), ("high", "high"), (None, "high")]
)
def test_efforts_max_and_xhigh_are_max(client: httpx.Client, given: str | None, kept: str) -> None:
    """SV-7."""
    conversation = begin(client, thinking_effort=given)
    assert client.get(f"/api/conversations/{conversation}").json()["thinking_effort"] == kept


@pytest.mark.parametrize(
    ("wanted", "named"),
    [
        ({"thinking_effort": "low"}, "high"),
        ({"preset": "nonsense"}, "coding, work"),
        ({"workspace": "nowhere"}, "workspace"),
        ({"model": "nonsense:model"}, "anthropic"),
        ({"enable_plan_mode": "true"}, "bool"),
        ({"title": 7}, "string"),
    ],
)
def test_what_cannot_be_is_a_422_that_says_what_can(
    client: httpx.Client, wanted: dict[str, Any], named: str
) -> None:
    """SV-1, SV-2, SV-7."""
    answer = client.post("/api/chat", json=wanted)
    assert answer.status_code == 422
    (problem,) = answer.json()["detail"]
    assert set(problem) == {"loc", "msg", "type"}
    assert problem["loc"][:2] == ["body", next(iter(wanted))]
    assert named in problem["msg"]


def test_unknown_members_are_ignored_at_the_beginning_and_refused_in_a_change(client: httpx.Client) -> None:
    """SV-2: the one is not strict, the other is."""
    conversation = begin(client, nonsense=1)
    assert client.patch(f"/api/conversations/{conversation}", json={"nonsense": 1}).status_code == 422


@pytest.mark.parametrize(("member", "meant"), [("workdir", "workspace"), ("modle", "model")])
def test_a_member_that_is_nearly_another_is_refused(client: httpx.Client, member: str, meant: str) -> None:
    """SV-2, SV-7: an agent that works elsewhere than was asked for is worse than an error."""
    answer = client.post("/api/chat", json={member: "x"})
    assert answer.status_code == 422 and answer.json()["code"] == "invalid"
    (problem,) = answer.json()["detail"]
    assert f"`{member}`" in problem["msg"] and f"`{meant}`" in problem["msg"]


def test_a_workspace_that_is_gone_is_a_conflict_and_no_mistake_of_the_request(
    server: TestServer, client: httpx.Client
) -> None:
    """SV-1: the same request is right once the directory is back."""
    conversation = begin(client)
    say(client, conversation, "hello")
    url = f"/api/conversations/{conversation}/diff"
    assert client.get(url).status_code == 200
    aside = server.workspace.with_name("aside")
    server.workspace.rename(aside)
    try:
        answers = [client.get(url), client.post(f"/api/conversations/{conversation}/land", json={})]
    finally:
        aside.rename(server.workspace)
    assert [(one.status_code, one.json()["code"]) for one in answers] == [(409, "invalid_workspace")] * 2
    assert "does not exist" in answers[0].json()["detail"]
    assert client.get(url).status_code == 200


def test_a_conversation_shows_what_was_said_and_what_it_cost(
    server: TestServer, client: httpx.Client
) -> None:
    """SV-8, SV-9, SV-19."""
    server.fake.script({"text": "It is 4.", "usage": {"input": 11, "output": 5}})
    conversation = begin(client, title="sums", system_prompt="Count.", preset="coding")
    answered = say(client, conversation, "What is 2 + 2?")
    assert answered["state"] == "done" and answered["stop_reason"] == "end_turn"
    assert answered["text"] == "It is 4." and answered["duplicate"] is False
    shown = client.get(f"/api/conversations/{conversation}").json()
    assert [(m["role"], m["content"]) for m in shown["messages"]] == [
        ("user", "What is 2 + 2?"),
        ("assistant", "It is 4."),
    ]
    assert all(m["turn_id"] == answered["turn_id"] and m["created_at"] and m["id"] for m in shown["messages"])
    cursors = [m["cursor"] for m in shown["messages"]]
    assert cursors == sorted(cursors) and shown["cursor"] >= cursors[-1]
    assert (shown["total_input_tokens"], shown["total_output_tokens"]) == (11, 5)
    assert shown["title"] == "sums" and shown["system_prompt"] == "Count." and shown["preset"] == "coding"
    assert shown["queued"] == [] and shown["parent"] is None and shown["branch"]["id"].startswith("b_")
    (row,) = [r for r in client.get("/api/conversations").json() if r["id"] == conversation]
    assert row["message_count"] == 2 and row["title"] == "sums" and row["pending_approval"] is False
    later = client.get(f"/api/conversations/{conversation}", params={"after": cursors[0]}).json()
    assert [m["role"] for m in later["messages"]] == ["assistant"]


def test_the_list_is_newest_first_in_pages_and_can_be_searched(client: httpx.Client) -> None:
    """SV-8."""
    made = [begin(client, title=f"paged zebra {n}") for n in range(5)]
    listed = [row["id"] for row in client.get("/api/conversations", params={"q": "ZEBRA"}).json()]
    assert listed == made[::-1]
    first = client.get("/api/conversations", params={"q": "zebra", "limit": 2}).json()
    rest = client.get("/api/conversations", params={"q": "zebra", "before": first[-1]["id"]}).json()
    assert [row["id"] for row in first + rest] == listed
    assert client.get("/api/conversations", params={"limit": 1001}).status_code == 422


@pytest.mark.parametrize("wrong", ["0123456789ab", "..", "%2e%2e", "a" * 300, "x y", "%00", "é"])
def test_a_malformed_or_unknown_id_is_404_everywhere(client: httpx.Client, wrong: str) -> None:
    """SV-5."""
    for method, path in [
        ("GET", ""), ("DELETE", ""), ("PATCH", ""), ("GET", "/diff"), ("POST", "/land"), ("POST", "/cancel"),
        ("POST", "/fork"), ("GET", "/calls/x"), ("GET", "/traces"), ("GET", "/queue"), ("POST", "/restore"),
    ]:  # fmt: skip
        answer = client.request(
            method, f"/api/conversations/{wrong}{path}", json={} if method != "GET" else None
        )
        assert answer.status_code in (404, 405) and answer.status_code != 500, (method, path, answer.text)
        if wrong not in ("..", "%2e%2e"):
            assert answer.status_code == 404 and answer.json()["code"] == "not_found"


def test_deleted_is_gone_and_restored_is_back(client: httpx.Client) -> None:
    """SV-10, SV-62."""
    conversation = begin(client, title="short-lived")
    say(client, conversation, "hi")
    assert client.delete(f"/api/conversations/{conversation}").json() == {"status": "deleted"}
    assert client.get(f"/api/conversations/{conversation}").status_code == 404
    assert client.delete(f"/api/conversations/{conversation}").status_code == 404
    assert client.post(f"/api/conversations/{conversation}/restore").json()["id"] == conversation
    assert len(client.get(f"/api/conversations/{conversation}").json()["messages"]) == 2


def test_deleting_cancels_the_running_turn_first(server: TestServer, client: httpx.Client) -> None:
    """SV-10."""
    server.fake.reset()
    server.fake.script({"hang": True})
    conversation = begin(client)
    client.post(messages_url(conversation), json={"content": "wait for ever"})
    server.fake.wait_requests(1)
    assert client.delete(f"/api/conversations/{conversation}").status_code == 200
    server.fake.wait_closed(1)


def test_changes_are_kept_and_a_fork_goes_on_apart(server: TestServer, client: httpx.Client) -> None:
    """SV-22, SV-23."""
    conversation = begin(client)
    changes = {
        "title": "renamed", "enable_plan_mode": True, "enable_teams": True, "enable_approval": True,
        "enable_tracing": True, "enable_thinking": True, "thinking_effort": "xhigh",
        "model": "anthropic:claude-opus-4-1",
    }  # fmt: skip
    shown = client.patch(f"/api/conversations/{conversation}", json=changes).json()
    assert {key: shown[key] for key in changes} == {**changes, "thinking_effort": "max"}
    client.patch(f"/api/conversations/{conversation}", json={"enable_plan_mode": False})
    answered = say(client, conversation, "first")
    say(client, conversation, "second")
    child = client.post(
        f"/api/conversations/{conversation}/fork", json={"turn_id": answered["turn_id"]}
    ).json()
    shown = client.get(f"/api/conversations/{child['conversation_id']}").json()
    assert [m["content"] for m in shown["messages"]] == ["first", "hello"]
    assert shown["parent"] == conversation
    assert client.post(f"/api/conversations/{conversation}/fork", json={"turn_id": "t_no"}).status_code == 404


def test_cancel_stops_and_queued_messages_can_be_taken_back(server: TestServer, client: httpx.Client) -> None:
    """SV-21, SV-62."""
    conversation = begin(client)
    nothing = client.post(f"/api/conversations/{conversation}/cancel")
    assert (nothing.status_code, nothing.json()["code"]) == (409, "not_running")
    server.fake.reset()
    server.fake.script({"hang": True}, {"text": "next"})
    first = client.post(messages_url(conversation), json={"content": "one"})
    assert first.status_code == 202 and first.json()["position"] == 0
    server.fake.wait_requests(1)
    second = client.post(messages_url(conversation), json={"content": "two"}).json()
    third = client.post(messages_url(conversation), json={"content": "three"}).json()
    assert (second["position"], third["position"]) == (1, 2)
    queue = client.get(f"/api/conversations/{conversation}/queue").json()
    assert [row["content"] for row in queue] == ["two", "three"]
    gone = client.delete(f"/api/conversations/{conversation}/queue/{second['inbox_id']}")
    assert gone.status_code == 200
    assert client.post(f"/api/conversations/{conversation}/cancel").status_code == 202
    until(lambda: server.fake.request_count == 2, "the message after the cancelled one runs")
    until(
        lambda: client.get(f"/api/conversations/{conversation}").json()["status"] == "done", "it is answered"
    )
    shown = client.get(f"/api/conversations/{conversation}").json()
    assert [m["content"] for m in shown["messages"]] == ["one", "three", "next"]


def test_a_failed_turn_is_resumed_under_its_own_id(server: TestServer, client: httpx.Client) -> None:
    """SV-21."""
    server.fake.script({"status": 400, "body": {"type": "error", "error": {"type": "x", "message": "no"}}})
    conversation = begin(client)
    failed = say(client, conversation, "try")
    assert failed["state"] == "failed" and failed["stop_reason"] == "error"
    assert failed["error"]["message"]
    server.fake.script({"text": "now it works"})
    resumed = client.post(f"/api/conversations/{conversation}/resume")
    assert resumed.status_code == 202 and resumed.json()["turn_id"] == failed["turn_id"]
    until(
        lambda: client.get(f"/api/conversations/{conversation}").json()["status"] == "done", "the turn ends"
    )
    again = client.post(f"/api/conversations/{conversation}/resume")
    assert (again.status_code, again.json()["code"]) == (409, "not_running")


def test_a_call_is_shown_whole_and_page_by_page(server: TestServer, client: httpx.Client) -> None:
    """SV-24."""
    text = "".join(f"line {n}\n" for n in range(3))
    server.fake.script(
        {"tools": [{"name": "write_file", "input": {"path": "a.txt", "content": text}, "id": "call_w"}]},
        {"tools": [{"name": "read_file", "input": {"path": "a.txt"}, "id": "call_r"}]},
        {"text": "read"},
    )
    conversation = begin(client)
    say(client, conversation, "write and read")
    shown = client.get(f"/api/conversations/{conversation}/calls/call_w").json()
    assert shown["tool"] == "write_file" and shown["status"] == "ok"
    assert shown["input"] == {"path": "a.txt", "content": text}
    read = client.get(f"/api/conversations/{conversation}/calls/call_r").json()
    assert "line 2" in read["result"] and read["next_offset"] is None and read["total"] == len(read["result"])
    part = client.get(f"/api/conversations/{conversation}/calls/call_r", params={"offset": 5}).json()
    assert part["result"] == read["result"][5:]
    assert client.get(f"/api/conversations/{conversation}/calls/call_no").status_code == 404


def test_a_question_is_answered_once_from_any_door(server: TestServer, client: httpx.Client) -> None:
    """SV-29."""
    server.fake.script(
        {"tools": [{"name": "write_file", "input": {"path": "q", "content": "1"}}]}, {"text": "ok"}
    )
    conversation = begin(client, enable_approval=True)
    client.post(messages_url(conversation), json={"content": "write q"})

    def mine() -> list[dict[str, Any]]:
        return [q for q in client.get("/api/approvals").json() if q["conversation_id"] == conversation]

    (question,) = until(mine, "the question is asked")
    assert question["kind"] == "approval" and question["tools"][0]["name"] == "write_file"
    assert client.get("/api/conversations").json()[0]["id"]
    url = f"/api/approvals/{question['request_id']}"
    assert client.post(url, json={"decision": "perhaps"}).status_code == 422
    assert client.post("/api/approvals/r_nothing", json={"decision": "approve"}).status_code == 404
    assert client.post(url, json={"decision": "approve"}).status_code == 200
    until(
        lambda: client.get(f"/api/conversations/{conversation}").json()["status"] == "done", "the turn ends"
    )
    second = client.post(url, json={"decision": "approve"})
    assert (second.status_code, second.json()["code"]) == (409, "already_answered")


def test_usage_is_summed_and_a_budget_set_over_rest_holds(server: TestServer, client: httpx.Client) -> None:
    """SV-32, SE-42: the limit holds from the next turn on; taking it away frees the conversation."""
    server.fake.script({"text": "hello", "usage": {"input": 1000, "output": 1000}})
    conversation = begin(client)
    say(client, conversation, "spend")
    rows = client.get("/api/usage", params={"by": "conversation"}).json()["rows"]
    (mine,) = [row for row in rows if row["key"] == conversation]
    assert (mine["calls"], mine["input_tokens"], mine["output_tokens"]) == (1, 1000, 1000)
    assert mine["cost"] and mine["cost"] == mine["known_cost"] > 0
    assert client.get("/api/usage", params={"from": "2001-01-01", "to": "2001-01-02"}).json()["rows"] == []
    limit = {"scope": "session", "key": conversation, "limit_usd": 0.000001}
    told = client.put("/api/budgets", json=limit).json()
    assert told["limit_usd"] == 0.000001
    (shown,) = [b for b in client.get("/api/budgets").json() if b["key"] == conversation]
    assert told == shown and shown["source"] == "set" and told["spent_usd"] > 0, "it said: nothing is spent"
    asked = server.fake.request_count
    waiting = say(client, conversation, "spend more")
    assert waiting["state"] == "waiting" and waiting["waiting_for"] == "budget"
    assert server.fake.request_count == asked
    (question,) = [q for q in client.get("/api/approvals").json() if q["conversation_id"] == conversation]
    assert question["kind"] == "budget"
    raised = client.post(f"/api/approvals/{question['request_id']}", json={"decision": "raise", "amount": 5})
    assert raised.status_code == 200
    until(
        lambda: client.get(f"/api/conversations/{conversation}").json()["status"] == "done",
        "the turn goes on",
    )


def test_traces_are_kept_in_order_and_without_secrets(server: TestServer, client: httpx.Client) -> None:
    """SV-33, SV-43."""
    server.fake.script({"text": "seen"})
    conversation = begin(client, enable_tracing=True)
    say(client, conversation, "my key is sk-test-0123456789abcdef")
    until(
        lambda: len(client.get(f"/api/conversations/{conversation}/traces").json()) == 2,
        "both records are kept",
    )
    request, response = client.get(f"/api/conversations/{conversation}/traces").json()
    assert (request["type"], response["type"]) == ("llm_request", "llm_response")
    assert request["seq"] == response["seq"] == 1 and response["content"] == "seen"
    assert "sk-test-0123456789abcdef" not in str(request)
    rest = client.get(f"/api/conversations/{conversation}/traces", params={"after": request["n"]}).json()
    assert rest == [response]
    quiet = begin(client)
    say(client, quiet, "not traced")
    assert client.get(f"/api/conversations/{quiet}/traces").json() == []


def test_compact_makes_one_summary_before_the_next_call(server: TestServer, client: httpx.Client) -> None:
    """SV-21."""
    conversation = begin(client)
    for n in range(4):
        say(client, conversation, f"message {n} " + "word " * 200)
    assert (
        client.post(f"/api/conversations/{conversation}/compact", json={"focus": "names"}).status_code == 202
    )
    asked = server.fake.request_count
    say(client, conversation, "after")
    assert server.fake.request_count == asked + 2, "one summary, one answer"
    say(client, conversation, "later")
    assert server.fake.request_count == asked + 3, "the summary is not made again"
    contents = [m["content"] for m in client.get(f"/api/conversations/{conversation}").json()["messages"]]
    assert len(contents) == 12, "nothing is lost"


@pytest.mark.parametrize("case", ["nothing-to-summarise", "summary-fails"])
def test_a_compaction_that_cannot_be_made_is_not_asked_for_again(
    server: TestServer, client: httpx.Client, case: str
) -> None:
    """SV-21: the wish stood for ever, and came true turns later."""
    conversation = begin(client)
    if case == "summary-fails":
        for n in range(4):
            say(client, conversation, f"message {n} " + "word " * 200)
        server.fake.script({"status": 400}, {"text": "Answered."})
    client.post(f"/api/conversations/{conversation}/compact")
    asked = server.fake.request_count
    say(client, conversation, "after")
    assert server.fake.request_count == asked + (2 if case == "summary-fails" else 1)
    for n in range(4):
        say(client, conversation, f"long {n} " + "word " * 200)
    assert server.fake.request_count == asked + (6 if case == "summary-fails" else 5), "no summary since"


def test_an_image_reaches_the_model_as_data_url_and_by_multipart(
    server: TestServer, client: httpx.Client
) -> None:
    """SV-62."""
    pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
    conversation = begin(client)
    body = {"content": "look", "attachments": [{"url": f"data:image/png;base64,{pixel}"}]}
    assert client.post(messages_url(conversation), json=body, params={"wait": 30}).status_code == 200
    blocks = server.fake.requests[-1]["messages"][-1]["content"]
    assert any(block.get("type") == "image" for block in blocks)
    import base64

    form = client.post(
        messages_url(conversation),
        data={"content": "again"},
        files={"files": ("p.png", base64.b64decode(pixel), "image/png")},
        params={"wait": 30},
    )
    assert form.status_code == 200, form.text
    file = client.post(
        messages_url(conversation), params={"wait": 30},
        data={"content": "read it"}, files={"files": ("../p.txt", b"text", "image/png")},
    )  # fmt: skip
    assert file.status_code == 200
    assert "[attached file: attachments/p.txt]" in str(server.fake.requests[-1]["messages"][-1]["content"])
    listed = client.get("/api/workspace/files", params={"conversation": conversation}).json()
    assert "attachments/p.txt" in [row["path"] for row in listed]
    wrong = {"content": "no", "attachments": [{"path": "attachments/p.txt"}]}
    refused = client.post(messages_url(conversation), json=wrong)
    assert (refused.status_code, refused.json()["code"]) == (415, "unsupported_media_type")
