"""Models to choose from, and names that are nearly one (UI-75)."""

import pytest

from bowerbird.core.errors import ConfigError
from bowerbird.models import open_model
from bowerbird.models.offered import doubt_about, offered_models
from bowerbird.models.settings import ModelOverride, ModelSettings, Price, ProviderSettings

WITH_KEY = ModelSettings(providers={"anthropic": ProviderSettings(api_key="k")})


def test_only_what_can_be_used_is_offered_with_price_and_window() -> None:
    """UI-75: the configured one first, then those of providers whose key is set."""
    found = offered_models(WITH_KEY)
    assert found[0].configured and found[0].name.startswith("anthropic:claude-")
    assert {model.name.split(":")[0] for model in found} == {"anthropic"}
    assert len(found) > 5 and len({model.name for model in found}) == len(found)
    sonnet = next(model for model in found if model.name == "anthropic:claude-sonnet-4-5")
    assert (sonnet.input_usd, sonnet.output_usd, sonnet.window) == (3.0, 15.0, 200_000)


def test_without_a_key_nothing_of_a_provider_is_offered() -> None:
    assert offered_models(ModelSettings()) == []


def test_a_server_of_ones_own_offers_what_settings_name_alone() -> None:
    """Its models are nobody else's: a table of a vendor says nothing about them."""
    settings = ModelSettings(
        provider="openai",
        model="mine",
        providers={"openai": ProviderSettings(api_key="k", base_url="http://127.0.0.1:1/v1")},
        overrides={"openai:other": ModelOverride(price=Price(1.0, 2.0))},
    )
    found = {model.name: (model.input_usd, model.output_usd) for model in offered_models(settings)}
    assert found == {"openai:mine": (None, None), "openai:other": (1.0, 2.0)}
    assert doubt_about("openai:gpt-4p", settings) is None


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("gpt-4o", "openai:gpt-4o"),
        ("anthropic:gpt-4o", "openai:gpt-4o"),
        ("claud-sonnet-4-5", "anthropic:claude-sonnet-4-5"),
        ("anthropic:claud-sonnet-4-5", "anthropic:claude-sonnet-4-5"),
    ],
)
def test_a_slip_is_asked_about_with_the_nearest_name(said: str, meant: str) -> None:
    """UI-75: `-m gpt-4o` silently became `anthropic:gpt-4o`."""
    doubt = doubt_about(said, WITH_KEY)
    assert doubt is not None and f"did you mean {meant}?" in doubt


@pytest.mark.parametrize("kind", ["sonnet", "Opus", "anthropic:haiku"])
def test_a_kind_alone_is_asked_about_with_its_newest(kind: str) -> None:
    """As another agent calls its models; here the provider refused it at the first call."""
    doubt = doubt_about(kind, WITH_KEY)
    assert doubt is not None
    assert f"did you mean anthropic:claude-{kind.rpartition(':')[2].lower()}-" in doubt


@pytest.mark.parametrize(
    "name", ["claude-sonnet-4-5", "claude-sonnet-4-5-20250929", "ollama:gpt-4o", "anthropic:x1"]
)
def test_a_known_name_and_one_that_is_near_none_are_used(name: str) -> None:
    """A model that came out yesterday is in no table yet."""
    assert doubt_about(name, WITH_KEY) is None


def test_a_name_that_settings_hold_is_used_as_it_stands() -> None:
    settings = ModelSettings(overrides={"anthropic:claud-sonnet-4-5": ModelOverride()})
    assert doubt_about("claud-sonnet-4-5", settings) is None


def test_an_unknown_provider_is_said() -> None:
    with pytest.raises(ConfigError, match="no provider is called 'nope'"):
        doubt_about("nope:x", WITH_KEY)


@pytest.mark.parametrize(
    ("model", "wanted", "window"),
    [
        ("anthropic:claude-sonnet-5-5", 1_000_000, 1_000_000),
        ("anthropic:claude-sonnet-5-5", 200_000, 200_000),
        ("anthropic:claude-sonnet-4-5", 1_000_000, 200_000),
        ("openai:gpt-6-sol", None, 1_050_000),
        ("mistral:ministral-3b-2512", None, 131_072),
        ("mistral:nobody-knows-it", 300_000, 300_000),
    ],
)
def test_a_window_is_what_the_table_of_prices_knows_and_never_more_than_is_wanted(
    model: str, wanted: int | None, window: int
) -> None:
    assert open_model(model, ModelSettings(context_window=wanted)).info.context_window == window
