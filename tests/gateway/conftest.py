"""One gateway for the tests of this directory."""

from collections.abc import Generator
from pathlib import Path

import pytest
from support.gateways import OTHER, TOKEN, Running


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("gateway")
    for name in ("allowed", "allowed/below", "outside"):
        (made / name).mkdir()
    (made / "allowed" / "leads_out").symlink_to(made / "outside")
    return made


@pytest.fixture(scope="module")
def gateway(place: Path) -> Generator[Running]:
    commands = ["sh", "cat", "echo", "pwd", "env", "sleep", "python3", "no-such-program"]
    bridge = {
        "allowed_commands": commands,
        "allowed_cwd": [str(place / "allowed")],
        "env": ["PASSED", "COPY"],
    }
    running = Running(
        place,
        {
            "bridges": {
                "tools": {**bridge, "token": TOKEN, "max_timeout": 20},
                "other": {"allowed_commands": ["echo", "printf 'a b'", "printf c"], "token": OTHER},
            }
        },
        PASSED="yes", HIDDEN="secret", CLAUDECODE="1", COPY=TOKEN, LC_TIME="C", TZ="UTC",
    )  # fmt: skip
    yield running
    running.stop()
