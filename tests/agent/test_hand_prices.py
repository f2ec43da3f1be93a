"""MO-14, MO-50: a price that a person set is the price, for limits in money and for answers that are cut short."""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from typing import Any

import pytest
from support.agent_turns import settings_for
from support.fake_models import FakeModels

from bowerbird.agent.turn import Limits, StopSignal
from bowerbird.core.events import AssistantStep, TextLive
from bowerbird.models import Model, ModelOverride, Price, open_model

Run = Callable[..., Any]
MINE, KNOWN = "anthropic:my-model", "anthropic:claude-sonnet-4-5"


@pytest.fixture
async def model(fake: FakeModels, request: pytest.FixtureRequest) -> AsyncIterator[Model]:
    name = request.param
    priced = replace(settings_for(fake), overrides={name: ModelOverride(price=Price(10.0, 100.0))})
    opened = open_model(name, priced)
    yield opened
    await opened.aclose()


@pytest.mark.parametrize("model", [MINE, KNOWN], indirect=True)
async def test_a_limit_in_money_is_judged_by_the_price_that_was_set(
    model: Model, fake: FakeModels, turn: Run
) -> None:
    """MO-50: the limit refused the model for want of the price that the settings gave it, and said to set one."""
    fake.script({"text": "well", "usage": {"input": 1000, "output": 10}})
    told = await turn(limits=Limits(max_cost=0.5))
    assert told.done.error is None and told.done.text == "well"
    assert told.done.usage.cost == pytest.approx(0.011)
    assert fake.requests[0]["max_tokens"] <= 5000  # 0.5 USD buys so many, at 100 USD a million


@pytest.mark.parametrize("model", [MINE], indirect=True)
async def test_an_answer_that_is_stopped_has_its_price(model: Model, fake: FakeModels, turn: Run) -> None:
    """MO-14: one Ctrl+C made every sum of a session, a day and a model `unpriced`."""
    fake.script({"text": "one two three", "deltas": 3, "hang_after": 1})
    stop = StopSignal()

    def on(event: Any) -> None:
        if isinstance(event, TextLive):
            asyncio.get_running_loop().call_soon(stop.set, "cancelled")

    told = await turn(stop=stop, on=on)
    (step,) = told.of(AssistantStep)
    assert step.usage.cost is not None and step.usage.cost > 0
