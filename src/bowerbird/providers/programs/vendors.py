"""What each vendor's program is called with, as data (PR-16, PR-22, PR-25 … PR-27).

Words, variables and files hold names in braces: `{model}`, `{session}` (to go on with), `{new_session}`,
`{url}` and `{origin}` (of the relay, with and without the vendor's path), `{token}`, `{home}`, `{cwd}`,
`{seconds}`, `{prompt}`, `{free}` (where it may edit without asking). A group of words, a variable or a file
is left out when a name in it has no value. Here: that data. Not here: putting values in (`launching`), which
agents exist (`catalogue`).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from bowerbird.providers.programs.readers.claude import ClaudeLines, QwenArray
from bowerbird.providers.programs.readers.jsonl import (
    ClineLines,
    CodexLines,
    CopilotLines,
    OpencodeLines,
    VibeLines,
)
from bowerbird.providers.programs.readers.lines import PlainText, Reader, TaskLink
from bowerbird.providers.programs.readers.values import GeminiValue, OpenclawValue
from bowerbird.providers.programs.relay.relay import KeyStyle

Word = str | tuple[str, ...]
"""A word, or a group of words that goes or stays together."""
MODE = "{mode}"
"""The place of `Vendor.free`, `bound` or `mode` among its words."""


@dataclass(frozen=True, slots=True)
class Vendor:
    """How one program is run.

    Attributes:
        reader: of its headless output.
        fresh: words behind the program for a new session. resume: for one that goes on; empty = it cannot.
        free: what lets it edit and run commands unasked, which it may on a branch. bound: what holds it to
            asking, where it does not by itself. mode: what chooses the vendor's mode `{permission_mode}`.
        prompt: where it goes: on standard input, or as the word `{prompt}`.
        env: variables. acp_env: further ones of an ACP run. files: path below the home → text.
        key_style: how the vendor's API takes its key.
        remote: it works elsewhere; nothing changes on the branch.
        sign_in: what a person does to sign in. login_files: what `auth: home` copies from the user's home.
        hosts: what `auth: home` may reach.
        names_session: whether it takes the name of its session from us. tries: if it does not start.
        auth_method: the ACP method that takes the key from the environment.
        takes_http: over ACP it reaches MCP servers over HTTP, though it does not say so.
    """

    reader: Callable[[], Reader]
    fresh: tuple[Word, ...]
    resume: tuple[Word, ...] = ()
    free: tuple[Word, ...] = ()
    bound: tuple[Word, ...] = ()
    mode: tuple[Word, ...] = ()
    prompt: Literal["stdin", "argument"] = "stdin"
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    acp_env: Mapping[str, str] = field(default_factory=dict[str, str])
    files: Mapping[str, str] = field(default_factory=dict[str, str])
    key_style: KeyStyle = "bearer"
    remote: bool = False
    names_session: bool = False
    sign_in: str = "see its manual"
    login_files: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    tries: int = 1
    auth_method: str | None = None
    takes_http: bool = False


def own_vendor(env: Mapping[str, str]) -> Vendor:
    """Return how a program of one's own is run: the prompt on standard input, what it prints is the answer.

    Args:
        env: its variables as settings have them; `{url}`, `{token}`, `{model}`, `{home}` are put in, so
            that the key of `providers.NAME.api_key` stays outside its sandbox.
    """
    return Vendor(PlainText, fresh=(), env=env)


_MODEL = ("--model", "{model}")
_CLAUDE = ("--bare", "-p", "--output-format", "stream-json", "--verbose", MODE)
_APPROVAL = ("--approval-mode", "{permission_mode}")
_CODEX = (
    "--json", "--skip-git-repo-check", MODE, ("-m", "{model}"),
    ("-c", "model_provider=relay", "-c",
     'model_providers.relay={name="relay",base_url="{url}",env_key="RELAY_TOKEN",wire_api="responses"}'),
)  # fmt: skip
_GEMINI = (("-m", "{model}"), "-o", "json", "--skip-trust", MODE)
_OPENCODE = ("run", "--format", "json", MODE)
_COPILOT = (
    "-p", "{prompt}", "--output-format", "json", "-C", "{cwd}", MODE, "--no-color",
    "--no-auto-update",
)  # fmt: skip
_QWEN = ("{prompt}", "-o", "json", MODE, ("--auth-type", "openai"))
_VIBE = (
    "-p", "--output", "streaming", "--trust", MODE, "--max-turns", "{turns}", "--time-limit", "{seconds}",
)  # fmt: skip

_CLINE = ("--json", MODE, "-t", "{seconds}", ("-P", "openai-compatible", "-m", "{model}"))

VENDORS: Mapping[str, Vendor] = {
    "claude_code": Vendor(
        ClaudeLines,
        fresh=(*_CLAUDE, _MODEL, "--session-id", "{new_session}"),
        resume=(*_CLAUDE, _MODEL, "--resume", "{session}"),
        free=("--permission-mode", "acceptEdits", "--allowedTools", "Bash"),
        mode=("--permission-mode", "{permission_mode}"),
        env={
            "ANTHROPIC_BASE_URL": "{origin}", "ANTHROPIC_API_KEY": "{token}",
            "CLAUDE_CONFIG_DIR": "{home}/.claude", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "CLAUDE_CODE_MAX_RETRIES": "0", "DISABLE_AUTOUPDATER": "1",
        },
        acp_env={"ANTHROPIC_MODEL": "{model}", "IS_SANDBOX": "1"},
        key_style="x-api-key",
        names_session=True,
        sign_in="a person must run `claude` and then /login, or set ANTHROPIC_API_KEY",
        login_files=(".claude/.credentials.json",),
        hosts=("api.anthropic.com", "*.anthropic.com", "claude.ai"),
    ),
    "codex_cli": Vendor(
        CodexLines,
        fresh=("exec", *_CODEX, "-"),
        resume=("exec", "resume", *_CODEX, "{session}", "-"),
        free=("--dangerously-bypass-approvals-and-sandbox",),
        mode=("-c", 'sandbox_mode="{permission_mode}"'),
        env={"CODEX_HOME": "{home}/.codex", "RELAY_TOKEN": "{token}"},
        acp_env={
            "OPENAI_API_KEY": "{token}", "CODEX_API_KEY": "{token}", "OPENAI_BASE_URL": "{url}",
            "INITIAL_AGENT_MODE": "{codex_mode}",  # its own sandbox cannot nest; ours holds
        },
        files={
            ".codex/config.toml": '{model_line}model_provider = "relay"\n'
            '[model_providers.relay]\nname = "relay"\n'
            'base_url = "{url}"\nenv_key = "RELAY_TOKEN"\nwire_api = "responses"\n',
            ".codex/.keep": "",
        },
        sign_in="a person must run `codex login`, or set OPENAI_API_KEY",
        login_files=(".codex/auth.json",),
        hosts=("api.openai.com", "auth.openai.com", "chatgpt.com", "*.chatgpt.com"),
        auth_method="api-key",
    ),
    "gemini": Vendor(
        GeminiValue,
        fresh=(*_GEMINI, "--session-id", "{new_session}"),
        resume=(*_GEMINI, "--resume", "{session}"),
        free=("--approval-mode", "yolo"),
        mode=_APPROVAL,
        env={
            "GEMINI_API_KEY": "{token}", "GOOGLE_GEMINI_BASE_URL": "{origin}",
            "GEMINI_CLI_TRUST_WORKSPACE": "true",
        },
        acp_env={"GEMINI_MODEL": "{model}"},
        files={
            ".gemini/settings.json": '{"security":{"auth":{"selectedType":"gemini-api-key"}},'
            '"general":{"disableAutoUpdate":true,"enableAutoUpdate":false},'
            '"privacy":{"usageStatisticsEnabled":false}}'
        },
        key_style="x-goog-api-key",
        names_session=True,
        sign_in="a person must run `gemini` once and sign in, or set GEMINI_API_KEY",
        login_files=(".gemini/oauth_creds.json", ".gemini/google_accounts.json"),
        hosts=("*.googleapis.com", "accounts.google.com"),
        auth_method="gemini-api-key",
    ),
    "opencode": Vendor(
        OpencodeLines,
        fresh=_OPENCODE,
        resume=(*_OPENCODE, "-s", "{session}"),
        free=("--auto",),
        mode=("--agent", "{permission_mode}"),
        env={
            "OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1",
            "OPENCODE_CONFIG_CONTENT": '{"model":"relay/{model}","small_model":"relay/{model}",'
            '"provider":{"relay":{"npm":"@ai-sdk/openai-compatible","name":"relay",'
            '"options":{"baseURL":"{url}","apiKey":"{token}"},'
            '"models":{"{model}":{"name":"{model}"}}}}}',
        },
        sign_in="a person must run `opencode auth login`, or set providers.opencode.api_key and .base_url",
        login_files=(".local/share/opencode/auth.json",),
        hosts=("opencode.ai", "*.opencode.ai"),
    ),
    "mistral_vibe": Vendor(
        VibeLines,
        fresh=_VIBE,
        resume=(*_VIBE, "--resume", "{session}"),
        free=("--yolo",),
        mode=("--agent", "{permission_mode}"),
        env={"VIBE_HOME": "{home}/.vibe", "MISTRAL_API_KEY": "{token}"},
        files={
            ".vibe/config.toml": 'active_model = "relay"\nenable_update_checks = false\n'
            'enable_auto_update = false\nenable_telemetry = false\n[[providers]]\n'
            'name = "relay"\napi_base = "{url}"\n'
            'api_key_env_var = "MISTRAL_API_KEY"\napi_style = "openai"\nbackend = "generic"\n[[models]]\n'
            'name = "{model}"\nprovider = "relay"\nalias = "relay"\n',
        },
        sign_in="a person must run `vibe --setup`, or set MISTRAL_API_KEY",
        login_files=(".vibe/.env",),
        takes_http=True,
        hosts=("api.mistral.ai",),
    ),
    "qwen_cli": Vendor(
        QwenArray,
        fresh=_QWEN,
        resume=(*_QWEN, "--resume", "{session}"),
        free=("--approval-mode", "yolo"),
        mode=_APPROVAL,
        prompt="argument",
        env={
            "OPENAI_API_KEY": "{token}", "OPENAI_BASE_URL": "{url}", "OPENAI_MODEL": "{model}",
            "QWEN_CODE_DISABLE_UPDATE_CHECK": "1",
        },
        files={
            ".qwen/settings.json": '{"general":{"enableAutoUpdate":false},'
            '"privacy":{"usageStatisticsEnabled":false}}',
        },
        sign_in="a person must run `qwen` once and sign in, or set DASHSCOPE_API_KEY",
        login_files=(".qwen/oauth_creds.json",),
        hosts=("*.qwen.ai", "*.aliyuncs.com"),
        auth_method="openai",
    ),
    "copilot": Vendor(
        CopilotLines,
        fresh=_COPILOT,
        resume=(*_COPILOT, "--resume", "{session}"),
        free=("--allow-all-tools", "--allow-all-paths"),
        prompt="argument",
        env={
            "COPILOT_OFFLINE": "true", "COPILOT_PROVIDER_BASE_URL": "{url}",
            "COPILOT_PROVIDER_API_KEY": "{token}", "COPILOT_MODEL": "{model}",
            "COPILOT_HOME": "{home}/.copilot",
        },
        sign_in="a person must run `copilot login`, or set base_url, api_key and model of providers.copilot",
        login_files=(".copilot/config.json",),
        hosts=("api.github.com", "*.githubcopilot.com"),
    ),
    "hermes": Vendor(
        PlainText,
        fresh=("-z", "{prompt}", MODE, ("-m", "{model}")),
        free=("--yolo",),
        prompt="argument",
        env={
            "HERMES_HOME": "{home}/.hermes", "OPENAI_API_KEY": "{token}", "OPENAI_BASE_URL": "{url}",
            "HERMES_YOLO_MODE": "{free}",
        },
        files={
            ".hermes/config.yaml": 'model:\n  default: "{model}"\n  provider: custom\n  base_url: "{url}"\n'
            '  api_key: "{token}"\n',
        },
        sign_in="a person must run `hermes setup`, or set providers.hermes.base_url, api_key and model",
        login_files=(".hermes/.env", ".hermes/auth.json"),
    ),
    "openclaw": Vendor(
        OpenclawValue,
        fresh=("agent", "--local", "--json", "--session-id", "{new_session}", "--message", "{prompt}"),
        resume=("agent", "--local", "--json", "--session-id", "{session}", "--message", "{prompt}"),
        prompt="argument",
        env={"OPENAI_API_KEY": "{token}", "OPENAI_BASE_URL": "{url}", "OPENCLAW_HOME": "{home}"},
        names_session=True,
        sign_in="a person must run `openclaw onboard`",
        login_files=(".openclaw/openclaw.json",),
    ),
    "cline": Vendor(
        ClineLines,
        fresh=(*_CLINE, "{prompt}"),
        resume=(*_CLINE, "--id", "{session}", "{prompt}"),
        free=("--auto-approve", "true"),
        bound=("--auto-approve", "false"),
        prompt="argument",
        files={
            ".cline/data/settings/providers.json": '{"version":1,"modes":{},'
            '"lastUsedProvider":"openai-compatible","providers":{"openai-compatible":{'
            '"settings":{"provider":"openai-compatible","apiKey":"{token}",'
            '"model":"{model}","baseUrl":"{url}"},"updatedAt":"2026-01-01T00:00:00.000Z",'
            '"tokenSource":"manual"}}}',
        },
        sign_in="a person must run `cline auth`, or set providers.cline.base_url, api_key and model",
        login_files=(".cline/data/settings/providers.json",),
    ),
    "jules": Vendor(
        TaskLink,
        fresh=("new", "{prompt}"),
        prompt="argument",
        remote=True,
        sign_in="a person must run `jules login`",
        login_files=(".jules/cache/oauth_creds.json",),
        hosts=("jules.googleapis.com", "*.googleapis.com"),
        tries=3,
    ),
    "every_code": Vendor(
        PlainText,
        fresh=("exec", "--skip-git-repo-check", "-"),
        env={"CODE_HOME": "{home}/.code"},
        files={".code/.keep": ""},
        sign_in="a person must run `code login`",
        login_files=(".code/auth.json",),
        hosts=("api.openai.com", "auth.openai.com", "chatgpt.com"),
    ),
    "aider": Vendor(
        PlainText,
        fresh=(
            MODE, "--no-git", "--no-check-update", "--no-analytics", "--no-pretty", "--no-stream",
            "--no-show-model-warnings", "--no-gitignore", "--chat-history-file", "{home}/history.md",
            "--input-history-file", "{home}/input", "--llm-history-file", "{home}/llm",
            ("--model", "openai/{model}"),
            "--message-file", "/dev/stdin",
        ),
        free=("--yes-always",),
        env={"OPENAI_API_KEY": "{token}", "OPENAI_API_BASE": "{url}", "LITELLM_LOCAL_MODEL_COST_MAP": "True"},
        sign_in="set providers.aider.base_url, api_key and model",
    ),
    "pi": Vendor(
        PlainText, fresh=("-p", "{prompt}"), prompt="argument",
        sign_in="a person must run `pi` and then /login",
    ),
    "cn": Vendor(
        PlainText, fresh=("-p", "{prompt}"), prompt="argument", sign_in="a person must run `cn login`"
    ),
}  # fmt: skip
