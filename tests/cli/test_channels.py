"""`bowerbird channels pair|allow|deny|list` (AS-7, UI-47)."""

import json
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from support.patience import HANG_S


def bowerbird(directory: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    env = {"HOME": str(directory), "PATH": os.environ["PATH"]}
    return subprocess.run(
        [sys.executable, "-m", "bowerbird", "channels", *arguments],
        cwd=directory, env=env, capture_output=True, text=True, timeout=HANG_S, check=False,
    )  # fmt: skip


def test_who_may_write_is_listed_as_settings_and_commands_say_together(tmp_path: Path) -> None:
    """AS-7: the stored list is united with the settings; deny holds whatever these say."""
    users = "allowed_users: [1, {id: 2, role: guest}]"
    (tmp_path / ".bowerbird").mkdir()
    (tmp_path / ".bowerbird" / "config.yaml").write_text(f"channels: {{telegram: {{{users}}}}}")
    assert bowerbird(tmp_path, "allow", "telegram", "3", "--role", "guest").returncode == 0
    assert bowerbird(tmp_path, "deny", "telegram", "1").returncode == 0
    found = json.loads(bowerbird(tmp_path, "list", "--json").stdout)
    assert {row["user"]: row["role"] for row in found["users"]} == {"1": "denied", "2": "guest", "3": "guest"}
    assert found["channels"][0]["state"].startswith("off")


def test_a_code_is_shown_once_and_kept_as_its_hash(tmp_path: Path) -> None:
    """AS-7: 8 characters."""
    made = bowerbird(tmp_path, "pair", "telegram", "--role", "guest")
    code = made.stdout.strip()
    assert len(code) == 8 and f"/start {code}" in made.stderr
    with sqlite3.connect(tmp_path / ".bowerbird" / "data" / "agent.db") as connection:
        rows = connection.execute("SELECT * FROM channel_codes").fetchall()
    connection.close()
    assert len(rows) == 1 and code not in str(rows) and "guest" in rows[0]


@pytest.mark.parametrize(
    "arguments",
    [
        ("pair", "smoke"),
        ("pair", "telegram", "--role", "god"),
        ("allow", "telegram", " "),
        ("deny", "telegram"),
        (),
    ],
)
def test_wrong_usage_is_named(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    found = bowerbird(tmp_path, *arguments)
    assert found.returncode == 2 and "Traceback" not in found.stderr
