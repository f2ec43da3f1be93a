"""Tiers (MO-41 … MO-46, acceptance 6: the router's part)."""

import pytest
from support.model_settings import HELLO, KEY, QUICK

from bowerbird.core.errors import ConfigError
from bowerbird.core.requests import ToolSpec
from bowerbird.models import (
    ModelSettings,
    ProviderSettings,
    RouterSettings,
    TierSettings,
    UnknownTier,
    complete,
    open_router,
)


def settings(fake, tiers=None, default="standard", **changes):
    known = tiers or {
        "standard": TierSettings("anthropic", "small"),
        "expert": TierSettings("openai", "large", temperature=0.1, max_tokens=77),
        "advanced": TierSettings("openai", "medium"),
    }
    return ModelSettings(
        providers={
            "anthropic": ProviderSettings(KEY, fake.anthropic_url),
            "openai": ProviderSettings(KEY, fake.openai_url),
        },
        router=RouterSettings(True, default, known),
        retry=QUICK,
        **changes,
    )


@pytest.fixture
async def router(fake):
    opened = open_router(settings(fake))
    yield opened
    await opened.aclose()


async def test_the_request_after_a_switch_goes_to_the_new_tier_and_a_new_turn_to_the_default(fake, router):
    """MO-43."""
    await complete(router, HELLO)
    turn = router.switch("expert")
    await complete(turn, HELLO)
    await complete(router, HELLO)
    assert [body["model"] for body in fake.requests] == ["small", "large", "small"]
    assert (router.active, turn.active) == ("standard", "expert")
    assert (router.info.name, turn.info.name) == ("anthropic:small", "openai:large")


async def test_every_tier_gets_the_same_tools_and_its_own_limits(fake, router):
    """MO-42."""
    from msgspec.structs import replace

    fake.without.add("no temperature")
    request = replace(HELLO, tools=(ToolSpec("f", "d", {"type": "object"}),), temperature=0.9)
    await complete(router, request)
    await complete(router.switch("expert"), request)
    first, second = fake.requests
    assert first["tools"][0]["name"] == second["tools"][0]["function"]["name"] == "f"
    assert (first["temperature"], first["max_tokens"]) == (0.9, 500)
    assert (second["temperature"], second["max_completion_tokens"]) == (0.1, 77)


def test_an_unknown_tier_lists_the_available_ones_sorted_and_changes_nothing(router):
    """MO-44."""
    with pytest.raises(
        UnknownTier, match=r"unknown tier 'best'\. Available tiers: advanced, expert, standard$"
    ):
        router.switch("best")
    with pytest.raises(UnknownTier):
        router.check("best")
    assert router.active == "standard"
    assert router.describe("expert") == "expert (openai:large)"


@pytest.mark.parametrize(
    ("tiers", "default", "said"),
    [
        ({}, "standard", "tiers is empty"),
        ({"lite": TierSettings("openai", "m")}, " ", "default_tier is blank"),
        (
            {"lite": TierSettings("openai", "m")},
            "standard",
            "'standard', not a tier; use one of: lite",
        ),
        ({"standard": TierSettings("nonsense", "m")}, "standard", "the default tier, cannot be built"),
    ],
)
def test_a_router_that_cannot_work_is_refused(fake, tiers, default, said):
    """MO-41."""
    with pytest.raises(ConfigError, match=said):
        open_router(
            settings(fake, tiers or {}, default)
            if tiers
            else ModelSettings(router=RouterSettings(True, default))
        )


async def test_a_tier_that_cannot_be_built_is_disabled_and_says_why(fake):
    """MO-41."""
    tiers = {
        "standard": TierSettings("anthropic", "m"),
        "lite": TierSettings("groq", "m"),
        "expert": TierSettings("nonsense", "m"),
    }
    router = open_router(settings(fake, tiers))
    assert router.tiers == ("standard",) and set(router.unavailable) == {"lite", "expert"}
    assert "GROQ_API_KEY" in router.unavailable["lite"]
    with pytest.raises(UnknownTier, match="tier 'expert' is disabled: no provider is called 'nonsense'"):
        router.switch("expert")
    await router.aclose()


async def test_a_tier_with_its_own_address_uses_its_own_key_only(fake):
    """CF-49: the provider's key does not go to another host."""
    tiers = {
        "standard": TierSettings("openai", "m", base_url=fake.openai_url),
        "expert": TierSettings("openai", "m", base_url=fake.openai_url, api_key="sk-tier-0123456789abcdef"),
    }
    providers = {"openai": ProviderSettings(KEY, "http://127.0.0.1:9/v1")}
    router = open_router(ModelSettings(providers=providers, router=RouterSettings(True, "standard", tiers)))
    await complete(router, HELLO)
    await complete(router.switch("expert"), HELLO)
    assert "authorization" not in fake.headers[0]
    assert fake.headers[1]["authorization"] == "Bearer sk-tier-0123456789abcdef"
    await router.aclose()
