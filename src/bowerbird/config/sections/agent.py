"""Keys of the agent and its models: `agent`, `provider`, `providers`, `model_router`, `models`.

Not here: how a model is opened (`models/`), what the loop does with the limits (`agent/`).
"""

from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, AliasChoices, BeforeValidator, ConfigDict, Field

from bowerbird.config.fields import Flag, Float, HttpUrl, Int, Names, Secret, Section, Text, key

DEFAULT_MODEL = "claude-sonnet-5"
MODEL_PROVIDERS = (
    "anthropic", "openai", "local", "ollama", "vllm", "openrouter", "google-genai", "groq", "deepseek",
    "mistral", "lmstudio", "openai-compatible",
)  # fmt: skip


def _effort(value: object) -> object:
    return "max" if value == "xhigh" else value


def _budget(value: int) -> int:
    if 0 < value < 1000:
        raise ValueError("must be at least 1,000, or 0 for no limit")
    return value


Effort = Annotated[Literal["high", "max"], BeforeValidator(_effort)]


class AgentSection(Section):
    """The agent: its directories, models of its helpers, and limits of a turn."""

    workspace: Text = key(
        "workspace",
        "Root of the default workspace; made if absent.",
        env=("WORKSPACE_DIR",),
        applies="S",
        base="file",
    )
    data_dir: Text = key(
        "./data",
        "Where Bowerbird keeps its own records; without a settings file, commands use ~/.bowerbird/data.",
        applies="S",
        base="file",
    )
    preset: Text = key(
        "coding",
        "Preset for conversations that name none.",
        env=("DEFAULT_PRESET",),
        allowed="existing preset",
    )
    prompts_dir: Text = key("prompts", "Directory of presets.", env=("PROMPTS_DIR",), base="file")
    subagent_model: Text | None = key(
        None, "Model of subagents; unset = the main model.", env=("SUBAGENT_MODEL",)
    )
    teammate_model: Text | None = key(
        None, "Model of teammates; unset = the main model.", env=("TEAMMATE_MODEL",)
    )
    compact_model: Text | None = key(
        None,
        "Model for summaries and for rewriting memory, unset = the main model; "
        "where it is set, it also writes the messages of commits that have none.",
        env=("COMPACT_MODEL",),
    )
    thinking_enabled: Flag | None = key(
        None,
        "Whether models think first in new conversations; unset = as each does by itself.",
        env=("THINKING_ENABLED",),
    )
    thinking_effort: Effort = key(
        "high",
        "Effort sent when thinking is on.",
        env=("THINKING_EFFORT",),
        allowed="high, max (xhigh = max)",
    )
    tools: Literal["default", "full"] = key(
        "default",
        "Which built-in tools new conversations are offered: a small set that covers the work, or all of "
        "them; one that is not offered still runs when a model calls it.",
    )
    max_turns: Annotated[Int, Field(validation_alias=AliasChoices("max_turns", "max_tool_iterations"))] = key(
        200,
        "Model calls per turn; then a summary ends it.",
        env=("MAX_TURNS",),
        ge=1,
        le=10_000,
        other_names=("max_tool_iterations",),
    )
    max_token_budget: Annotated[Int, AfterValidator(_budget)] = key(
        200_000,
        "Tokens per user request, each counted once however often it is sent again; then the turn stops with "
        "`token_budget`.",
        env=("MAX_TOKEN_BUDGET",),
        unit="tokens",
        ge=0,
        allowed="at least 1,000, or 0 = off",
    )
    max_output_tokens: Int = key(
        16_384, "`max_tokens` sent.", env=("MAX_OUTPUT_TOKENS",), unit="tokens", ge=1, le=1_000_000
    )
    context_window: Int = key(
        200_000,
        "Context size that compaction and the context percentage refer to.",
        env=("CONTEXT_WINDOW",),
        unit="tokens",
        ge=4096,
    )
    compact_threshold: Float = key(
        0.7,
        "Fraction of the context window at which compaction starts.",
        env=("COMPACT_THRESHOLD",),
        ge=0.1,
        le=0.95,
    )
    keep_results: Float = key(
        0.6,
        "Fraction of the context window up to which results of tools are sent whole; 0 keeps the last three.",
        ge=0,
        le=0.95,
    )
    llm_max_retries: Int = key(
        3,
        "Retries of a failed model call; it makes at most 1 + this many requests.",
        env=("LLM_MAX_RETRIES",),
        ge=0,
        le=20,
    )
    llm_retry_base_delay: Float = key(
        1.0,
        "Delay before attempt n is min(base·2^n + random(0,1), max).",
        env=("LLM_RETRY_BASE_DELAY",),
        unit="s",
        ge=0,
        le=60,
    )
    llm_retry_max_delay: Float = key(
        30.0,
        "Longest delay between attempts.",
        env=("LLM_RETRY_MAX_DELAY",),
        unit="s",
        ge=0,
        le=600,
        allowed="llm_retry_base_delay–600",
    )
    max_teammates: Int = key(
        5, "Most teammates active at once; a further one is refused.", env=("MAX_TEAMMATES",), ge=0, le=100
    )
    temperature: Float | None = key(
        None,
        "Sent with main calls where set; left out for models that refuse it. The embedded model gets 0.",
        env=("TEMPERATURE",),
        ge=0,
        le=2,
    )
    subagent_temperature: Float | None = key(
        None, "The same for subagents.", env=("SUBAGENT_TEMPERATURE",), ge=0, le=2
    )
    teammate_temperature: Float | None = key(
        None, "The same for teammates.", env=("TEAMMATE_TEMPERATURE",), ge=0, le=2
    )
    compact_temperature: Float | None = key(
        None, "The same for summaries.", env=("COMPACT_TEMPERATURE",), ge=0, le=2
    )

    @property
    def max_tool_iterations(self) -> int:
        """Other name of `max_turns`."""
        return self.max_turns


