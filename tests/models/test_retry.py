"""Retries: how often, how long, and that waiting ends at once on cancel (MO-19, MO-29, MO-30)."""

import asyncio
import time
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.model_settings import HELLO, QUICK
from support.patience import patience

from bowerbird.core.errors import InvalidArgument, ModelError
from bowerbird.core.requests import End, Retrying
from bowerbird.models import RetryingModel, RetryPolicy, complete
from bowerbird.models.wrappers.retry import next_delay

OVERLOADED = ModelError("busy", kind="overloaded", status=529, retryable=True)


@pytest.mark.parametrize(
    ("status", "requests"),
    [
        (529, 4),
        (500, 4),
        (502, 4),
        (503, 4),
        (504, 4),
        (408, 4),
        (429, 4),
        (400, 1),
        (401, 1),
        (404, 1),
        (501, 1),
    ],
)
async def test_only_passing_failures_are_asked_again(fake, open_fake, wire, status, requests):
    """MO-29, acceptance 1: a provider that always answers 529 sees exactly 4 requests."""
    fake.script({"status": status})
    with pytest.raises(ModelError) as caught:
        await complete(open_fake(wire), HELLO)
    assert fake.request_count == requests and caught.value.status == status


@pytest.mark.parametrize("retries", [0, 1, 5])
async def test_there_are_never_more_than_one_plus_retries_requests(fake, open_fake, wire, retries):
    """CF-31."""
    fake.script({"status": 529})
    with pytest.raises(ModelError):
        await complete(open_fake(wire, RetryPolicy(retries, 0.0, 0.0)), HELLO)
    assert fake.request_count == 1 + retries


async def test_a_later_success_is_the_answer_and_each_wait_is_an_event(fake, open_fake, wire):
    fake.script({"status": 529}, {"status": 500}, {"text": "at last"})
    async with aclosing(open_fake(wire).stream(HELLO)) as stream:
        events = [event async for event in stream]
    assert [(e.attempt, e.reason) for e in events if isinstance(e, Retrying)] == [
        (1, "overloaded"),
        (2, "server"),
    ]
    assert isinstance(events[-1], End) and events[-1].message.text == "at last"


async def test_retry_after_seconds_replace_the_delay(fake, open_fake, wire):
    """Acceptance 1: the second request comes 2 to 3 s after the first."""
    fake.script({"status": 529, "headers": {"retry-after": "2"}}, {"text": "ok"})
    await complete(open_fake(wire, RetryPolicy(base_delay_s=0.0, max_delay_s=0.0)), HELLO)
    assert 2.0 <= fake.times[1] - fake.times[0] <= 3.0


