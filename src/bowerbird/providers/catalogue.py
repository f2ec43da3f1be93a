"""Which provider agents exist: the twelve of PR-1, and those of PR-2, as data.

Here: names, types, variables, addresses, time limits, what each can do. Not here: how one is asked (`api/`,
`programs/`), what settings say of it (`choosing`), whether it works now (its probe).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from bowerbird.providers.contract.types import AgentCapabilities, AgentInfo, AgentType

ApiWire = Literal["anthropic", "responses", "chat", "ollama"]

_C = AgentCapabilities
_TEXT = (_C.TEXT_COMPLETION, _C.STREAMING, _C.MULTI_TURN, _C.CODE_GENERATION, _C.CODE_ANALYSIS)
_CODER = (
    _C.CODE_GENERATION,
    _C.CODE_EDITING,
    _C.CODE_ANALYSIS,
    _C.STREAMING,
    _C.MULTI_TURN,
    _C.CODE_EXECUTION,
    _C.TOOL_USE,
    _C.FILE_OPERATIONS,
)


@dataclass(frozen=True, slots=True)
class CatalogueEntry:
    """One provider agent, before settings.

    Attributes:
        timeout_s: of a whole run.
        key_variables: environment names of its key, the first one wins.
        shares: the model provider whose key and address it uses where it has none of its own.
        base_url_variable, base_url: the variable of its address, and the address without it.
        command_variables: names of its program, one for each of `programs`.
        programs: tried in this order; of a run without ACP.
        acp: its command for ACP, as words; empty = it has none.
        wire: of api and local agents: how it is asked.
        model: default; None = the agent's own.
        prices_as: provider and name of that model in the price package, which tests look up.
        core: whether PR-1 names it.
    """

    name: str
    display_name: str
    type: AgentType
    description: str
    capabilities: tuple[AgentCapabilities, ...]
    timeout_s: float
    key_variables: tuple[str, ...] = ()
    shares: str | None = None
    base_url_variable: str | None = None
    base_url: str | None = None
    command_variables: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()
    acp: tuple[str, ...] = ()
    wire: ApiWire | None = None
    model: str | None = None
    prices_as: tuple[str, str] | None = None
    core: bool = True

    @property
    def transports(self) -> tuple[str, ...]:
        """How it can be talked to."""
        if self.type != "cli":
            return ("http",)
        return ("acp", "headless") if self.acp and self.programs else ("acp",) if self.acp else ("headless",)

    def info(self, model: str | None = None, max_cost: float | None = None) -> AgentInfo:
        """Return what lists show; `model` and `max_cost` are what settings choose."""
        return AgentInfo(
            self.name,
            self.display_name,
            self.type,
            self.description,
            self.capabilities,
            model or self.model,
            self.transports,
            max_cost,
        )


CATALOGUE: Mapping[str, CatalogueEntry] = {
    entry.name: entry
    for entry in (
        CatalogueEntry(
            "claude",
            "Claude",
            "api",
            "Anthropic's Claude over its Messages API: answers, no files.",
            (*_TEXT, _C.VISION, _C.EXTENDED_THINKING, _C.CACHING),
            120.0,
            key_variables=("ANTHROPIC_API_KEY",),
            shares="anthropic",
            base_url_variable="ANTHROPIC_BASE_URL",
            base_url="https://api.anthropic.com",
            wire="anthropic",
            model="claude-sonnet-5-5",
            prices_as=("anthropic", "claude-sonnet-5-5"),
        ),
        CatalogueEntry(
            "codex",
            "Codex",
            "api",
            "An OpenAI model made for code, over the Responses API: answers, no files.",
            (*_TEXT, _C.EXTENDED_THINKING),
            120.0,
            key_variables=("OPENAI_API_KEY",),
            shares="openai",
            base_url_variable="OPENAI_BASE_URL",
            base_url="https://api.openai.com/v1",
            wire="responses",
            model="gpt-5.3-codex",
            prices_as=("openai", "gpt-5.3-codex"),
        ),
        CatalogueEntry(
            "o1",
            "OpenAI o1",
            "api",
            "OpenAI's successor of o1, which reasons before it answers: answers, no files.",
            (*_TEXT, _C.EXTENDED_THINKING, _C.TASK_DECOMPOSITION),
            300.0,
            key_variables=("OPENAI_API_KEY",),
            shares="openai",
            base_url_variable="OPENAI_BASE_URL",
            base_url="https://api.openai.com/v1",
            wire="chat",
            model="gpt-5.2",
            prices_as=("openai", "gpt-5.2"),
        ),
        CatalogueEntry(
            "deepseek",
            "DeepSeek",
            "api",
            "DeepSeek's model over its chat API: answers, no files.",
            _TEXT,
            120.0,
            key_variables=("DEEPSEEK_API_KEY",),
            base_url_variable="DEEPSEEK_BASE_URL",
            base_url="https://api.deepseek.com/v1",
            wire="chat",
            model="deepseek-v4-pro",
            prices_as=("deepseek", "deepseek-v4-pro"),
        ),
        CatalogueEntry(
            "qwen",
            "Qwen",
            "api",
            "Alibaba's Qwen for code over DashScope: answers, no files.",
            _TEXT,
            120.0,
            key_variables=("DASHSCOPE_API_KEY", "QWEN_API_KEY"),
            base_url_variable="QWEN_BASE_URL",
            base_url="https://dashscope.aliyuncs.com/compatible-mode/v1",
            wire="chat",
            model="qwen3-coder-plus",
            prices_as=("openrouter", "qwen/qwen3-coder-plus"),
        ),
        CatalogueEntry(
            "jules",
            "Jules",
            "cli",
            "Google's Jules: works remotely on a repository and answers with a link to its task.",
            (_C.CODE_GENERATION, _C.CODE_EDITING, _C.CLOUD_INFRASTRUCTURE),
            120.0,
            command_variables=("JULES_COMMAND",),
            programs=("jules",),
        ),
        CatalogueEntry(
            "opencode",
            "OpenCode",
            "cli",
            "The open-source coding agent OpenCode, on a branch of the workspace.",
            _CODER,
            600.0,
            command_variables=("OPENCODE_COMMAND",),
            programs=("opencode",),
            acp=("opencode", "acp"),
        ),
        CatalogueEntry(
            "gemini",
            "Gemini CLI",
            "cli",
            "Google's Gemini CLI, on a branch of the workspace.",
            _CODER,
            600.0,
            key_variables=("GEMINI_API_KEY",),
            base_url_variable="GOOGLE_GEMINI_BASE_URL",
            base_url="https://generativelanguage.googleapis.com",
            command_variables=("GEMINI_COMMAND",),
            programs=("gemini",),
            acp=("gemini", "--acp"),
        ),
        CatalogueEntry(
            "mistral_vibe",
            "Mistral Vibe",
            "cli",
            "Mistral's coding agent Vibe, on a branch of the workspace.",
            _CODER,
            600.0,
            key_variables=("MISTRAL_API_KEY",),
            shares="mistral",
            command_variables=("MISTRAL_VIBE_COMMAND",),
            programs=("vibe",),
            acp=("vibe-acp",),
        ),
        CatalogueEntry(
            "every_code",
            "Every Code",
            "cli",
            "The coding agent Every Code (`code` or `coder`), on a branch of the workspace.",
            (*_CODER, _C.TASK_DECOMPOSITION),
            600.0,
            command_variables=("EVERY_CODE_COMMAND", "EVERY_CODE_ALT_COMMAND"),
            programs=("code", "coder"),
        ),
        CatalogueEntry(
            "openclaw",
            "OpenClaw",
            "cli",
            "The personal agent OpenClaw, on a branch of the workspace.",
            _CODER,
            600.0,
            command_variables=("OPENCLAW_COMMAND",),
            programs=("openclaw",),
        ),
        CatalogueEntry(
            "ollama",
            "Ollama",
            "local",
            "A model that Ollama runs on this machine: answers, no files.",
            _TEXT,
            300.0,
            base_url_variable="OLLAMA_BASE_URL",
            base_url="http://localhost:11434",
            wire="ollama",
        ),
        CatalogueEntry(
            "claude_code",
            "Claude Code",
            "cli",
            "Anthropic's coding agent Claude Code, on a branch of the workspace.",
            (*_CODER, _C.EXTENDED_THINKING, _C.VISION),
            600.0,
            key_variables=("ANTHROPIC_API_KEY",),
            shares="anthropic",
            base_url_variable="ANTHROPIC_BASE_URL",
            base_url="https://api.anthropic.com",
            command_variables=("CLAUDE_CODE_COMMAND",),
            programs=("claude",),
            acp=("claude-agent-acp",),
            core=False,
        ),
        CatalogueEntry(
            "codex_cli",
            "Codex CLI",
            "cli",
            "OpenAI's coding agent Codex, on a branch of the workspace.",
            (*_CODER, _C.EXTENDED_THINKING),
            600.0,
            key_variables=("OPENAI_API_KEY",),
            shares="openai",
            base_url_variable="OPENAI_BASE_URL",
            base_url="https://api.openai.com/v1",
            command_variables=("CODEX_CLI_COMMAND",),
            programs=("codex",),
            acp=("codex-acp",),
            core=False,
        ),
        CatalogueEntry(
            "qwen_cli",
            "Qwen Code",
            "cli",
            "Alibaba's coding agent Qwen Code, on a branch of the workspace.",
            _CODER,
            600.0,
            key_variables=("DASHSCOPE_API_KEY", "QWEN_API_KEY"),
            shares="qwen",
            base_url_variable="QWEN_BASE_URL",
            base_url="https://dashscope.aliyuncs.com/compatible-mode/v1",
            command_variables=("QWEN_CLI_COMMAND",),
            programs=("qwen",),
            acp=("qwen", "--acp"),
            core=False,
        ),
        CatalogueEntry(
            "copilot",
            "GitHub Copilot CLI",
            "cli",
            "GitHub's coding agent Copilot, with an OpenAI-compatible model, on a branch of the workspace.",
            _CODER,
            600.0,
            key_variables=("OPENAI_API_KEY",),
            shares="openai",
            base_url_variable="OPENAI_BASE_URL",
            base_url="https://api.openai.com/v1",
            command_variables=("COPILOT_COMMAND",),
            programs=("copilot",),
            acp=("copilot", "--acp"),
            core=False,
        ),
        CatalogueEntry(
            "hermes",
            "Hermes",
            "cli",
            "Nous Research's Hermes agent, on a branch of the workspace.",
            _CODER,
            600.0,
            command_variables=("HERMES_COMMAND",),
            programs=("hermes",),
            acp=("hermes-acp",),
            core=False,
        ),
        CatalogueEntry(
            "cline",
            "Cline",
            "cli",
            "The coding agent Cline, on a branch of the workspace.",
            _CODER,
            600.0,
            command_variables=("CLINE_COMMAND",),
            programs=("cline",),
            core=False,
        ),
        CatalogueEntry(
            "aider",
            "Aider",
            "cli",
            "The pair programmer Aider, on a branch of the workspace.",
            (_C.CODE_GENERATION, _C.CODE_EDITING, _C.CODE_ANALYSIS, _C.FILE_OPERATIONS),
            600.0,
            command_variables=("AIDER_COMMAND",),
            programs=("aider",),
            core=False,
        ),
        CatalogueEntry(
            "pi",
            "Pi",
            "cli",
            "The coding agent Pi, on a branch of the workspace.",
            _CODER,
            600.0,
            command_variables=("PI_COMMAND",),
            programs=("pi",),
            core=False,
        ),
        CatalogueEntry(
            "cn",
            "Continue",
            "cli",
            "Continue's coding agent `cn`, on a branch of the workspace.",
            _CODER,
            600.0,
            command_variables=("CN_COMMAND",),
            programs=("cn",),
            core=False,
        ),
        CatalogueEntry(
            "perplexity",
            "Perplexity",
            "api",
            "Perplexity's Sonar, which searches the web before it answers: answers, no files.",
            (_C.TEXT_COMPLETION, _C.STREAMING, _C.MULTI_TURN),
            120.0,
            key_variables=("PERPLEXITY_API_KEY",),
            base_url="https://api.perplexity.ai",
            wire="chat",
            model="sonar-pro",
            prices_as=("perplexity", "sonar-pro"),
            core=False,
        ),
    )
}
