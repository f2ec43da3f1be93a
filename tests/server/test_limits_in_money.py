"""Whose the limits in money are: D-29; team finding 1."""

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from sqlalchemy import Connection, Engine, event
from support.patience import HANG_S
from support.servers import TestServer, begin, say, serve, until
from websockets.sync.client import connect

from bowerbird.core.ids import new_thread_id
from bowerbird.store.rows.sessions import SessionRow, insert_session
from bowerbird.store.rows.tokens import make_token
from bowerbird.store.rows.usage_report import set_standing_limit

SPENT = {"text": "hello", "usage": {"input": 1000, "output": 1000}}


class Team:
    """An admin and a user of a server whose model costs money."""

    def __init__(self, server: TestServer) -> None:
        self.server = server
        server.fake.reset()
        server.fake.script(SPENT)
        self.secrets: dict[str, str] = {}
        self.root, self.ben = self.of("root", "admin"), self.of("ben", "user")

    def of(self, name: str, role: str) -> httpx.Client:
        store = self.server.serving.context.store
        _, secret = self.server.run(store.write(lambda c: make_token(c, name, role, user=name)))  # type: ignore[arg-type]
        self.secrets[name] = secret
        return httpx.Client(
            base_url=self.server.url, timeout=HANG_S, headers={"Authorization": f"Bearer {secret}"}
        )

    def limit(self, who: httpx.Client, scope: str, key: str | None, usd: float | None) -> httpx.Response:
        return who.put("/api/budgets", json={"scope": scope, "key": key, "limit_usd": usd})

    def stopped(self) -> tuple[str, dict[str, object]]:
        """A conversation of ben's whose turn waits for money, and its question."""
        conversation = begin(self.ben)
        assert say(self.ben, conversation, "spend")["waiting_for"] == "budget"
        (asked,) = [q for q in self.ben.get("/api/approvals").json() if q["conversation_id"] == conversation]
        return conversation, asked

    def raised(self, who: httpx.Client, question: dict[str, object], usd: float) -> httpx.Response:
        body = {"decision": "raise", "amount": usd}
        return who.post(f"/api/approvals/{question['request_id']}", json=body)

    def shown(self, scope: str, key: str) -> float | None:
        rows = self.root.get("/api/budgets").json()
        return next(row["limit_usd"] for row in rows if (row["scope"], row["key"]) == (scope, key))

    def ends(self, conversation: str) -> None:
        path = f"/api/conversations/{conversation}"
        until(lambda: self.ben.get(path).json()["status"] == "done", "the turn goes on", HANG_S)


@pytest.fixture
def team(tmp_path: Path) -> Iterator[Team]:
    with serve(tmp_path, flags={"server.auth": "token"}) as server:
        made = Team(server)
        yield made
        made.root.close()
        made.ben.close()


@pytest.mark.parametrize(("scope", "key"), [("user", "ben"), ("deployment", "")])
def test_an_answer_raises_nobodys_limit_but_by_an_admin(
    team: Team, caplog: pytest.LogCaptureFixture, scope: str, key: str
) -> None:
    """Ben's question was his to answer: his own limit became 50.001, the deployment's 1000.2."""
    caplog.set_level(logging.INFO, "bowerbird.sessions.money_limits")
    assert team.limit(team.root, scope, key, 0.000001).status_code == 200
    conversation, question = team.stopped()
    refused = team.raised(team.ben, question, 50)
    assert (refused.status_code, refused.json()["code"]) == (403, "forbidden")
    with connect(
        f"{team.server.url.replace('http', 'ws', 1)}/api/chat/{conversation}/ws?v=2",
        proxy=None,
        additional_headers={"Authorization": f"Bearer {team.secrets['ben']}"},
    ) as socket:
        answer = {"type": "tool_approval_response", "request_id": question["request_id"],
                  "decision": "raise", "feedback": "50"}  # fmt: skip
        socket.send(json.dumps(answer))
        codes: list[str] = []
        while "forbidden" not in codes:
            codes.append(json.loads(socket.recv(HANG_S)).get("code"))
    assert team.shown(scope, key) == 0.000001
    assert team.raised(team.root, question, 50).status_code == 200
    team.ends(conversation)
    assert team.shown(scope, key) == pytest.approx(50.000001)
    assert any("root (admin) raised" in record.getMessage() for record in caplog.records)


def test_a_limit_of_the_settings_is_no_owners(tmp_path: Path) -> None:
    flags = {"server.auth": "token", "budgets.session_usd": 0.000001}
    with serve(tmp_path, flags=flags) as server:
        team = Team(server)
        conversation, question = team.stopped()
        assert team.raised(team.ben, question, 1).status_code == 403
        assert team.limit(team.ben, "session", conversation, 1e9).status_code == 403
        assert team.limit(team.ben, "session", conversation, None).status_code == 200, "that is the settings'"
        assert team.raised(team.root, question, 100).status_code == 200
        team.ends(conversation)
        team.root.close()
        team.ben.close()


