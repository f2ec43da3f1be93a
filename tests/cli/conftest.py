"""The command as people start it: a project, a home of its own, a scripted model.

A test that asks for `desk` runs twice: with the sessions of this machine, and over a server of the same
directory and records, where each JSON that only reads is compared with what this machine's records give.
What is about this machine, or about the process that runs the turn, asks for `here` and runs once.
"""

from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest
from support.desk import Desk
from support.fake_models import FakeModels
from support.quick_servers import QuickServers


@pytest.fixture(scope="session")
def models() -> Generator[FakeModels]:
    with FakeModels() as fake:
        yield fake


@pytest.fixture(scope="session")
def servers() -> Generator[QuickServers]:
    made = QuickServers()
    yield made
    made.close()


@pytest.fixture(scope="module", params=["local", "server"])
def client(request: pytest.FixtureRequest) -> str:
    """Which client the commands of a test have."""
    return str(request.param)


@pytest.fixture
def desk(tmp_path: Path, models: FakeModels, servers: QuickServers, client: str) -> Generator[Desk]:
    models.reset()
    with Desk(tmp_path, models, servers if client == "server" else None) as made:
        yield made


@pytest.fixture
def here(tmp_path: Path, models: FakeModels) -> Generator[Desk]:
    models.reset()
    with Desk(tmp_path, models) as made:
        yield made


def write(path: str, content: str) -> dict[str, Any]:
    return {"name": "write_file", "input": {"path": path, "content": content}}


@pytest.fixture
def written() -> Callable[[str, str], dict[str, Any]]:
    return write
