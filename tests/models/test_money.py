"""Prices, budgets and token estimates (MO-48 … MO-52, acceptance 7: the arithmetic, 10)."""

import asyncio
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.model_settings import HELLO

from bowerbird.core.errors import ConfigError
from bowerbird.core.messages import BlobSource, ImageBlock, Message, user_text
from bowerbird.core.requests import ModelRequest
from bowerbird.core.usage import Usage
from bowerbird.models import (
    BudgetRefusal,
    MemoryBudget,
    ModelOverride,
    Price,
    complete,
    estimate_request,
    is_priced,
    price,
)
from bowerbird.models.budget import LEAST_OUTPUT_TOKENS, Scope, fit, worst_cost

SONNET = "claude-sonnet-4-5-20250929"


async def test_cached_input_costs_the_hand_computed_price_and_spares_the_token_budget(fake, open_fake):
    """Acceptance 10: 90,000 of 100,000 input tokens cached, at 3 / 0.30 / 15 USD per million."""
    fake.script({"text": "x", "usage": {"input": 10_000, "cache_read": 90_000, "output": 500}})
    usage = (await complete(open_fake(f"anthropic:{SONNET}"), HELLO)).usage
    assert usage.cost == pytest.approx(10_000 * 3e-6 + 90_000 * 0.3e-6 + 500 * 15e-6)
    assert usage.budget_tokens == 10_000 + 500
    fake.script({"text": "x", "usage": {"input": 1_000, "cache_write": 2_000, "output": 100}})
    usage = (await complete(open_fake(f"anthropic:{SONNET}"), HELLO)).usage
    assert usage.cost == pytest.approx(1_000 * 3e-6 + 2_000 * 3.75e-6 + 100 * 15e-6)


async def test_the_openai_wire_prices_its_cached_part_too(fake, open_fake):
    fake.script({"text": "x", "usage": {"input": 10_000, "cache_read": 90_000, "output": 500}})
    usage = (await complete(open_fake("openai:gpt-4o"), HELLO)).usage
    assert usage.cost == pytest.approx(10_000 * 2.5e-6 + 90_000 * 1.25e-6 + 500 * 10e-6)


@pytest.mark.parametrize(
    ("provider", "model"),
    [("anthropic", "no-such-model"), ("ollama", "gpt-4o"), ("openai-compatible", "gpt-4o"), ("mine", "m")],
)
def test_an_unknown_model_has_no_price_and_never_anothers(provider, model):
    """MO-48."""
    assert price(Usage(input_tokens=5), provider, model) is None and not is_priced(provider, model)


def test_the_embedded_model_costs_nothing():
    assert price(Usage(input_tokens=5), "local", "default") == 0.0


def test_settings_override_the_package():
    """MO-48."""
    by_hand = {f"anthropic:{SONNET}": ModelOverride(price=Price(1.0, 2.0, 0.1))}
    usage = Usage(input_tokens=1_000_000, output_tokens=1_000_000, cache_read_tokens=1_000_000)
    assert price(usage, "anthropic", SONNET, overrides=by_hand) == pytest.approx(3.1)


def test_prices_follow_the_date():
    """MO-48: DeepSeek's price changed; the call's own date counts."""
    usage = Usage(input_tokens=1_000_000)
    old = price(usage, "openai", "o3", datetime(2025, 5, 1, tzinfo=UTC))
    new = price(usage, "openai", "o3", datetime(2025, 8, 1, tzinfo=UTC))
    assert old is not None and new is not None and old > new


# ---------------------------------------------------------------- budgets


def penny(usage: Usage) -> float:
    """One cent per thousand tokens of any kind."""
    return (usage.context_tokens + usage.output_tokens) / 100_000


