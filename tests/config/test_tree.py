"""CF-15 … CF-76: names, defaults and ranges of keys are exactly those of the tables."""

import pickle
import subprocess
import sys

import pytest
from pydantic import ValidationError

from bowerbird.config import AppConfig, Secret, Settings, Url
from bowerbird.config.keys import find, walk

# variable, default, key, another value, a wrong value: CF-15 … CF-48
TABLE = [
    ("LLM_PROVIDER", "anthropic", "provider.name", "openai", "nonsense"),
    ("ANTHROPIC_API_KEY", None, "providers.anthropic.api_key", "sk-1", None),
    ("ANTHROPIC_BASE_URL", None, "providers.anthropic.base_url", "http://127.0.0.1:9", "ftp://x"),
    ("OPENAI_API_KEY", None, "providers.openai.api_key", "sk-2", None),
    ("OPENAI_BASE_URL", None, "providers.openai.base_url", "https://h/v1", "h/v1"),
    ("MODEL", "claude-sonnet-5", "provider.model", "m", " "),
    ("SUBAGENT_MODEL", None, "agent.subagent_model", "m", None),
    ("TEAMMATE_MODEL", None, "agent.teammate_model", "m", None),
    ("COMPACT_MODEL", None, "agent.compact_model", "m", None),
    ("THINKING_ENABLED", None, "agent.thinking_enabled", "on", "maybe"),
    ("THINKING_EFFORT", "high", "agent.thinking_effort", "max", "low"),
    ("MAX_TURNS", 200, "agent.max_turns", "7", "0"),
    ("MAX_TOKEN_BUDGET", 200_000, "agent.max_token_budget", "0", "999"),
    ("MAX_OUTPUT_TOKENS", 16_384, "agent.max_output_tokens", "1", "1000001"),
    ("CONTEXT_WINDOW", 200_000, "agent.context_window", "4096", "4095"),
    ("COMPACT_THRESHOLD", 0.7, "agent.compact_threshold", "0.95", "0.96"),
    ("LLM_MAX_RETRIES", 3, "agent.llm_max_retries", "0", "21"),
    ("LLM_RETRY_BASE_DELAY", 1.0, "agent.llm_retry_base_delay", "2.5", "61"),
    ("LLM_RETRY_MAX_DELAY", 30.0, "agent.llm_retry_max_delay", "600", "0.5"),
    ("SKILLS_DIR", "skills", "skills.directory", "my-skills", None),
    ("PROMPTS_DIR", "prompts", "agent.prompts_dir", "/p", None),
    ("WORKSPACE_DIR", "workspace", "agent.workspace", "/w", None),
    ("WORKSPACE_CLEANUP_DELAY", 300, "workspace.cleanup_delay", "0", "604801"),
    ("BASH_TIMEOUT", 120, "tools.bash_timeout", "86400", "0"),
    ("BACKGROUND_TIMEOUT", 300, "tools.background_timeout", "1", "604801"),
    ("ALLOWED_COMMANDS", (), "tools.allowed_commands", '["ls"]', '["ls"'),
    ("MAX_TEAMMATES", 5, "agent.max_teammates", "0", "101"),
    ("ENABLE_MEMORY", True, "memory.enabled", "no", "2"),
    ("DATABASE_URL", "sqlite+aiosqlite:///./agent.db", "store.url", "postgresql://h/x", "mysql://h/x"),
    ("TEMPERATURE", None, "agent.temperature", "2", "2.1"),
    ("SUBAGENT_TEMPERATURE", None, "agent.subagent_temperature", "0", "-1"),
    ("TEAMMATE_TEMPERATURE", None, "agent.teammate_temperature", "0", "nan"),
    ("COMPACT_TEMPERATURE", None, "agent.compact_temperature", "0", "x"),
    ("DEFAULT_PRESET", "coding", "agent.preset", "work", None),
    ("MCP_SERVERS_FILE", "mcp_servers.json", "mcp.file", "/m.json", None),
    ("GOOGLE_CLIENT_ID", None, "server.google_client_id", "id", None),
]


def value_of(settings, key):
    value = settings
    for name in key.split("."):
        value = value.get(name) if name in ("anthropic", "openai") else getattr(value, name)
    return value.reveal() if isinstance(value, Secret | Url) else value