class ProviderSection(Section):
    """The main model. What is set here wins over `providers.<name>`."""

    name: Annotated[Text, Field(min_length=1)] = key(
        "anthropic",
        "Provider of the main model.",
        env=("LLM_PROVIDER",),
        allowed="anthropic, openai, local, another known provider, or a name with base_url",
        choices=MODEL_PROVIDERS,
    )
    model: Annotated[Text, Field(pattern=r"\S")] = key(
        DEFAULT_MODEL, "Model named in requests.", env=("MODEL",), allowed="not blank"
    )
    api_key: Secret | None = key(None, "Key of the chosen provider; wins over the provider's own variable.")
    temperature: Float | None = key(None, "Wins over agent.temperature.", ge=0, le=2)
    max_tokens: Int | None = key(
        None, "Wins over agent.max_output_tokens.", unit="tokens", ge=1, le=1_000_000
    )
    base_url: HttpUrl | None = key(
        None, "Host of the chosen provider; wins over the provider's own variable.", allowed="http(s) URL"
    )


class ProviderEntry(Section):
    """A model provider (key and host) or another vendor's agent."""

    api_key: Secret | None = key(None, "Key sent to this provider and to no other host.")
    api_key_env: Text | None = key(None, "Variable that holds the key, where it has another name.")
    base_url: HttpUrl | None = key(None, "Host that gets the calls.", allowed="http(s) URL")
    headers: dict[Text, Secret] = key({}, "Further headers sent with each request.")
    model: Text | None = key(None, "Model passed to it.")
    command: Text | None = key(None, "Program that runs it, optionally with arguments.")
    alt_command: Text | None = key(None, "Second program, tried where the first one is not there.")
    args: Names = key((), "Arguments put after the command.")
    env: dict[Text, Secret] = key({}, "Variables given to its process; nothing else is.")
    timeout: Float | None = key(None, "Longest run or wait for the first event.", unit="s", ge=0.1, le=86_400)
    idle_timeout: Float | None = key(None, "Longest silence in a stream.", unit="s", ge=0.1, le=86_400)
    max_output_bytes: Int | None = key(None, "Output kept of one run.", unit="bytes", ge=1024)
    max_cost: Float | None = key(
        None, "Most that the model of one run of a program may cost.", unit="USD", ge=0.000001, le=100_000
    )
    permission_mode: Text | None = key(
        None, "The vendor's own permission mode, or `read_only`; unset = edits and commands are allowed."
    )
    mcp_servers: Names = key((), "Names of `mcp_servers` whose tools a program over ACP is given.")
    auth: Text | None = key(None, "How it signs in.")
    transport: Literal["auto", "acp", "headless"] = key("auto", "How Bowerbird talks to a CLI agent.")
    allow_remote: Flag = key(False, "Whether a host other than loopback is permitted for a local provider.")


