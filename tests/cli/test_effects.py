"""CF-87: each setting that exists is changed, and its effect is seen from outside.

A row of `EFFECTS` is a setting, its value, and what a run then shows. The registry below
fails for a key of the tree that has neither a row nor a place where it is tested.
"""

import json

import pytest

from bowerbird.config.keys import walk

WRITE = {"name": "write_file", "input": {"path": "b.txt", "content": "hi\n"}}
ERROR = {"type": "error", "error": {"type": "overloaded_error", "message": "x"}}
OVERLOADED = {"status": 529, "body": ERROR}
BIG = {"tools": [WRITE], "usage": {"input": 1900, "output": 1}}
SUMMARISED = (BIG, {"text": "summary"}, {"text": "ok"})
WRITES = ({"tools": [WRITE]}, {"text": "ok"})


def write(path, content="x"):
    return {"tools": [{"name": "write_file", "input": {"path": path, "content": content}}]}


class Seen:
    """What a run showed."""

    def __init__(self, here, code, out, err):
        self.here, self.code, self.out, self.err = here, code, out, err
        self.requests = here.fake.requests
        self.last = self.requests[-1] if self.requests else {}
        self.system = json.dumps(self.last.get("system"))
        self.messages = json.dumps(self.last.get("messages"))

    def diff(self):
        return self.here.ok("diff")


def row(key, value, check, *, steps=({"text": "ok"},), arguments=("hi",), given=None):
    return pytest.param(key, value, check, steps, arguments, given, id=key)


EFFECTS = [
    row("provider.model", "other-model", lambda s: s.last["model"] == "other-model"),
    row("agent.max_output_tokens", 77, lambda s: s.last["max_tokens"] == 77),
    row("provider.max_tokens", 78, lambda s: s.last["max_tokens"] == 78),
    row("agent.temperature", 0.3, lambda s: s.last["temperature"] == 0.3),
    row("provider.temperature", 0.4, lambda s: s.last["temperature"] == 0.4),
    row("agent.thinking_enabled", True, lambda s: s.last["thinking"]["type"] == "enabled"),
    row("agent.thinking_effort", "max", lambda s: '"max"' in json.dumps(s.last),
        given={"agent": {"thinking_enabled": True}}),
    row("agent.tools", "full", lambda s: "todo_add" in json.dumps(s.last["tools"])),
    row("agent.max_turns", 1, lambda s: s.code == 5 and len(s.requests) == 2, steps=({"tools": [WRITE]},)),
    row("agent.max_token_budget", 1000, lambda s: s.code == 5,
        steps=({"tools": [WRITE], "usage": {"input": 5000, "output": 9}},)),
    row("agent.llm_max_retries", 1, lambda s: s.code == 1 and len(s.requests) == 2, steps=(OVERLOADED,),
        given={"agent": {"llm_retry_base_delay": 0, "llm_retry_max_delay": 0}}),
    row("agent.preset", "mine", lambda s: "Be a pirate" in s.system),
    row("agent.context_window", 4096, lambda s: "46% ctx" in s.err,
        steps=({"text": "ok", "usage": {"input": 1900, "output": 1}},)),
    row("agent.compact_threshold", 0.1, lambda s: len(s.requests) == 3,
        steps=SUMMARISED,
        given={"agent": {"context_window": 4096}}),
    row("agent.compact_model", "small-model", lambda s: s.requests[1]["model"] == "small-model",
        steps=SUMMARISED,
        given={"agent": {"context_window": 4096, "compact_threshold": 0.1}}),
    row("agent.compact_temperature", 0.6, lambda s: s.requests[1]["temperature"] == 0.6,
        steps=SUMMARISED, given={"agent": {"context_window": 4096, "compact_threshold": 0.1}}),
    row("memory.enabled", False, lambda s: "remember the milk" not in s.system),
    row("skills.enabled", False, lambda s: "read_skill" not in json.dumps(s.last["tools"])),
    row("skills.directory", "my-skills", lambda s: "knitting" in s.system),
    row("workspace.hide", ["a.txt"], lambda s: "a.txt" not in s.messages.replace("project/a.txt", ""),
        steps=({"tools": [{"name": "list_files", "input": {}}]}, {"text": "ok"})),
    row("workspace.landing", "turn", lambda s: (s.here.project / "b.txt").exists(),
        steps=WRITES),
    row("workspace.write_mb", 1, lambda s: "workspace.write_mb" in s.err,
        steps=(write("x", "x" * 1_100_000), {"text": "ok"})),
    row("workspace.depth", 8, lambda s: "workspace.depth" in s.messages,
        steps=(write("d/" * 20 + "x"), {"text": "ok"})),
    row("workspace.changed_paths", 1, lambda s: "workspace.changed_paths" in s.messages,
        steps=(write("b"), write("c"), {"text": "ok"})),
    row("approval.rules", ["deny write_file"], lambda s: "⊘ write_file" in s.err,
        steps=WRITES),
    row("approval.default", "unsafe", lambda s: s.code == 4, steps=WRITES),
    row("limits.message_mb", 0.001, lambda s: s.code != 0 and "limits.message_mb" in s.err,
        arguments=("x" * 2000,)),
    row("store.min_free_mb", 1 << 40, lambda s: s.code == 1 and "store.min_free_mb" in s.err),
    row("store.url", "sqlite+aiosqlite:///./mine.db",
        lambda s: (s.here.home / ".bowerbird/data/mine.db").exists()),
    row("agent.data_dir", "elsewhere", lambda s: (s.here.home / ".bowerbird/elsewhere/agent.db").exists()),
    row("cli.model", "their-model", lambda s: s.last["model"] == "their-model"),
    row("cli.preset", "mine", lambda s: "Be a pirate" in s.system),
    row("cli.approval", True, lambda s: s.code == 4, steps=WRITES),
    row("cli.thinking_enabled", True, lambda s: s.last["thinking"]["type"] == "enabled"),
    row("cli.thinking_effort", "max", lambda s: '"max"' in json.dumps(s.last),
        given={"cli": {"thinking_enabled": True}}),
    row("cli.timeout", 1, lambda s: s.code == 124, steps=({"hang": True},)),
]  # fmt: skip