@pytest.mark.parametrize(("variable", "default", "key", "other", "wrong"), TABLE, ids=[r[0] for r in TABLE])
def test_each_variable_of_section_2_sets_its_key(place, errors, variable, default, key, other, wrong):
    assert value_of(Settings(), key) == default
    loaded = place.load(env={variable: other})
    assert value_of(loaded.settings, key) != default
    assert str(loaded.origin(key)).startswith(variable)
    if wrong is not None:
        (problem,) = errors(env={variable: wrong})
        assert problem.startswith(f"{key}: ") and variable in problem


def test_the_newer_of_two_short_names_wins(place):
    """PR-1."""
    env = {"QWEN_API_KEY": "old", "DASHSCOPE_API_KEY": "new"}
    assert value_of(place.load(env=env).settings.providers.get("qwen"), "api_key") == "new"


def test_effort_has_a_second_name(place):
    """CF-25."""
    assert place.load(env={"THINKING_EFFORT": "xhigh"}).settings.agent.thinking_effort == "max"
    assert place.load("cli: {thinking_effort: xhigh}").settings.cli.thinking_effort == "max"


def test_sections_have_the_keys_of_the_tables():
    """CF-51 … CF-91; further keys are ours."""
    keys = {info.name for info in walk()}
    expected = """
        agent.workspace agent.data_dir provider.name provider.model provider.api_key provider.temperature
        provider.max_tokens provider.base_url model_router.enabled model_router.default_tier
        model_router.tiers.*.name skills.enabled skills.directory web.brave_api_key web.fetch_timeout
        web.allow_hosts logging.level logging.format server.host server.port server.root_path server.auth
        server.oidc_issuer server.insecure server.origins server.hosts server.allowed_emails
        server.allowed_domains server.metrics_token server.max_rss_mb server.on_disconnect store.url
        store.durability store.busy_timeout_s store.min_free_mb store.adopt dispatch.kind dispatch.lease_s
        dispatch.heartbeat_s workspace.landing workspace.cleanup workspace.registered.* workspace.hide
        workspace.write_mb workspace.edit_mb workspace.changed_bytes workspace.changed_paths workspace.depth
        landing.flag landing.unflag landing.ignore sandbox.tier sandbox.minimum sandbox.network.mode
        sandbox.network.allow sandbox.network.max_bytes sandbox.memory_bytes sandbox.pids
        sandbox.cpu_seconds sandbox.disk_bytes sandbox.disk_files sandbox.max_timeout sandbox.toolchains
        sandbox.read_only sandbox.env.* sandbox.env_secrets sandbox.copy.max_files sandbox.copy.max_bytes
        approval.default approval.timeout_s approval.expiry_days approval.rules budgets.session_usd
        budgets.user_day_usd budgets.schedule_day_usd budgets.deployment_day_usd limits.parallel_turns
        limits.queue_per_session limits.queue_total limits.message_mb limits.upload_mb
        retention.sessions_days retention.deleted_days retention.traces_days retention.detail_days
        turn.max_attempts inbox.dedupe_days outbox.max_age_h resume.external shutdown.grace_s memory.idle_s
        memory.protected journal.inline_max_kb cli.preset cli.model cli.approval cli.vi_mode cli.theme
        cli.thinking_enabled cli.thinking_effort cli.timeout delegation.tasks_per_call delegation.parallel
        delegation.per_turn delegation.unmerged delegation.child_s teams.wake_lead providers.enabled
        providers.*.command providers.*.args providers.*.env.* providers.*.model providers.*.base_url
        providers.*.api_key_env providers.*.timeout providers.*.idle_timeout providers.*.max_output_bytes
        providers.*.permission_mode providers.*.auth providers.*.transport providers.*.allow_remote
        telemetry.otlp_endpoint telemetry.content
    """.split()
    assert set(expected) - keys == set()


