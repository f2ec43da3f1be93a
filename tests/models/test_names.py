"""Names of models (MO-16, acceptance 11) and what opening one by name gives."""

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.patience import patience

from bowerbird.core.errors import ConfigError, NoModel
from bowerbird.core.model_presets import PRESETS
from bowerbird.models import (
    ModelPool,
    ModelSettings,
    ProviderSettings,
    open_model,
    parse_model_name,
    resolve_name,
)


@pytest.mark.parametrize(
    ("text", "default", "name"),
    [
        ("ollama:qwen2:7b", "anthropic", "ollama:qwen2:7b"),
        ("openai/gpt-x", "anthropic", "openai:gpt-x"),
        ("claude-x", "anthropic", "anthropic:claude-x"),
        ("gpt-x", "openai", "openai:gpt-x"),
        ("OpenAI:gpt-x", "anthropic", "openai:gpt-x"),
        ("openrouter:anthropic/claude-x:beta", "anthropic", "openrouter:anthropic/claude-x:beta"),
        ("meta-llama/Llama-3", "vllm", "vllm:meta-llama/Llama-3"),
        ("deepseek/deepseek-r1:free", "openrouter", "deepseek:deepseek-r1:free"),
        ("qwen2:7b", "ollama", "ollama:qwen2:7b"),
        ("local:/models/a b.gguf", "anthropic", "local:/models/a b.gguf"),
        ("local:default", "anthropic", "local:default"),
        ("  claude-x ", "anthropic", "anthropic:claude-x"),
    ],
)
def test_names_resolve(text, default, name):
    assert str(parse_model_name(text, default)) == name


def test_an_unknown_prefix_fails_at_configuration_listing_the_prefixes():
    with pytest.raises(ConfigError) as caught:
        open_model("nonsense:x", ModelSettings())
    assert "'nonsense'" in str(caught.value) and all(prefix in str(caught.value) for prefix in PRESETS)
    assert set(PRESETS) == set(
        "anthropic openai local ollama vllm openrouter google-genai groq deepseek mistral lmstudio "
        "openai-compatible".split()
    )


def test_a_slip_in_the_prefix_is_told_with_the_nearest():
    """The twelve known ones were listed, and the eye had to find the slip."""
    with pytest.raises(ConfigError, match=r"did you mean anthropic:claude-sonnet-4-5\?"):
        open_model("antropic:claude-sonnet-4-5", ModelSettings())


@pytest.mark.parametrize("text", ["openai:", "openai/ ", "anthropic:  "])
def test_a_prefix_alone_names_no_model(text):
    with pytest.raises(ConfigError, match="names no model"):
        parse_model_name(text)


def test_a_provider_of_ones_own_needs_a_base_url():
    """CF-15."""
    with pytest.raises(ConfigError, match="LLM_PROVIDER"):
        resolve_name("m", ModelSettings(provider="mine"))
    settings = ModelSettings(
        provider="mine", providers={"mine": ProviderSettings(base_url="http://127.0.0.1:9/v1")}
    )
    assert str(resolve_name("mine:m", settings)) == str(resolve_name("m", settings)) == "mine:m"
    assert open_model("m", settings).info.name == "mine:m"


@pytest.mark.parametrize("provider", ["vllm", "openai-compatible"])
def test_a_base_url_is_required_where_there_is_no_default(provider):
    with pytest.raises(ConfigError, match=f"set providers.{provider}.base_url"):
        open_model(f"{provider}:m", ModelSettings())


def test_without_any_model_the_error_says_how_to_name_one():
    with pytest.raises(NoModel, match="MODEL=provider:model"):
        open_model(None, ModelSettings(model=""))


def test_presets_know_their_addresses():
    assert PRESETS["ollama"].base_url == "http://127.0.0.1:11434" and not PRESETS["ollama"].key_needed


async def test_a_pool_opens_a_model_once_and_closes_it():
    pool = ModelPool(ModelSettings())
    assert pool.get("openai:m") is pool.get("openai/m") and pool.router is None
    await pool.aclose()
    await pool.aclose()


@given(st.sampled_from(sorted(PRESETS)), st.text(min_size=1).filter(lambda t: t.strip()))
def test_a_joined_name_divides_into_the_same_parts(provider, model):
    name = parse_model_name(f"{provider}:{model}")
    assert (name.provider, name.model) == (provider, model.strip())
    assert parse_model_name(str(name)) == name


def test_opening_models_imports_no_http_library_and_asking_them_no_sdk(fake):
    """D-14: the vendors' SDKs are no part of the running program."""
    code = (
        "import sys, bowerbird.models as m; m.open_model('openai:x', m.ModelSettings()); "
        "m.open_model('claude-x', m.ModelSettings()); "
        "heavy = {'aiohttp', 'genai_prices', 'opentelemetry', 'xllamacpp'}; "
        "sdks = {'anthropic', 'openai', 'httpx'}; "
        "print(sorted((heavy | sdks) & set(sys.modules))); "
        "import asyncio, bowerbird.core.requests as r; from bowerbird.core.messages import user_text; "
        "p = {w: m.ProviderSettings('sk-x', u) for w, u in zip(('anthropic', 'openai'), sys.argv[1:])}; "
        "ask = lambda n: m.complete(m.open_model(n, m.ModelSettings(providers=p)), "
        "r.ModelRequest((user_text('hi'),))); "
        "print(*(asyncio.run(ask(n)).message.text for n in ('openai:x', 'claude-x'))); "
        "print(sorted(sdks & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, fake.anthropic_url, fake.openai_url],
        capture_output=True,
        text=True,
        check=True,
        timeout=patience(24),
    )
    assert done.stdout.split("\n")[:3] == ["[]", "ok ok", "[]"]


def test_every_public_name_exists():
    import bowerbird.models as package

    for name in package.__all__:
        assert getattr(package, name) is not None
    assert not hasattr(package, "nothing")


def test_a_bare_name_of_another_vendor_is_refused_with_the_name_that_was_meant():
    """UI-75: an unknown name suggests the nearest; it became `anthropic:gpt-4o`, and failed at the first call."""
    for name, provider, meant in (
        ("gpt-4o", "anthropic", "openai:gpt-4o"),
        ("o3-mini", "anthropic", "openai:o3-mini"),
        ("claude-sonnet-4-5", "openai", "anthropic:claude-sonnet-4-5"),
        ("gemini-3-pro", "openai", "google-genai:gemini-3-pro"),
    ):
        with pytest.raises(ConfigError, match=f"did you mean {meant}"):
            resolve_name(name, ModelSettings(provider=provider))
    proxy = {"openai": ProviderSettings("sk-x", "http://10.0.0.7:4000/v1")}
    assert (
        str(resolve_name("claude-x", ModelSettings(provider="openai", providers=proxy))) == "openai:claude-x"
    )
    assert str(resolve_name("gpt-4o", ModelSettings(provider="openrouter"))) == "openrouter:gpt-4o"
    assert str(resolve_name("o-mini", ModelSettings())) == "anthropic:o-mini"
