"""Fixtures of the models' tests: the scripted server and models that ask it."""

from collections.abc import AsyncIterator, Callable, Iterator

import pytest
from support.fake_models import FakeModels
from support.model_settings import NAMES, QUICK, settings_for

from bowerbird.models import Model, RetryPolicy, open_model


@pytest.fixture
def fake() -> Iterator[FakeModels]:
    with FakeModels() as server:
        yield server


@pytest.fixture(params=["anthropic", "openai"])
def wire(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
async def open_fake(fake: FakeModels) -> AsyncIterator[Callable[..., Model]]:
    """Opens models at the scripted server and closes them after the test."""
    opened: list[Model] = []

    def open_one(name: str, retry: RetryPolicy = QUICK, **changes: object) -> Model:
        opened.append(open_model(NAMES.get(name, name), settings_for(fake, retry, **changes)))
        return opened[-1]

    yield open_one
    for model in opened:
        await model.aclose()
