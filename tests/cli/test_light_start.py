"""What a one-turn run has not imported: time and memory that a first contact does not cost (UI-51, D-14)."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.fake_models import FakeModels
from support.patience import HANG_S, patience
from support.terminals import clean_environment

pytestmark = pytest.mark.timeout(patience(120))

TELLING = """
import json, sys
from bowerbird.cli.main import run_command
code = run_command(["-q", "hi"])
json.dump(sorted(sys.modules), sys.stderr)
sys.exit(code)
"""
NOT_NEEDED = (
    "alembic anthropic asyncpg croniter cryptography fastapi genai_prices h11 httpx httpx2 jsonschema_rs lxml mako "
    "markdown_it mcp openai opentelemetry prometheus_client prompt_toolkit pydantic_settings pygit2 pygments rich "
    "ruamel.yaml sqlalchemy.orm starlette tree_sitter uvicorn uvloop websockets xllamacpp "
    "bowerbird.sandbox.network.egress_proxy bowerbird.sandbox.python.monty "
    "bowerbird.sandbox.python.run bowerbird.server.application"
)
"""For a turn that calls no tool, in a place that was used before."""


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    """What a later run imports: the first makes the database and learns what the host and the model are."""
    place = tmp_path_factory.mktemp("light")
    (place / "project").mkdir()
    with FakeModels() as fake:
        fake.script({"text": "ok"})
        keys = {"ANTHROPIC_API_KEY": "sk-ant-0123456789", "ANTHROPIC_BASE_URL": fake.anthropic_url}
        environment = clean_environment(place, **keys)
        said = [ran(place / "project", environment) for _ in range(2)]
    yield said[1]


def ran(project: Path, environment: dict[str, str]) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", TELLING], cwd=project, env=environment, capture_output=True, text=True,
        stdin=subprocess.DEVNULL, timeout=HANG_S, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "ok\n"), done.stderr
    modules: list[str] = json.loads(done.stderr)
    return modules


@pytest.mark.parametrize("module", NOT_NEEDED.split())
def test_a_run_of_one_turn_has_not_imported_what_it_does_not_need(told: list[str], module: str) -> None:
    """UI-51: each of these cost time at every start, and some of them tens of megabytes."""
    assert [name for name in told if name == module or name.startswith(f"{module}.")] == []