class ProvidersSection(Section):
    """Keys and hosts by provider, and other vendors' agents: `providers.<name>`."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, ProviderEntry]  # pyright: ignore[reportIncompatibleVariableOverride] - how pydantic types entries
    entry_type: ClassVar[type[Section]] = ProviderEntry

    enabled: Names | None = key(None, "Provider agents offered; null = all.")
    allow_direct: Flag = key(
        False, "Whether an admin may run an agent whose changes land without review (`--no-branch`)."
    )
    max_cost: Float | None = key(
        None, "`max_cost` of the agents that have none of their own.", unit="USD", ge=0.000001, le=100_000
    )

    def get(self, name: str) -> ProviderEntry:
        """Return the entry of provider `name`, or one of defaults."""
        return (self.__pydantic_extra__ or {}).get(name) or ProviderEntry()

    @property
    def entries(self) -> dict[str, ProviderEntry]:
        """All entries that settings or environment name."""
        return dict(self.__pydantic_extra__ or {})


class Tier(Section):
    """A model that `switch_model` can choose."""

    name: Text = key(..., "Provider of this tier.")
    model: Annotated[Text, Field(pattern=r"\S")] = key(..., "Model of this tier.", allowed="not blank")
    api_key: Secret | None = key(None, "Key for this tier; unset = the provider's.")
    temperature: Float | None = key(None, "Temperature of this tier.", ge=0, le=2)
    max_tokens: Int | None = key(None, "Largest output of this tier.", unit="tokens", ge=1, le=1_000_000)
    base_url: HttpUrl | None = key(None, "Host of this tier.", allowed="http(s) URL")


class RouterSection(Section):
    """Several models of which one answers at a time; takes the place of `provider`."""

    enabled: Flag = key(False, "Whether tiers take the place of `provider`.")
    default_tier: Text = key("standard", "Tier that a session starts with.", allowed="a name of tiers")
    tiers: dict[Text, Tier] = key({}, "Tiers by name: lite, standard, advanced, expert are suggested.")


class Price(Section):
    """Prices of a model in USD per million tokens; they win over the price package."""

    input: Float = key(..., "Uncached input.", unit="USD per million tokens", ge=0)
    output: Float = key(..., "Output, reasoning included.", unit="USD per million tokens", ge=0)
    cache_read: Float | None = key(None, "Cached input; unset = input.", unit="USD per million tokens", ge=0)
    cache_write: Float | None = key(None, "Cache writes; unset = input.", unit="USD per million tokens", ge=0)


class ModelEntry(Section):
    """What a person knows better than the catalogue of one model, by its name `provider:model`."""

    fallback_models: Names = key((), "Models tried in order when this one cannot answer.")
    price: Price | None = key(None, "Prices that win over the price package.")
    allow_unpriced: Flag = key(False, "Whether it may run under a money limit without a known price.")
    context_window: Int | None = key(None, "Its context.", unit="tokens", ge=1024)
    max_output_tokens: Int | None = key(None, "Its largest output.", unit="tokens", ge=1)
    images: Flag | None = key(None, "Whether it reads images.")
    constrained_output: Flag | None = key(None, "Whether it can be held to a schema.")
    temperature: Flag | None = key(None, "False for a model that does not accept a temperature.")
    efforts: Names | None = key(None, "Efforts it knows, lowest first.")
    thinking_form: Literal["effort", "adaptive", "budget", "reasoning_effort", "reasoning", "none"] | None = (
        key(None, "How thinking is requested from it.")
    )


class LocalSection(Section):
    """The embedded model."""

    small: Flag = key(False, "Whether `local:default` is the 0.5B model.", applies="S")
    context_window: Int | None = key(None, "Its context; unset = its own.", unit="tokens", ge=1024)
    threads: Int | None = key(None, "Processor threads; unset = the engine's choice.", ge=1, le=1024)
    all_tools: Flag = key(False, "Whether every tool is offered to it instead of eight.")
