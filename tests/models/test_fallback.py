"""Fallback models (MO-33, acceptance 14)."""

from contextlib import aclosing

import pytest
from support.fake_models import FakeModels
from support.model_settings import KEY, QUICK

from bowerbird.core.errors import ConfigError, ModelError
from bowerbird.core.messages import Message, ToolResultBlock, ToolUseBlock, user_text
from bowerbird.core.requests import End, ModelFallback, ModelRequest
from bowerbird.models import ModelOverride, ModelSettings, ProviderSettings, complete, open_model
from bowerbird.models.wrappers.fallback import Failures, turn_key


@pytest.fixture
def second():
    with FakeModels() as server:
        yield server


@pytest.fixture
async def pair(fake, second):
    """An Anthropic model whose fallback is an OpenAI one at another server."""
    settings = ModelSettings(
        providers={
            "anthropic": ProviderSettings(KEY, fake.anthropic_url),
            "openai": ProviderSettings(KEY, second.openai_url),
        },
        overrides={"anthropic:first": ModelOverride(fallback=("openai:second",))},
        retry=QUICK,
    )
    second.script({"text": "from the second"})
    model = open_model("anthropic:first", settings)
    yield model
    await model.aclose()


async def events_of(model, request):
    async with aclosing(model.stream(request)) as events:
        return [event async for event in events]


def ask() -> ModelRequest:
    return ModelRequest((user_text("hello"),))


@pytest.mark.parametrize("status", [529, 500, 429, 404, 401, 503])
async def test_the_next_model_answers_when_the_first_is_down(fake, second, pair, status):
    """Acceptance 14: usage names the one that answered, at most 4 requests to the first."""
    fake.script({"status": status})
    events = await events_of(pair, ask())
    end = events[-1]
    assert isinstance(end, End) and end.message.text == "from the second" and end.model == "openai:second"
    (fallback,) = [e for e in events if isinstance(e, ModelFallback)]
    assert (fallback.from_model, fallback.to_model) == ("anthropic:first", "openai:second")
    assert fake.request_count <= 4 and second.request_count == 1


async def test_a_turn_stays_with_its_fallback_and_the_next_begins_with_the_first(fake, second, pair):
    fake.script({"status": 529})
    first = ask()
    await complete(pair, first)
    assert fake.request_count == 4
    call = ToolUseBlock("c", "f", {})
    more = (*first.messages, Message("assistant", (call,)), Message("user", (ToolResultBlock("c", "r"),)))
    await complete(pair, ModelRequest(more))
    assert (fake.request_count, second.request_count) == (4, 2)
    fake.script({"text": "from the first"})
    assert (await complete(pair, ask())).message.text == "from the first"


async def test_a_model_that_failed_twice_in_a_minute_is_passed_over(fake, second, pair):
    fake.script({"status": 529})
    await complete(pair, ask())
    await complete(pair, ask())
    assert fake.request_count == 8
    events = await events_of(pair, ask())
    assert fake.request_count == 8 and isinstance(events[0], ModelFallback)


@pytest.mark.parametrize(
    "step",
    [
        {"status": 400},
        {"status": 400, "body": {"error": {"message": "no", "code": "content_policy_violation"}}},
        {"deltas": 4, "cut_after": 2},
    ],
    ids=["bad-request", "refused", "after-content"],
)
async def test_there_is_no_fallback_for_what_another_model_cannot_mend(fake, second, pair, step):
    fake.script(step)
    with pytest.raises(ModelError):
        await complete(pair, ask())
    assert second.request_count == 0


async def test_when_all_fail_the_error_names_each(fake, second, pair):
    fake.script({"status": 529})
    second.script({"status": 401})
    with pytest.raises(ModelError) as caught:
        await complete(pair, ask())
    assert "anthropic:first" in str(caught.value) and "openai:second" in str(caught.value)
    assert caught.value.kind == "auth" and caught.value.retryable


async def test_a_missing_key_of_the_first_is_said_and_not_covered_up(second):
    settings = ModelSettings(
        providers={"openai": ProviderSettings(KEY, second.openai_url)},
        overrides={"first": ModelOverride(fallback=("openai:second",))},
    )
    with pytest.raises(ConfigError, match="ANTHROPIC_API_KEY"):
        await complete(open_model("first", settings), ask())
    assert second.request_count == 0


def test_failures_are_forgotten_after_a_minute():
    now = [0.0]
    failures = Failures(lambda: now[0])
    for at, expected in ((0.0, False), (59.0, True)):
        now[0] = at
        failures.add("m")
        assert failures.passed_over("m") is expected
    now[0] = 118.9
    assert failures.passed_over("m")
    now[0] = 119.1
    assert not failures.passed_over("m")
    failures.add("m")  # 60.1 s after the one before: not twice within 60 s
    assert not failures.passed_over("m")


def test_a_turn_is_known_by_the_newest_message_of_a_person():
    first, result = user_text("a"), Message("user", (ToolResultBlock("c", "r"),))
    assert turn_key(ModelRequest((first, result))) == first.id
    assert turn_key(ModelRequest((result,))) is None


async def test_bad_requests_do_not_count_as_failures_of_the_model(fake, second, pair):
    fake.script({"status": 400})
    for _ in range(3):
        with pytest.raises(ModelError):
            await complete(pair, ask())
    assert fake.request_count == 3 and second.request_count == 0