@pytest.mark.parametrize(("key", "value", "check", "steps", "arguments", "given"), EFFECTS)
def test_changing_a_setting_has_its_effect(here, key, value, check, steps, arguments, given):
    settings = json.loads(json.dumps(given or {}))
    section, name = key.split(".")
    settings.setdefault(section, {})[name] = value
    own = here.home / ".bowerbird"
    (own / "prompts/mine").mkdir(parents=True)
    (own / "prompts/mine/PROMPT.md").write_text("---\nname: mine\n---\nBe a pirate.\n")
    (own / "config.yaml").write_text(json.dumps(settings))
    (here.project / "MEMORY.md").write_text("remember the milk\n")
    skill = here.project / "my-skills/knitting/SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text("---\nname: knitting\ndescription: knitting socks\n---\nPurl.\n")
    here.fake.script(*steps)
    if name.endswith("temperature"):
        here.fake.without.add("no temperature")
    seen = Seen(here, *here.run(*arguments))
    assert check(seen), (seen.code, seen.err)


def test_a_flag_goes_before_a_preference(here):
    """UI-62."""
    own = here.home / ".bowerbird"
    own.mkdir(exist_ok=True)
    (own / "config.yaml").write_text("cli: {model: their-model, preset: work}\n")
    here.fake.script({"text": "ok"})
    assert here.run("-m", "other-model", "hi")[0] == 0
    assert here.fake.requests[-1]["model"] == "other-model"
    assert here.run("hi")[0] == 0
    assert here.fake.requests[-1]["model"] == "their-model"


def test_without_settings_the_defaults_are_seen(here):
    """The other side of the rows above."""
    (here.project / "MEMORY.md").write_text("remember the milk\n")
    here.fake.script({"text": "ok"})
    seen = Seen(here, *here.run("hi"))
    assert seen.code == 0 and "remember the milk" in seen.system
    assert (seen.last["model"], seen.last["max_tokens"]) == ("claude-sonnet-5", 16_384)
    assert "temperature" not in seen.last and "read_skill" in json.dumps(seen.last["tools"])


def test_the_share_of_the_context_is_of_the_running_models_own_window(desk):
    """UI-54: a model's window counts where it is smaller than CONTEXT_WINDOW."""
    small = {"models": {"anthropic:claude-sonnet-5": {"context_window": 4096}}}
    (desk.home / ".bowerbird").mkdir(exist_ok=True)
    (desk.home / ".bowerbird/config.yaml").write_text(json.dumps(small))
    desk.fake.script({"text": "ok", "usage": {"input": 1900, "output": 1}})
    code, _, err = desk.run("hi")
    assert code == 0 and "46% ctx" in err


