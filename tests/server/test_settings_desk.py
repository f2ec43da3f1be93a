"""Settings shown and changed over HTTP, and a first model (UI-83), with the real command as server."""

import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from support.fake_models import FakeModels
from support.own_settings import SECRET, serving
from support.patience import HANG_S, patience
from support.servers import begin, say

pytestmark = pytest.mark.timeout(patience(90))

READ = {"tools": [{"name": "list_files", "input": {}}]}


@pytest.fixture
def fake() -> Iterator[FakeModels]:
    with FakeModels() as models:
        yield models


def change(http: httpx.Client, values: dict[str, Any], reset: list[str] | None = None) -> httpx.Response:
    return http.patch("/api/settings", json={"values": values, "reset": reset or []})


def row(http: httpx.Client, key: str) -> dict[str, Any]:
    return next(found for found in http.get("/api/settings").json() if found["key"] == key)


def test_a_key_given_on_the_page_makes_the_first_model_and_is_never_shown(
    tmp_path: Path, fake: FakeModels
) -> None:
    """UI-83, D-17: written to ~/.bowerbird/config.yaml, for its owner alone, and in force at once."""
    fake.script({"text": "Hello."})
    file = tmp_path / ".bowerbird" / "config.yaml"
    with serving(tmp_path) as http:
        told = http.get("/api/setup").json()
        assert not told["usable"] and "ANTHROPIC_API_KEY" in told["problem"] and told["may_change"]
        assert (
            told["file"] == str(file)
            and {"name": "openai", "variable": "OPENAI_API_KEY"} in told["providers"]
        )
        done = change(
            http,
            {"providers.anthropic.api_key": SECRET, "providers.anthropic.base_url": fake.anthropic_url},
        )
        assert done.status_code == 200, done.text
        assert "providers.anthropic.api_key" in done.json()["applied"]
        assert http.get("/api/setup").json()["usable"]
        say(http, begin(http), "hi")
        assert fake.headers[-1]["x-api-key"] == SECRET
        assert SECRET not in http.get("/api/settings").text
        shown = row(http, "providers.anthropic.api_key")
        assert shown["value"] == "********" and shown["origin"].startswith(str(file)) and not shown["locked"]
        elsewhere = change(http, {"providers.anthropic.base_url": "https://example.com"})
        assert elsewhere.status_code == 422 and "give the key again" in elsewhere.text
    assert file.stat().st_mode & 0o077 == 0 and SECRET in file.read_text()
    with serving(tmp_path) as http:
        assert http.get("/api/setup").json()["usable"]


def test_an_invalid_change_writes_nothing_and_says_every_error(tmp_path: Path, fake: FakeModels) -> None:
    """UI-83: validated whole; comments of the file stay."""
    file = tmp_path / ".bowerbird" / "config.yaml"
    file.parent.mkdir()
    text = f"# mine\nproviders:\n  anthropic: {{api_key: {SECRET}, base_url: '{fake.anthropic_url}'}}\nagent:\n  max_turns: 2  # few\n"
    file.write_text(text)
    file.chmod(0o600)
    fake.script(READ)
    with serving(tmp_path) as http:
        refused = change(http, {"agent.max_turns": "many", "budgets.session_usd": -1})
        assert refused.status_code == 409 and len(refused.json()["errors"]) == 2
        assert file.read_text() == text and [path.name for path in file.parent.glob(".config*")] == []
        before = fake.request_count
        say(http, begin(http), "go on")
        few = fake.request_count - before
        assert change(http, {"agent.max_turns": 4}).json()["applied"] == ["agent.max_turns"]
        before = fake.request_count
        say(http, begin(http), "go on")
        assert fake.request_count - before == few + 2
        assert file.read_text() == text.replace("max_turns: 2", "max_turns: 4")
        assert change(http, {}, ["agent.max_turns"]).status_code == 200
        assert row(http, "agent.max_turns")["origin"] == "default"
        assert change(http, {}).json()["applied"] == []