def test_an_owner_moves_a_limit_within_what_an_admin_gave(team: Team) -> None:
    mine = begin(team.ben)
    assert team.limit(team.root, "session", mine, 200).status_code == 200
    assert team.limit(team.ben, "session", mine, 0.000001).status_code == 200
    assert say(team.ben, mine, "spend")["waiting_for"] == "budget"
    (question,) = [q for q in team.ben.get("/api/approvals").json() if q["conversation_id"] == mine]
    assert team.raised(team.ben, question, 500).status_code == 403
    assert team.raised(team.ben, question, 100).status_code == 200
    team.ends(mine)
    assert team.shown("session", mine) == pytest.approx(100.000001)
    assert team.limit(team.ben, "session", mine, 200.5).status_code == 403
    assert team.limit(team.ben, "session", mine, 200).status_code == 200
    assert team.limit(team.root, "session", mine, 3).status_code == 200
    assert team.shown("session", mine) == 3, "what an admin says now is the limit"


@pytest.mark.parametrize("scope", ["user", "deployment", "schedule"])
def test_only_an_admin_sets_these(team: Team, scope: str) -> None:
    key = begin(team.ben) if scope == "schedule" else "ben"
    assert team.limit(team.ben, scope, key, 0.5).status_code == 403
    assert team.limit(team.root, scope, key, 0.5).status_code == 200


def test_a_lifted_limit_wakes_what_waited_for_it(team: Team) -> None:
    """D-29, team 14: half an hour after the admin had lifted the limit, the turn still waited."""
    assert team.limit(team.root, "user", "ben", 0.000001).status_code == 200
    conversation, _ = team.stopped()
    assert team.limit(team.root, "user", "ben", 0.000002).status_code == 200
    assert team.ben.get(f"/api/conversations/{conversation}").json()["status"] == "waiting", "no room yet"
    assert team.limit(team.root, "user", "ben", 5).status_code == 200
    team.ends(conversation)


def test_a_limit_on_the_oldest_of_many_conversations_is_listed(team: Team) -> None:
    """Of a user with more than a thousand conversations the limits of the older ones were missing."""
    first = begin(team.ben)
    assert team.limit(team.ben, "session", first, 0.5).status_code == 200

    def more(connection: Connection) -> None:
        for _ in range(1_001):
            insert_session(connection, SessionRow(thread_id=new_thread_id(), kind="web", owner="ben"))

    team.server.run(team.server.serving.context.store.write(more))  # type: ignore[arg-type]
    assert [row["key"] for row in team.ben.get("/api/budgets").json()] == [first, "ben"]


@contextmanager
def statements() -> Iterator[list[str]]:
    """What is asked of every database meanwhile."""
    asked: list[str] = []

    def note(_c: object, _k: object, statement: str, *_: object) -> None:
        asked.append(statement)

    event.listen(Engine, "before_cursor_execute", note)
    try:
        yield asked
    finally:
        event.remove(Engine, "before_cursor_execute", note)


@pytest.mark.parametrize("role", ["admin", "user"])
def test_many_limits_are_shown_with_a_few_queries(team: Team, role: str) -> None:
    """SV-32: each limit was three queries, of everybody else's conversations one: a second for 500."""
    who = team.root if role == "admin" else team.ben

    def more(connection: Connection) -> None:
        for n in range(500):
            thread = new_thread_id()
            insert_session(connection, SessionRow(thread_id=thread, kind="web", owner=f"user{n}"))
            for scope, key in (("user", f"user{n}"), ("session", thread), ("schedule", thread)):
                set_standing_limit(connection, scope, key, 5.0)

    with statements() as few:
        shown = len(who.get("/api/budgets").json())
    team.server.run(team.server.serving.context.store.write(more))  # type: ignore[arg-type]
    with statements() as many:
        rows = who.get("/api/budgets").json()
    assert len(rows) == shown + (1_500 if role == "admin" else 0)
    assert len(many) <= len(few) + 60, len(many)


def test_a_limit_that_is_set_says_where_it_stands(team: Team) -> None:
    """SV-32: the answer said that nothing was spent, whatever the list said."""
    conversation = begin(team.ben)
    say(team.ben, conversation, "spend")
    for who, scope, key in ((team.ben, "session", conversation), (team.root, "user", "ben")):
        said = team.limit(who, scope, key, 100).json()
        [row] = [r for r in team.root.get("/api/budgets").json() if (r["scope"], r["key"]) == (scope, key)]
        assert said == row and row["spent_usd"] > 0, (said, row)
    said = team.limit(team.root, "user", "ben", None).json()
    assert (said["limit_usd"], said["source"]) == (None, "settings") and said["spent_usd"] > 0