@pytest.mark.parametrize(
    ("key", "default"),
    [
        ("mcp_servers.*.mode", "client"), ("mcp_servers.*.enabled", True), ("web.fetch_timeout", 30),
        ("server.host", "127.0.0.1"), ("server.port", 8000), ("server.auth", "none"),
        ("store.durability", "full"), ("store.busy_timeout_s", 30), ("store.min_free_mb", 256),
        ("dispatch.lease_s", 15), ("dispatch.heartbeat_s", 5), ("workspace.landing", "review"),
        ("workspace.cleanup", "release"), ("workspace.changed_bytes", 4 << 30), ("workspace.depth", 256),
        ("sandbox.minimum", "copy"), ("sandbox.network.mode", "closed"),
        ("sandbox.network.max_bytes", 1 << 30),
        ("sandbox.pids", 4096), ("sandbox.max_timeout", 3600), ("sandbox.copy.max_files", 200_000),
        ("approval.default", "outside"), ("approval.timeout_s", 300), ("approval.expiry_days", 7),
        ("limits.parallel_turns", 64), ("limits.queue_total", 10_000), ("retention.detail_days", 90),
        ("turn.max_attempts", 3), ("inbox.dedupe_days", 30), ("outbox.max_age_h", 24),
        ("resume.external", "tell"), ("shutdown.grace_s", 10), ("memory.idle_s", 300),
        ("journal.inline_max_kb", 256), ("cli.timeout", 1800), ("delegation.unmerged", 64),
        ("telemetry.content", False), ("server.max_rss_mb", 0), ("logging.level", "INFO"),
    ],
)  # fmt: skip
def test_defaults_of_sections(key, default):
    info = find(tuple(key.split(".")))
    assert info is not None and info.default == default


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("model_router: {enabled: true}", "model_router.tiers"),
        (
            "model_router: {enabled: true, tiers: {lite: {name: openai, model: m}}}",
            "model_router.default_tier",
        ),
        ("model_router: {tiers: {lite: {model: m}}}", "model_router.tiers.lite.name"),
        ("provider: {model: ' '}", "provider.model"),
        ("web: {fetch_timeout: 601}", "web.fetch_timeout"),
        (
            "mcp_servers: {a: {url: 'http://h', headers: {Authorization: x}, authorization_token: y}}",
            "mcp_servers.a.authorization_token",
        ),
        ("mcp_servers: {a: {}}", "mcp_servers.a"),
        ("mcp_servers: {a: {command: x, url: 'http://h'}}", "mcp_servers.a"),
        ("mcp_servers: {'a b': {command: x}}", "mcp_servers.a b"),
        ("dispatch: {heartbeat_s: 6}", "dispatch.heartbeat_s"),
        ("dispatch: {kind: dbos}", "dispatch.kind"),
        ("sandbox: {env: {MY_TOKEN: x}}", "sandbox.env.MY_TOKEN"),
        ("sandbox: {read_only: [rel]}", "sandbox.read_only"),
        ("sandbox: {minimum: none}", "sandbox.minimum"),
        ("agent: {data_dir: workspace/d}", "agent.data_dir"),
        ("agent: {llm_retry_base_delay: 40}", "agent.llm_retry_max_delay"),
        ("server: {host: 0.0.0.0}", "server.host"),
        ("server: {auth: oidc}", "server.google_client_id"),
        ("logging: {level: loud}", "logging.level"),
        ("agent: {temperature: true}", "agent.temperature"),
        ("agent: [1]", "agent"),
        ("agent: {max_turns: {a: 1}}", "agent.max_turns"),
        ("web: {fetch_timeout: .inf}", "web.fetch_timeout"),
    ],
)
def test_what_must_hold_between_keys(errors, text, key):
    found = errors(text)
    assert len(found) == 1, found
    assert found[0].startswith(f"{key}: ") and "config.yaml:1" in found[0]


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("mcp_servers: {a: {transport: sse, url: 'http://h'}}", "sse is old"),
        ("provider: {name: openai}", "set MODEL"),
    ],
)
def test_what_is_only_said(place, text, part):
    assert any(part in warning for warning in place.load(text).warnings)