async def test_eight_parallel_calls_never_settle_above_the_limit():
    """Acceptance 7: what is reserved counts before it is settled."""
    budget = MemoryBudget({"session": ("usd", 1.0)}, penny)
    gate = asyncio.Event()

    async def child() -> str:
        reservation = await budget.reserve(Usage(input_tokens=10_000), 20_000)
        if isinstance(reservation, BudgetRefusal):
            return "refused"
        await gate.wait()
        usage = Usage(input_tokens=10_000, output_tokens=reservation.max_tokens)
        await budget.settle(reservation.id, usage)
        return "settled"

    children = [asyncio.create_task(child()) for _ in range(8)]
    await asyncio.sleep(0)
    gate.set()
    outcomes = await asyncio.gather(*children)
    (scope,) = budget.scopes
    assert "refused" in outcomes and "settled" in outcomes
    assert scope.spent <= 1.0 and scope.held == 0


async def test_raising_a_limit_lets_the_turn_go_on():
    """MO-50."""
    budget = MemoryBudget({"turn": ("usd", 0.1)}, penny)
    refusal = await budget.reserve(Usage(input_tokens=50_000), 5_000)
    assert isinstance(refusal, BudgetRefusal) and (refusal.scope, refusal.limit) == ("turn", 0.1)
    assert refusal.needed > 0.5
    budget.raise_limit("turn", 1.0)
    assert not isinstance(await budget.reserve(Usage(input_tokens=50_000), 5_000), BudgetRefusal)


async def test_a_warning_comes_once_at_eighty_per_cent():
    """MO-50."""
    warnings = []
    budget = MemoryBudget({"turn": ("tokens", 1_000)}, penny, on_warning=warnings.append)
    for used in (700, 99, 2, 50):
        held = await budget.reserve(Usage(), 10)
        await budget.settle(held.id, Usage(input_tokens=used))
        await budget.settle(held.id, Usage(input_tokens=used))  # a second time changes nothing
    assert [(w.scope, w.spent) for w in warnings] == [("turn", 801)]


def test_max_tokens_is_lowered_to_what_fits_but_not_under_1024():
    """MO-50."""
    scopes = [Scope("turn", "tokens", 10_000)]
    assert fit(scopes, Usage(input_tokens=5_000), 16_384, penny).max_tokens == 5_000
    assert isinstance(fit(scopes, Usage(input_tokens=9_000), 16_384, penny), BudgetRefusal)
    assert fit(scopes, Usage(input_tokens=8_000, cache_read_tokens=99_999), 16_384, penny).max_tokens == 2_000
    money = [Scope("turn", "usd", 0.1)]
    assert fit(money, Usage(input_tokens=5_000), 16_384, penny).max_tokens == 5_000
    assert isinstance(fit(money, Usage(input_tokens=9_000), 16_384, penny), BudgetRefusal)
    assert fit([], Usage(), 100, penny).max_tokens == 100


def test_an_unknown_price_is_refused_under_a_money_limit():
    """MO-52."""
    money = [Scope("turn", "usd", 1.0)]
    with pytest.raises(ConfigError, match="allow_unpriced"):
        fit(money, Usage(), 100, lambda _usage: None)
    assert fit(money, Usage(), 100, lambda _usage: None, allow_unpriced=True).usd is None
    assert fit([Scope("turn", "tokens", 9_000)], Usage(), 100, lambda _usage: None).max_tokens == 100


@given(
    limit=st.floats(0.001, 5),
    spent=st.floats(0, 5),
    counted=st.integers(0, 100_000),
    wanted=st.integers(1, 50_000),
)
def test_what_is_granted_fits_and_what_is_refused_does_not(limit, spent, counted, wanted):
    scope, expected = Scope("s", "usd", limit, spent), Usage(input_tokens=counted)
    decided = fit([scope], expected, wanted, penny)
    least = min(wanted, LEAST_OUTPUT_TOKENS)
    if isinstance(decided, BudgetRefusal):
        assert worst_cost(expected, least, penny) > scope.free
    else:
        assert least <= decided.max_tokens <= wanted and decided.usd <= scope.free


def test_estimates_count_everything_that_is_sent():
    small = estimate_request(HELLO)
    image = Message("user", (ImageBlock("image/png", BlobSource("sha256:x")),))
    assert estimate_request(ModelRequest((user_text("hello" * 300),))) >= small + 300
    assert estimate_request(ModelRequest((*HELLO.messages, image))) > small + 1_000
