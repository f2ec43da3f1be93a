"""Scripted model for servers that tests open with settings of their own."""

from collections.abc import Iterator

import pytest
from support.fake_models import FakeModels


@pytest.fixture
def fake() -> Iterator[FakeModels]:
    with FakeModels() as server:
        yield server