def test_forms_of_values(place):
    settings = place.load(
        "sandbox: {memory_bytes: 2 GiB, env: {A: b}}\nlogging: {level: debug}\n"
        "approval: {rules: ['deny bash(rm *)', {tool: think, decision: allow}]}\n"
        "mcp_servers: {a: {type: http, url: 'http://h', approval: {x: deny}}}"
    ).settings
    assert settings.sandbox.memory_bytes == 2 << 30
    assert settings.logging.level == "DEBUG"
    assert [(r.decision, r.tool) for r in settings.approval.rules] == [
        ("deny", "bash(rm *)"),
        ("allow", "think"),
    ]
    assert settings.mcp_servers["a"].transport == "http"
    assert settings.mcp_servers["a"].approval == {"x": "deny"}


def test_secrets_are_shown_nowhere():
    """CF-79."""
    settings = Settings.model_validate(
        {
            "providers": {"x": {"api_key": "planted", "headers": {"A": "planted"}}},
            "store": {"url": "postgresql://ann:planted@db/x"},
            "mcp_servers": {"a": {"command": "x", "env": {"B": "planted"}}},
        }
    )
    for text in (
        repr(settings),
        str(settings),
        settings.model_dump_json(),
        str(settings.model_dump(mode="json")),
    ):
        assert "planted" not in text
    assert "ann:********@db/x" in str(settings.store.url)
    assert settings.secrets() == {"planted"}
    with pytest.raises(TypeError, match="not written to disk"):
        pickle.dumps(settings.providers.get("x").api_key)


def test_one_word_may_stand_for_a_list_where_it_is_a_choice(place, errors):
    """GI-14: `auto`, `off`, or a list; `none` is what earlier versions called off."""
    for word in ("auto", "off", "none"):
        assert place.load(f"sandbox: {{toolchains: {word}}}").settings.sandbox.toolchains == (word,)
    assert place.load("sandbox: {toolchains: [nvm, go]}").settings.sandbox.toolchains == ("nvm", "go")
    (problem,) = errors("sandbox: {toolchains: sometimes}")
    assert "must be a list (auto, off, or" in problem


def test_the_tree_is_frozen_and_reads_no_environment(monkeypatch):
    monkeypatch.setenv("MAX_TURNS", "3")
    assert AppConfig is Settings
    assert Settings().agent.max_turns == 200
    with pytest.raises(ValidationError):
        Settings().agent.max_turns = 1
    with pytest.raises(ValidationError):
        Settings.model_validate({"agent": {"max_turn": 1}})


def test_loading_takes_under_30_ms_and_imports_no_model_or_server():
    """CF-88: the first load of a process, packages imported.

    Measured in processor time and against work that takes 24 ms where loading takes 16: a machine
    that is slow or busy is so for both (tests 2).
    """
    script = """
import os, sys, time
os.environ["PYDANTIC_DISABLE_PLUGINS"] = "__all__"  # as the command does
import pydantic.fields, pydantic.types, pydantic.plugin._schema_validator, pydantic.plugin._loader, ruamel.yaml
import bowerbird.config.load as load
start = time.process_time()
load.load_settings(env={"MAX_TURNS": "3"}, cwd="/", home="/nonexistent")
taken = time.process_time() - start
start = time.process_time()
sum(i * i for i in range(500_000))
known = time.process_time() - start
loaded = {name.split(".")[0] for name in sys.modules}
heavy = {"sqlalchemy", "pydantic_settings", "anthropic", "openai", "fastapi", "pygit2", "httpx"} & loaded
print(taken / known, ",".join(heavy))
"""
    best = 9.0
    for _ in range(3):
        out = subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, check=True
        ).stdout
        share, heavy = out.rstrip("\n").split(" ")
        assert heavy == ""
        best = min(best, float(share))
    assert best < 1.25


@pytest.mark.parametrize(
    "url",
    ["http://[", "http://h:99999/v1", "http://h:x", "http://:80", "http://a\\b/v1", "http://h:0", "ftp://h"],
)
def test_an_address_that_no_client_can_read_is_refused_before_anything_starts(url: str):
    """CF-15: `http://[` passed `config check`, and each turn ended with an error of a library."""
    with pytest.raises(ValidationError, match=r"must start with http|is no address"):
        Settings.model_validate({"providers": {"desk": {"base_url": url}}})
    assert Settings.model_validate({"providers": {"desk": {"base_url": "http://[::1]:8080/v1"}}})
