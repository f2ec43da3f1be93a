"""What a server is that nobody has spoken to yet: what it has imported, how its threads take turns."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.patience import HANG_S, patience
from support.servers import free_port

pytestmark = pytest.mark.timeout(patience(60))

# The server as the command runs it, and a thread that tells about it once it is asked to, when it serves.
TELLING = """
import json, sys, threading
def tell():
    sys.stdin.readline()
    print(json.dumps({"modules": sorted(sys.modules), "turns_s": sys.getswitchinterval()}), flush=True)
threading.Thread(target=tell, daemon=True).start()
from bowerbird.cli.main import main
main()
"""


NEEDED_LATER = (
    "acp aiohttp alembic anthropic asyncpg croniter cryptography dbos genai_prices httpx httpx2 jsonschema_rs lxml mako mcp "
    "obstore openai opentelemetry.sdk prompt_toolkit pydantic_settings pydantic_monty pygit2 pygments pypdf rich ruamel "
    "sqlalchemy.orm telegram tokenizers trafilatura tree_sitter bowerbird.sandbox.network.egress_proxy "
    "bowerbird.sandbox.python.monty"
)
"""What a server that serves nobody has not imported, with a new database, too."""


def told_by_a_server(place: Path) -> dict[str, Any]:
    """Start a server in `place`, let it tell about itself, and end it."""
    (place / "ws").mkdir(exist_ok=True)
    settings = {"PATH": os.environ["PATH"], "HOME": str(place), "ANTHROPIC_API_KEY": "sk-ant-0123456789"}
    with subprocess.Popen(
        [sys.executable, "-c", TELLING, "serve", "--port", str(free_port())],
        cwd=place / "ws", env=settings, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as server:  # fmt: skip
        assert server.stdin is not None
        assert server.stdout is not None
        assert server.stderr is not None
        try:
            said = ""
            for line in server.stderr:
                said += line
                if " serves http" in line:
                    break
            assert " serves http" in said, said
            server.stdin.write("\n")
            server.stdin.flush()
            return json.loads(server.stdout.readline())
        finally:
            server.terminate()
            server.communicate(timeout=HANG_S)


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What a server tells that has made its database."""
    return told_by_a_server(tmp_path_factory.mktemp("idle"))


def test_threads_that_compute_let_the_event_loop_in_soon(told: dict[str, Any]) -> None:
    """Reliability 12: `touch` of 100,000 files, compared by two threads, stopped everybody for 50 ms."""
    assert told["turns_s"] <= 0.001


@pytest.mark.parametrize("module", NEEDED_LATER.split())
def test_what_a_turn_or_a_door_needs_is_not_imported_before(told: dict[str, Any], module: str) -> None:
    """Findings server 15, D-14: an idle server held 105 MB; Alembic alone takes 11."""
    assert [name for name in told["modules"] if name == module or name.startswith(f"{module}.")] == []