def test_keys_and_hosts_reach_their_provider_only(here):
    """CF-16 … CF-19, CF-52."""
    here.fake.script({"text": "ok"})
    assert here.run("hi")[0] == 0
    assert here.fake.headers[-1]["x-api-key"] == "sk-planted-0123456789"
    environment = here.environment | {
        "LLM_PROVIDER": "openai", "OPENAI_API_KEY": "sk-other-0123456789", "MODEL": "gpt-x",
        "OPENAI_BASE_URL": here.fake.openai_url,
    }  # fmt: skip
    assert here.run("hi", env=environment)[0] == 0
    assert here.fake.headers[-1]["authorization"] == "Bearer sk-other-0123456789"
    assert here.fake.requests[-1]["model"] == "gpt-x"
    (here.home / ".bowerbird/config.yaml").write_text("provider: {api_key: sk-explicit-0123456789}\n")
    assert here.run("hi")[0] == 0
    assert here.fake.headers[-1]["x-api-key"] == "sk-explicit-0123456789"


@pytest.mark.parametrize(("retries", "requests"), [(3, 4), (0, 1)])
def test_retries_are_exactly_as_set(here, retries, requests):
    """Acceptance 9 of the settings chapter."""
    here.fake.script(OVERLOADED)
    environment = here.environment | {
        "LLM_MAX_RETRIES": str(retries), "LLM_RETRY_BASE_DELAY": "0", "LLM_RETRY_MAX_DELAY": "0.01",
    }  # fmt: skip
    assert here.run("hi", env=environment)[0] == 1
    assert here.fake.request_count == requests


# Where the effect of a key is tested when it has no row above.
ELSEWHERE = {
    "agent.workspace": "tests/config/test_sources.py (the CLI takes its directory instead)",
    "agent.prompts_dir": "the preset rows above", "agent.keep_results": "tests/agent/test_compaction.py",
    "agent.llm_retry_base_delay": "tests/models (RetryPolicy)", "agent.llm_retry_max_delay": "tests/models",
    "provider.name": "above", "provider.api_key": "above", "provider.base_url": "tests/config",
    "providers.*": "above", "model_router.*": "tests/models", "models.*": "tests/models",
    "local.*": "tests/models_local", "store.durability": "tests/store", "store.busy_timeout_s": "tests/store",
    "store.adopt": "tests/store", "dispatch.*": "tests/sessions", "workspace.edit_mb": "tests/workspace",
    "workspace.changed_bytes": "tests/workspace", "workspace.show": "tests/workspace/test_hidden.py", "landing.*": "tests/workspace",
    "git.land": "tests/cli/test_git_history.py", "git.max_bytes": "tests/workspace/git",
    "approval.timeout_s": "tests/sessions", "approval.expiry_days": "tests/sessions",
    "budgets.*": "tests/sessions", "limits.*": "tests/sessions", "retention.*": "tests/sessions",
    "turn.*": "tests/sessions", "inbox.*": "tests/sessions", "resume.*": "tests/sessions",
    "shutdown.*": "tests/sessions", "journal.*": "tests/store", "memory.protected": "tests/memory",
    "git.agent_identity": "tests/workspace/git", "git.resign": "tests/cli/test_signed_commits.py",
    "gateway.*": "tests/gateway", "claude_code.*": "tests/channels/test_claude.py", "channels.*": "tests/channels", "transcription.*": "tests/channels",
    "scheduler.*": "tests/scheduler", "push.*": "tests/sessions/push",
    "hooks.*": "tests/cli/test_hooks.py", "mcp.*": "tests/protocols", "mcp_servers.*": "tests/protocols", "protocols.mcp.*": "tests/protocols", "web.*": "tests/tools", "telemetry.*": "tests/models", "cli.vi_mode": "seen at the prompt only",
    "cli.theme": "seen at the prompt only", "cli.notify": "tests/cli/test_notifying.py", "server.port": "doctor", "server.host": "doctor",
}  # fmt: skip
# Accepted now, with an effect once their part is built.
LATER = (
    "server.", "sandbox.", "tools.", "delegation.", "teams.", "outbox.", "logging.",
    "agent.subagent_", "agent.teammate_", "agent.max_teammates", "memory.idle_s",
    "workspace.cleanup", "workspace.registered",
)  # fmt: skip


def test_every_key_is_registered():
    """CF-87: a new key needs a row."""
    rows = {parameter.values[0] for parameter in EFFECTS}
    patterns = tuple(name.removesuffix("*") for name in ELSEWHERE if name.endswith("*"))
    missing = [
        info.name
        for info in walk()
        if info.name not in rows | set(ELSEWHERE) and not info.name.startswith((*patterns, *LATER))
    ]
    assert missing == []
