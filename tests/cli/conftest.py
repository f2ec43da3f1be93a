"""The command as people start it: a project, a home of its own, a scripted model."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.desk import Desk
from support.fake_models import FakeModels


@pytest.fixture(scope="session")
def models() -> Iterator[FakeModels]:
    with FakeModels() as fake:
        yield fake


@pytest.fixture
def desk(tmp_path: Path, models: FakeModels) -> Iterator[Desk]:
    models.reset()
    with Desk(tmp_path, models) as made:
        yield made


def write(path: str, content: str) -> dict[str, Any]:
    return {"name": "write_file", "input": {"path": path, "content": content}}


@pytest.fixture
def written() -> Callable[[str, str], dict[str, Any]]:
    return write
