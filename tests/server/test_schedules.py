"""Schedules over HTTP: made, changed, run, listed; errors by field, owners (SV-31, SV-56, AS-29)."""

import json
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
from support.patience import HANG_S
from support.servers import TestServer, serve, until

from bowerbird.store.rows.tokens import make_token

ON = {
    "scheduler.enabled": True, "scheduler.min_interval": 1, "scheduler.timezone": "Europe/Rome",
    "server.auth": "token", "model_router.enabled": True, "model_router.default_tier": "lite",
    "model_router.tiers.lite.name": "anthropic", "model_router.tiers.lite.model": "claude-haiku-4-5",
    "model_router.tiers.expert.name": "anthropic", "model_router.tiers.expert.model": "claude-opus-4-5",
}  # fmt: skip
EVERY = {"prompt": "Look after the shop", "type": "interval", "value": "3600"}
FIELDS = """id prompt type value channel chat_id created_at last_run active model_tier owner tz next_run catch_up
notify last_status fail_count""".split()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestServer]:
    with serve(tmp_path_factory.mktemp("schedules"), flags=ON) as running:
        yield running


@pytest.fixture(scope="module")
def people(server: TestServer) -> Iterator[dict[str, httpx.Client]]:
    store = server.serving.context.store
    clients: dict[str, httpx.Client] = {}
    for name, role in (("ada", "user"), ("bob", "user"), ("root", "admin"), ("eve", "viewer")):
        _, secret = server.run(store.write(lambda c, n=name, r=role: make_token(c, n, r, user=n)))  # type: ignore[arg-type]
        headers = {"Authorization": f"Bearer {secret}"}
        clients[name] = httpx.Client(base_url=server.url, timeout=HANG_S, headers=headers)
    yield clients
    for client in clients.values():
        client.close()


def made(client: httpx.Client, **values: Any) -> dict[str, Any]:
    answer = client.post("/api/schedules", json=EVERY | values)
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def test_a_task_has_the_form_of_the_chapter(people: dict[str, httpx.Client]) -> None:
    """AS-29, UI-35: with its next three runs."""
    task = made(people["ada"], type="cron", value="30 8 * * *", model_tier="lite", catch_up="skip")
    assert list(task)[: len(FIELDS)] == FIELDS
    assert (task["tz"], task["owner"], task["active"], task["last_run"]) == ("Europe/Rome", "ada", True, None)
    times = [datetime.fromisoformat(at) for at in task["next_runs"]]
    assert len(times) == 3 and task["next_runs"][0] == task["next_run"]
    assert people["ada"].get(f"/api/schedules/{task['id']}").json() == task
    assert task in people["ada"].get("/api/schedules").json()


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("type", {"type": "hourly"}), ("value", {"value": "0.5"}), ("value", {"type": "cron", "value": "* * *"}),
        ("tz", {"tz": "Mars"}), ("model_tier", {"model_tier": "gone"}), ("prompt", {"prompt": ""}),
        ("catch_up", {"catch_up": "two"}), ("channel", {"channel": "telegram", "chat_id": "1"}),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named_by_its_field(
    people: dict[str, httpx.Client], field: str, values: dict[str, str]
) -> None:
    """SV-31, AS-31: and nothing is stored."""
    ada = people["ada"]
    before = ada.get("/api/schedules?all=true").json()
    answer = ada.post("/api/schedules", json=EVERY | values)
    assert answer.status_code == 422, answer.text
    assert answer.json()["detail"][0]["loc"] == ["body", field]
    assert ada.get("/api/schedules?all=true").json() == before
    task = made(ada)
    if field not in ("channel",):
        change = ada.patch(f"/api/schedules/{task['id']}", json=values)
        assert change.status_code == 422, change.text
        assert change.json()["detail"][0]["loc"] == ["body", field]


