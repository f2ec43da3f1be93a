"""`bowerbird token create|list|revoke` (SV-55, UI-47)."""

import hashlib
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
        [sys.executable, "-m", "bowerbird", "token", *arguments],
        cwd=directory, env=env, capture_output=True, text=True, timeout=HANG_S, check=False,
    )  # fmt: skip


def test_a_token_is_shown_once_listed_without_its_secret_and_revoked(tmp_path: Path) -> None:
    made = bowerbird(tmp_path, "create", "laptop", "--role", "admin", "--user", "ann", "--expires", "90d")
    assert made.returncode == 0, made.stderr
    secret = made.stdout.strip()
    assert secret.startswith("bb_")
    assert len(secret) == 46
    assert f"for servers on {tmp_path}/.bowerbird/data/agent.db" in made.stderr  # any other refuses it
    listed = bowerbird(tmp_path, "list")
    assert "laptop" in listed.stdout
    assert secret not in listed.stdout
    with sqlite3.connect(tmp_path / ".bowerbird" / "data" / "agent.db") as connection:
        rows = connection.execute('SELECT sha256, role, "user" FROM tokens').fetchall()
    connection.close()
    assert rows == [(hashlib.sha256(secret.encode()).hexdigest(), "admin", "ann")]
    assert bowerbird(tmp_path, "revoke", "laptop").returncode == 0
    assert json.loads(bowerbird(tmp_path, "list", "--json").stdout)[0]["usable"] is False


def test_where_no_token_is_the_database_that_was_looked_into_is_named(tmp_path: Path) -> None:
    """Faces B12: from elsewhere, "no token" was said of a server that has some."""
    database = f"{tmp_path}/.bowerbird/data/agent.db"
    assert f"no token in {database};" in bowerbird(tmp_path, "list").stderr
    assert database in bowerbird(tmp_path, "revoke", "bob").stderr


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("create", "x", "--role", "god"), 2),
        (("create", "x", "--expires", "soon"), 2),
        (("create", " "), 2),
        (("revoke", "nobody"), 2),
        (("create",), 2),
    ],
)
def test_wrong_usage_is_named(tmp_path: Path, arguments: tuple[str, ...], code: int) -> None:
    done = bowerbird(tmp_path, *arguments)
    assert done.returncode == code, done.stderr
    assert done.stderr.strip()
    assert not done.stdout
