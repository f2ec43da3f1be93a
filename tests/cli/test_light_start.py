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
    "pydantic_monty "
    "bowerbird.agent.turn_loop.tool_batch bowerbird.channels.house bowerbird.channels.telegram "
    "bowerbird.cli.options.mcp_options bowerbird.evals bowerbird.models.providers.openai_model "
    "bowerbird.sandbox.background bowerbird.sandbox.copy_projection bowerbird.sandbox.network.egress_proxy "
    "bowerbird.sandbox.python.monty bowerbird.sandbox.python.run bowerbird.sandbox.run.running "
    "bowerbird.sandbox.shell.shell_backend bowerbird.scheduler.data_file bowerbird.server.application "
    "bowerbird.sessions.teams.teammate bowerbird.sessions.transfer bowerbird.subagents.tournament "
    "bowerbird.workspace.compare.merge bowerbird.workspace.find.walk bowerbird.workspace.git.arrival "
    "bowerbird.workspace.landing.landing bowerbird.workspace.landing.undo"
)
"""For a turn that calls no tool, in a place that was used before."""
MOST_OWN = 540
"""Own modules of such a turn; 675 when this was written down first, of which 291 ran no function."""


NOT_NEEDED_AT_FIRST = (
    "alembic anthropic cryptography fastapi genai_prices httpx httpx2 mcp openai prompt_toolkit rich starlette "
    "bowerbird.workspace.landing.landing"
)
"""Nor in a place where nothing is yet, where the schema is made and the host is looked at."""


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[list[str]]]:
    """What two runs import: the first makes the database and learns what the host and the model are."""
    place = tmp_path_factory.mktemp("light")
    (place / "project").mkdir()
    with FakeModels() as fake:
        fake.script({"text": "ok"})
        keys = {"ANTHROPIC_API_KEY": "sk-ant-0123456789", "ANTHROPIC_BASE_URL": fake.anthropic_url}
        environment = clean_environment(place, **keys)
        said = [ran(place / "project", environment) for _ in range(2)]
    yield said


@pytest.fixture
def told(runs: list[list[str]]) -> list[str]:
    """What the later run imports."""
    return runs[1]


def ran(project: Path, environment: dict[str, str]) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", TELLING], cwd=project, env=environment, capture_output=True, text=True,
        stdin=subprocess.DEVNULL, timeout=HANG_S, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "ok\n"), done.stderr
    modules: list[str] = json.loads(done.stderr)
    return modules


def test_most_of_what_a_run_of_one_turn_imports_of_our_own_it_uses(told: list[str]) -> None:
    """UI-51: a new feature is a part that is imported where it is used; else each run pays for all of them."""
    assert len([name for name in told if name.startswith("bowerbird")]) < MOST_OWN


@pytest.mark.parametrize("module", NOT_NEEDED.split())
def test_a_run_of_one_turn_has_not_imported_what_it_does_not_need(told: list[str], module: str) -> None:
    """UI-51: each of these cost time at every start, and some of them tens of megabytes."""
    assert [name for name in told if name == module or name.startswith(f"{module}.")] == []


@pytest.mark.parametrize("module", NOT_NEEDED_AT_FIRST.split())
def test_nor_has_the_first_run_of_all(runs: list[list[str]], module: str) -> None:
    """UI-51: the migrations' tool and the table of prices took a third of a newcomer's first answer."""
    assert [name for name in runs[0] if name == module or name.startswith(f"{module}.")] == []