async def test_a_retry_after_date_replaces_the_delay(fake, open_fake):
    fake.script({"status": 429, "headers": {"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}}, {"text": "ok"})
    await complete(open_fake("openai", RetryPolicy(base_delay_s=30.0)), HELLO)
    assert fake.times[1] - fake.times[0] < 1.0


@pytest.mark.parametrize("form", ["seconds", "date"])
async def test_a_longer_retry_after_is_an_error_at_once_that_tells_the_time(fake, open_fake, form):
    later = format_datetime(datetime.now(UTC) + timedelta(seconds=301), usegmt=True)
    fake.script({"status": 429, "headers": {"retry-after": "300" if form == "seconds" else later}})
    with pytest.raises(ModelError, match=r"asks to wait (299|30\d) s") as caught:
        await complete(open_fake("anthropic"), HELLO)
    assert fake.request_count == 1 and 295 < (caught.value.retry_after_s or 0) < 302


@pytest.mark.parametrize("wire", ["anthropic", "openai"])
async def test_an_exhausted_quota_is_not_asked_again(fake, open_fake, wire):
    body = {"error": {"message": "You exceeded your current quota", "code": "insufficient_quota"}}
    fake.script({"status": 429, "body": body})
    with pytest.raises(ModelError) as caught:
        await complete(open_fake(wire), HELLO)
    assert fake.request_count == 1 and caught.value.kind == "quota" and not caught.value.retryable


async def test_cancelling_while_waiting_returns_within_100_ms(fake, open_fake, wire):
    """Acceptance 1."""
    fake.script({"status": 529})
    model = open_fake(wire, RetryPolicy(base_delay_s=20.0))
    waiting = asyncio.Event()

    async def ask() -> None:
        async with aclosing(model.stream(HELLO)) as events:
            async for event in events:
                if isinstance(event, Retrying):
                    waiting.set()

    call = asyncio.create_task(ask())
    await waiting.wait()
    began = time.monotonic()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert time.monotonic() - began < patience(2) and fake.request_count == 1


async def test_a_stream_that_breaks_off_is_asked_again_and_says_so(fake, open_fake, wire):
    """D-13: nothing acts on an answer before its end, so a broken one is replaced, within the policy."""
    fake.script({"deltas": 3, "cut_after": 1}, {"text": "whole"})
    waits, ends = [], []
    async with aclosing(open_fake(wire).stream(HELLO)) as events:
        async for event in events:
            waits += [event] if isinstance(event, Retrying) else []
            ends += [event] if isinstance(event, End) else []
    assert [wait.restarts for wait in waits] == [True]
    assert [end.message.text for end in ends] == ["whole"]
    fake.script({"deltas": 3, "cut_after": 1})
    with pytest.raises(ModelError):
        await complete(open_fake(wire), HELLO)
    assert fake.request_count == 2 + 4


async def test_an_unreachable_server_is_a_network_error_and_asked_again(fake, open_fake, wire):
    """MO-29: ConnectionError."""
    model = open_fake(wire)
    fake.__exit__()
    waits = 0
    with pytest.raises(ModelError) as caught:
        async with aclosing(model.stream(HELLO)) as events:
            async for event in events:
                waits += isinstance(event, Retrying)
    assert caught.value.kind == "network" and waits == 3


async def test_built_in_errors_of_other_models_are_retried_too():
    """MO-29: a `Model` of one's own may raise ConnectionError or TimeoutError."""

    class Flaky:
        def __init__(self) -> None:
            self.errors = [ConnectionResetError("gone"), TimeoutError()]

        @property
        def info(self):
            return HELLO_INFO

        async def stream(self, request):
            if self.errors:
                raise self.errors.pop(0)
            yield End(request.messages[0], "end_turn", USAGE)

        async def aclose(self) -> None:
            pass

    from bowerbird.core.requests import ModelInfo
    from bowerbird.core.usage import Usage

    HELLO_INFO, USAGE = ModelInfo("own", "m"), Usage()
    async with aclosing(RetryingModel(Flaky(), QUICK).stream(HELLO)) as stream:
        events = [event async for event in stream]
    assert [e.reason for e in events if isinstance(e, Retrying)] == ["network", "timeout"]


REFUSALS = {
    "temperature": "Unsupported value: 'temperature' does not support 0.2 with this model.",
    "stream_options": "Unrecognized request argument supplied: stream_options",
    "thinking": "Unknown parameter: 'thinking'.",
}


@pytest.mark.parametrize("field", REFUSALS)
async def test_a_refused_optional_field_is_left_out_once_and_for_the_process(fake, open_fake, field):
    """MO-19."""
    from msgspec.structs import replace

    from bowerbird.core.requests import Thinking

    request = replace(HELLO, temperature=0.2, thinking=Thinking(True))

    def answer(body, _number):
        if field in body:
            return {"status": 400, "body": {"error": {"message": REFUSALS[field], "param": field}}}
        return {"text": "fine"}

    fake.answer(answer)
    assert (await complete(open_fake("openai"), request)).message.text == "fine"
    assert fake.request_count == 2
    await complete(open_fake("openai"), request)  # another model of this process knows it
    assert fake.request_count == 3 and field not in fake.requests[-1]


@pytest.mark.parametrize("said", [
    "`reasoning_effort` must be one of `none` or `default`",
    "Model grok-4 does not support parameter reasoningEffort.",
    "reasoning_effort is not supported with this model",
])  # fmt: skip
async def test_an_effort_that_is_refused_is_left_out_however_that_is_said(fake, open_fake, said):
    from msgspec.structs import replace

    from bowerbird.core.requests import Thinking

    refused = {"status": 400, "body": {"error": {"message": said, "type": "invalid_request_error"}}}
    fake.answer(lambda body, _n: refused if "reasoning_effort" in body else {"text": "fine"})
    end = await complete(open_fake("openai"), replace(HELLO, thinking=Thinking(True, "max")))
    assert end.message.text == "fine" and fake.request_count == 2


async def test_a_server_without_streaming_is_asked_for_the_whole_answer(fake, open_fake):
    """MO-19."""
    refusal = {"error": {"message": "stream is not supported", "param": "stream"}}
    fake.answer(
        lambda body, _n: {"status": 400, "body": refusal} if body.get("stream") else {"text": "whole"}
    )
    assert (await complete(open_fake("openai"), HELLO)).message.text == "whole"
    assert "stream_options" not in fake.requests[-1]


async def test_other_bad_requests_are_not_asked_again(fake, open_fake):
    fake.script(
        {"status": 400, "body": {"error": {"message": "max_tokens is too large: 99", "param": "max_tokens"}}}
    )
    with pytest.raises(ModelError) as caught:
        await complete(open_fake("openai"), HELLO)
    assert fake.request_count == 1 and caught.value.kind == "bad_request"


@given(attempt=st.integers(0, 9), jitter_s=st.floats(0, 1), retries=st.integers(0, 8))
def test_delay_keeps_to_the_policy(attempt, jitter_s, retries):
    policy = RetryPolicy(retries)
    delay = next_delay(policy, OVERLOADED, attempt, jitter_s)
    assert (delay is None) == (attempt >= retries)
    assert delay is None or delay == min(1.0 * 2**attempt + jitter_s, 30.0)


def test_a_negative_number_of_retries_is_refused():
    with pytest.raises(InvalidArgument, match="LLM_MAX_RETRIES"):
        RetryPolicy(-1)