REFUSED: tuple[tuple[str, Any, str], ...] = (
    ("hooks.turn_end", "x", "settings file"),  # programs
    ("mcp_servers.x.command", "sh", "settings file"),
    ("providers.x.command", "sh", "settings file"),
    ("server.denied_users", [], "settings file"),  # who comes in
    ("agent.data_dir", "/tmp/x", "restart"),
    ("agent.max_turns", 3, "MAX_TURNS in the environment"),
    ("agent.nothing", 3, "no setting is named"),
    ("providers.anthropic.api_key", "********", "mask"),
)


def test_what_is_not_for_the_page_is_refused(tmp_path: Path) -> None:
    """UI-83: programs, hosts and who comes in stay with whoever has the machine."""
    with serving(tmp_path, MAX_TURNS="9") as http:
        for key, value, why in REFUSED:
            answer = change(http, {key: value})
            assert answer.status_code == 422 and why in answer.text, key
    assert not (tmp_path / ".bowerbird" / "config.yaml").exists()


def test_only_an_admin_sees_and_changes_settings(tmp_path: Path) -> None:
    """UI-83."""
    home = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    made = subprocess.run(
        [sys.executable, "-m", "bowerbird.cli.main", "token", "create", "ann", "--role", "user"],
        env=home, capture_output=True, text=True, check=True, cwd=tmp_path,
    )  # fmt: skip
    secret = next(word for word in made.stdout.split() if word.startswith("bb_"))
    with serving(tmp_path, BOWERBIRD_SERVER__AUTH="token") as http:
        http.headers["Authorization"] = f"Bearer {secret}"
        assert http.get("/api/settings").status_code == 403
        assert change(http, {"agent.max_turns": 3}).status_code == 403
        assert http.post("/api/setup/fetch", json={}).status_code == 403
        told = http.get("/api/setup").json()
        assert (
            not told["usable"] and not told["may_change"] and told["file"] is None and told["problem"] == ""
        )


def test_a_directory_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    """UI-83: the place of ~/.bowerbird is a file."""
    with serving(tmp_path, BOWERBIRD_AGENT__DATA_DIR=str(tmp_path / "data")) as http:
        (tmp_path / ".bowerbird").write_text("not a directory")
        answer = change(http, {"agent.max_turns": 3})
        assert answer.status_code == 409 and "cannot be written" in answer.text
        assert row(http, "agent.max_turns")["origin"] == "default"


def test_changes_through_two_servers_at_once_are_all_in_the_file(tmp_path: Path) -> None:
    """UI-83, law 7: what a page was told is saved is saved, whoever else saves at that moment."""
    file = tmp_path / ".bowerbird" / "config.yaml"
    with serving(tmp_path) as one, serving(tmp_path) as other, ThreadPoolExecutor(2) as both:
        for number in range(2, 14):
            wanted = ("agent.max_turns", one), ("agent.max_teammates", other)
            changes = [both.submit(change, http, {key: number}) for key, http in wanted]
            assert [done.result(HANG_S).status_code for done in changes] == [200, 200]
            assert file.read_text().count(f": {number}\n") == 2
    assert sorted(os.listdir(file.parent)) == ["config.yaml", "data"]


def test_what_a_killed_server_had_begun_to_write_goes_with_the_next_change(tmp_path: Path) -> None:
    """It may hold a key: it is not left lying about."""
    file = tmp_path / ".bowerbird" / "config.yaml"
    file.parent.mkdir()
    left = file.with_name(".config.yaml.4194999.new")
    left.write_text(f"providers: {{anthropic: {{api_key: {SECRET}}}}}\n")
    (file.parent / ".config.yaml.mine.new").write_text("of a person")
    with serving(tmp_path) as http:
        assert change(http, {"agent.max_turns": 3}).status_code == 200
    assert not left.exists()
    assert sorted(os.listdir(file.parent)) == [".config.yaml.mine.new", "config.yaml", "data"]