def test_it_runs_is_paused_changed_and_cancelled(server: TestServer, people: dict[str, httpx.Client]) -> None:
    """SV-31, AS-37, AS-39: the tier holds for its runs."""
    ada = people["ada"]
    task = made(ada, prompt="Say when", model_tier="expert")
    place = f"/api/schedules/{task['id']}"
    begun = ada.post(f"{place}/run").json()
    assert (begun["task_id"], begun["status"]) == (task["id"], "running")
    [run] = until(lambda: [r for r in ada.get(f"{place}/runs").json() if r["ended_at"]], "the run ends")
    assert (run["status"], run["due"], run["turn_id"]) == ("done", begun["due"], begun["turn_id"])
    assert run["cost"] > 0
    [asked] = [r for r in server.fake.requests if "Say when" in json.dumps(r["messages"])]
    assert asked["model"] == "claude-opus-4-5"
    talk = ada.get(f"/api/conversations/{task['conversation_id']}").json()
    assert [message["content"] for message in talk["messages"]] == ["Say when", "hello"]
    ada.post(
        f"/api/conversations/{task['conversation_id']}/messages",
        json={"content": "And you?"},
        params={"wait": 30},
    )
    [own] = [r for r in server.fake.requests if "And you?" in json.dumps(r["messages"])]
    assert own["model"] == "claude-haiku-4-5"
    paused = ada.patch(place, json={"paused": True}).json()
    assert (paused["paused"], paused["next_runs"]) == (True, [])
    changed = ada.patch(place, json={"paused": False, "value": "7200", "model_tier": None}).json()
    assert (changed["value"], changed["model_tier"], len(changed["next_runs"])) == ("7200", None, 3)
    gone = ada.delete(place).json()
    assert (gone["active"], gone["next_run"]) == (False, None)
    assert ada.post(f"{place}/run").status_code == 409
    assert task["id"] not in [row["id"] for row in ada.get("/api/schedules").json()]
    assert task["id"] in [row["id"] for row in ada.get("/api/schedules?all=true").json()]


def test_nothing_of_another_user_exists(people: dict[str, httpx.Client]) -> None:
    """SV-56: a viewer reads, an admin sees all."""
    task = made(people["ada"])
    place = f"/api/schedules/{task['id']}"
    bob = people["bob"]
    assert task["id"] not in [row["id"] for row in bob.get("/api/schedules").json()]
    for answer in (
        bob.get(place), bob.patch(place, json={"paused": True}), bob.delete(place), bob.post(f"{place}/run"),
        bob.get(f"{place}/runs"),
    ):  # fmt: skip
        assert answer.status_code == 404, answer.text
    assert people["eve"].post("/api/schedules", json=EVERY).status_code == 403
    assert people["root"].get(place).json() == task
    chat = made(people["root"], channel="telegram", chat_id="5")
    assert (chat["channel"], chat["chat_id"]) == ("telegram", "5")


def test_tasks_of_an_earlier_program_are_imported_once(tmp_path: Path) -> None:
    """CF-55, AS-35, acceptance 9: one bad one is set aside; they are planned from now on."""
    old = {"prompt": "go", "type": "cron", "value": "0 8 * * *", "channel": None, "chat_id": None,
           "created_at": "2026-02-24T10:00:00+00:00", "last_run": None, "active": True}  # fmt: skip
    file = tmp_path / "tasks.json"
    tasks = [{**old, "id": f"0000000{n}"} for n in range(4)]
    file.write_text(
        json.dumps([*tasks, {**old, "id": "0000000a", "value": {}}, {**old, "id": "0000000b", "value": "{}"}])
    )
    flags = {"scheduler.enabled": True, "scheduler.data_file": str(file)}
    with serve(tmp_path, flags=flags) as server, server.http as client:
        until(lambda: len(client.get("/api/schedules").json()) == 4, "four are planned")
        every = {row["id"]: row for row in client.get("/api/schedules?all=true").json()}
        assert every["0000000b"]["last_status"].startswith("invalid: ")
        assert "0000000a" not in every
        assert all(row["next_run"] > row["created_at"] for row in every.values() if row["active"])
        client.delete("/api/schedules/00000000")
    file.write_text(json.dumps([{**old, "id": "0000000c"}, *tasks]))
    with serve(tmp_path, flags=flags) as server, server.http as client:
        assert [row["id"] for row in client.get("/api/schedules").json()] == [
            "00000001",
            "00000002",
            "00000003",
        ]
