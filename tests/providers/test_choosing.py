"""What settings make of the catalogue (PR-1, PR-3, PR-5)."""

from pathlib import Path

import pytest

from bowerbird.app.features.providers import with_main_model
from bowerbird.config import inspect_settings, load_settings
from bowerbird.config.keys import AGENT_NAMES, PROVIDER_VARIABLES
from bowerbird.config.sections.agent import ProviderEntry, ProvidersSection
from bowerbird.core.errors import ConfigError
from bowerbird.providers.catalogue import CATALOGUE
from bowerbird.providers.choosing import (
    max_cost_of,
    model_of,
    offered,
    program_words,
    settings_of,
    timeout_of,
)
from bowerbird.providers.contract.errors import AgentConfigError
from bowerbird.providers.contract.types import AgentRequest

TWELVE = "claude codex o1 deepseek qwen jules opencode gemini mistral_vibe every_code openclaw ollama".split()


def loaded(tmp_path: Path, text: str = "", **env: str) -> ProvidersSection:
    (tmp_path / "c.yaml").write_text(text)
    found = load_settings(env=env, cwd=tmp_path, home=tmp_path, config_path=str(tmp_path / "c.yaml"))
    return found.settings.providers


def test_the_names_are_those_of_the_chapter_and_settings_know_their_variables() -> None:
    """PR-1, PR-2."""
    assert [entry.name for entry in CATALOGUE.values() if entry.core] == TWELVE
    assert tuple(CATALOGUE) == AGENT_NAMES
    for entry in CATALOGUE.values():
        at = {entry.name, entry.shares}
        for variable in (*entry.key_variables, *entry.command_variables):
            assert PROVIDER_VARIABLES[variable][1] in at, variable
        if entry.base_url_variable:
            assert PROVIDER_VARIABLES[entry.base_url_variable][1] in at


def test_calls_win_over_the_environment_over_the_file(tmp_path: Path) -> None:
    """PR-5, CF-1."""
    text = "providers: {opencode: {command: /file/oc, timeout: 7, model: m1}}"
    providers = loaded(tmp_path, text, OPENCODE_COMMAND="/env/oc --quiet")
    entry, own = CATALOGUE["opencode"], settings_of(CATALOGUE["opencode"], providers)
    assert program_words(entry, own) == (("/env/oc", "--quiet"),)
    assert model_of(entry, own) == "m1" and timeout_of(entry, own, AgentRequest("x")) == 7
    call = AgentRequest("x", timeout=3, metadata={"model": "m2"})
    assert model_of(entry, own, call) == "m2" and timeout_of(entry, own, call) == 3
    assert [path.name for path in tmp_path.iterdir()] == ["c.yaml"]


def test_a_key_goes_to_the_address_that_it_was_set_for(tmp_path: Path) -> None:
    """PR-5, PR-22: another address of the agent's gets none of the vendor's key."""
    env = {"ANTHROPIC_API_KEY": "sk-1234567890", "ANTHROPIC_BASE_URL": "http://proxy"}
    shared = settings_of(CATALOGUE["claude"], loaded(tmp_path, **env))
    assert shared.api_key is not None and shared.base_url is not None
    other = settings_of(
        CATALOGUE["claude"], loaded(tmp_path, "providers: {claude: {base_url: 'http://other'}}", **env)
    )
    assert other.api_key is None and other.base_url is not None and other.base_url.reveal() == "http://other"


def test_a_limit_in_money_is_the_agents_own_or_that_of_all_and_a_call_only_lowers_it(tmp_path: Path) -> None:
    """PR-5, PR-22, law 8."""
    providers = loaded(tmp_path, "providers: {max_cost: 2, claude_code: {max_cost: 0.5}}")
    own, other = (settings_of(CATALOGUE[name], providers) for name in ("claude_code", "gemini"))
    assert (own.max_cost, other.max_cost) == (0.5, 2)
    asked = [max_cost_of(other, AgentRequest("x", max_cost=most)) for most in (None, 1, 9)]
    assert asked == [2, 1, 2]
    assert max_cost_of(settings_of(CATALOGUE["gemini"], loaded(tmp_path)), AgentRequest("x")) is None


def test_the_key_of_the_main_model_is_its_vendors_at_its_own_host(tmp_path: Path) -> None:
    """PR-5, PR-22: `provider.api_key` goes where the model's goes, and to no other vendor's agent."""
    text = "provider: {name: anthropic, api_key: sk-1234567890, base_url: 'http://gateway'}"
    file = tmp_path / "c.yaml"
    found = []
    for more in ("", "\nproviders: {claude: {base_url: 'http://other'}}"):
        file.write_text(text + more)
        settings = load_settings(env={}, cwd=tmp_path, home=tmp_path, config_path=str(file)).settings
        found.append(with_main_model(settings))
    for name in ("claude", "claude_code"):
        own = settings_of(CATALOGUE[name], found[0])
        assert own.api_key is not None and own.base_url is not None
        assert own.base_url.reveal() == "http://gateway"
    assert settings_of(CATALOGUE["codex"], found[0]).api_key is None
    assert settings_of(CATALOGUE["claude"], found[1]).api_key is None


def test_a_program_is_divided_like_a_shell_line_without_a_shell(tmp_path: Path) -> None:
    """PR-3."""
    entry = CATALOGUE["every_code"]
    assert program_words(entry, ProviderEntry()) == (("code",), ("coder",))
    both = loaded(tmp_path, EVERY_CODE_COMMAND="'/a b/code' -x", EVERY_CODE_ALT_COMMAND="c", CODE_HOME="/h")
    own = settings_of(entry, both)
    assert (
        program_words(entry, own) == (("/a b/code", "-x"), ("c",)) and own.env["CODE_HOME"].reveal() == "/h"
    )
    for bad in ("'open", "  "):
        with pytest.raises(AgentConfigError, match="EVERY_CODE_COMMAND"):
            program_words(entry, ProviderEntry(command=bad))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("providers: {gemni: {timeout: 3}}", "did you mean gemini?"),
        ("providers: {claude: {timout: 3}}", "timeout"),
        ("providers: {enabled: [claud]}", "did you mean claude?"),
    ],
)
def test_slips_are_refused_with_the_nearest_name(tmp_path: Path, text: str, said: str) -> None:
    """PR-5."""
    with pytest.raises(ConfigError, match=said.replace("?", r"\?")):
        loaded(tmp_path, text)


def test_settings_restrict_and_add(tmp_path: Path) -> None:
    """PR-1: an OpenAI-compatible server of one's own is an agent once it has a model."""
    lab = "mylab: {base_url: 'http://127.0.0.1:9/v1', model: m}"
    assert offered(loaded(tmp_path, f"providers: {{{lab}}}"))[-1].name == "mylab"
    chosen = offered(loaded(tmp_path, f"providers: {{{lab}, enabled: [o1, mylab, claude]}}"))
    assert [entry.name for entry in chosen] == ["claude", "o1", "mylab"]
    assert offered(loaded(tmp_path, "providers: {enabled: []}")) == ()


def test_no_key_is_in_a_dump_of_settings(tmp_path: Path) -> None:
    """PR-9."""
    key = "sk-Zq7Xw9Vt3Rk5Jh1GfQ8Yp"
    found = inspect_settings(
        env={"OPENAI_API_KEY": key, "DEEPSEEK_API_KEY": key}, cwd=tmp_path, home=tmp_path
    )
    text = repr(found.settings.providers) + repr(settings_of(CATALOGUE["codex"], found.settings.providers))
    assert "********" in text and key[3:7] not in text
