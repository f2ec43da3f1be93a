"""Keys of the ground: `store`, `workspace`, `landing`, `sandbox`, `approval`, limits, retention.

Not here: what enforces them (`store/`, `workspace/`, `sandbox/`, `sessions/`).
"""

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from bowerbird.config.fields import Flag, Float, Int, Names, Secret, Section, Text, Url, key, section
from bowerbird.config.sections.agent import Effort

MIB = 1 << 20
GIB = 1 << 30
HIDE: Names = (
    ".env", ".env.*", "!.env.example", "!.env.sample", "!.env.template", "!.env.dist", "!.env.defaults",
    "id_rsa", "id_dsa", "id_ecdsa", "id_ecdsa_sk", "id_ed25519", "id_ed25519_sk", "*.ppk", "*.key",
    "*key.pem", "!*pub*.pem", "privkey*.pem", "*.p12", "*.pfx", "*.jks", "*.keystore", "*.kdbx",
    ".netrc", "_netrc", ".git-credentials", ".pgpass", ".my.cnf", ".pypirc", ".dockercfg", ".vault-token",
    "**/.aws/credentials", "**/.docker/config.json", "**/.kube/config", "**/.gnupg/private-keys-v1.d",
    "**/gcloud/application_default_credentials.json", "client_secret*.json", "service-account*.json",
)  # fmt: skip
"""`workspace.hide` unless settings say otherwise: environment files, private keys, files of credentials.

Not `*.pem` and `*.crt`: programs need certificates, and most of them are public.
"""

LANDING_IGNORE = (
    "__pycache__/", ".pytest_cache/", ".mypy_cache/", ".ruff_cache/", ".hypothesis/", ".tox/",
    "node_modules/", ".venv/", "*.pyc", ".DS_Store",
)  # fmt: skip


def _upper(value: object) -> object:
    return value.upper() if isinstance(value, str) else value


class StoreSection(Section):
    """The database of sessions, turns and the journal."""

    url: Url = key(
        Url("sqlite+aiosqlite:///./agent.db"),
        "Database; a relative SQLite path starts at agent.data_dir.",
        env=("DATABASE_URL",),
        applies="S",
        allowed="SQLAlchemy async URL of sqlite or postgresql",
    )
    durability: Literal["full", "normal"] = key(
        "full", "`normal` may lose the last commits at a power failure, never at a crash.", applies="S"
    )
    busy_timeout_s: Float = key(
        30, "How long a locked database is retried.", unit="s", applies="S", ge=0, le=3600
    )
    min_free_mb: Int = key(256, "Free disk space below which nothing new is accepted.", unit="MiB", ge=0)
    adopt: Flag = key(
        False, "Whether a database that holds only another program's tables may be used.", applies="S"
    )


class DispatchSection(Section):
    """Who runs the turns."""

    kind: Literal["local"] = key(
        "local",
        "`local`: in the server's process.",
        applies="S",
        allowed="local; dbos is not in this version: several servers share a database with local",
    )
    lease_s: Float = key(
        15, "Time after which a silent process loses its sessions.", unit="s", applies="S", ge=1
    )
    heartbeat_s: Float = key(
        5,
        "How often a lease is renewed.",
        unit="s",
        applies="S",
        ge=0.1,
        allowed="at most a third of lease_s",
    )


class WorkspaceSection(Section):
    """Branches of workspaces: policy, names of further directories, limits."""

    landing: Literal["review", "turn", "step"] = key(
        "review", "When a branch lands: on request, after each turn, or after each step."
    )
    cleanup: Literal["release", "discard"] = key(
        "release", "What happens to an idle conversation's unlanded changes."
    )
    cleanup_delay: Float = key(
        300,
        "When an idle conversation's runtime is released.",
        env=("WORKSPACE_CLEANUP_DELAY",),
        unit="s",
        ge=0,
        le=604_800,
    )
    registered: dict[Text, Text] = key({}, "Further workspaces by name.", applies="S", base="file")
    hide: Names = key(
        HIDE,
        "Paths that do not exist for agents; a later glob wins over an earlier one, and `!` shows again what "
        "earlier ones hide. Empty = nothing is hidden.",
        allowed="globs as in .gitignore",
    )
    show: Names = key(
        (), "Paths that agents see although `hide` names them, such as `.env.test`.", allowed="globs"
    )
    write_mb: Int = key(32, "Largest file written by one call.", unit="MiB", ge=1, le=4096)
    edit_mb: Int = key(16, "Largest file edited.", unit="MiB", ge=1, le=4096)
    changed_bytes: Int = key(4 * GIB, "Bytes that one branch may change.", unit="bytes", ge=MIB)
    changed_paths: Int = key(200_000, "Paths that one branch may change.", ge=1, le=10_000_000)
    depth: Int = key(256, "Deepest directory.", ge=8, le=1024)

    @property
    def hidden(self) -> tuple[str, ...]:
        """The rules of `hide` with the exceptions of `show`."""
        return (*self.hide, *(f"!{glob}" for glob in self.show))


class LandingSection(Section):
    """Which paths need their own review, or are folded, at landing; the command that checks changes."""

    flag: Names = key((), "Further paths that need to be accepted one by one.", allowed="globs")
    unflag: Names = key(
        (), "Paths that need no acceptance although built-in rules flag them.", allowed="globs"
    )
    ignore: Names = key(LANDING_IGNORE, "Caches: they land only when named.", allowed="globs")
    check: Text = key(
        "",
        'Shell command that judges changes before they land, such as "pytest -q"; runs on a copy of the '
        "branch without network when somebody asks for it. Empty = none.",
    )


class GitSection(Section):
    """What landings do with git."""

    land: Literal["fetch", "fast_forward", "never"] = key(
        "fetch",
        "Commits of a branch: fetch = into refs/bowerbird/SESSION/ beside your own; fast_forward = your "
        "branches follow, too, where they are still what the agent began from; never = they stay there.",
    )
    max_bytes: Int = key(GIB, "Largest new history that one landing brings.", unit="bytes", ge=MIB)
    agent_identity: Annotated[Text, Field(pattern=r"^$|^[^<>\n]*[^<>\s][^<>\n]* <[^<>\s]+>$")] = key(
        "",
        "Whom the agent's own commits name as author and committer; empty = the user.",
        allowed="Name <address>",
        applies="S",
    )
    resign: Flag = key(
        True,
        "Where your Git configuration signs commits (`commit.gpgsign`), commits of the agent are made again, "
        "signed, when they land at your own machine; their ids change. false = they land as they are.",
    )


class NetworkSection(Section):
    """What sandboxed processes may reach."""

    mode: Literal["closed", "allowlist"] = key("closed", "No network, or the hosts of `allow`.")
    allow: Names = key((), "Permitted hosts: host, *.host, host:port, the preset `packages`, or *.")
    max_bytes: Int = key(GIB, "Bytes that one session may transfer.", unit="bytes", ge=0)


class CopySection(Section):
    """The copy tier."""

    max_files: Int = key(200_000, "Largest workspace copied.", ge=1)
    max_bytes: Int = key(4 * GIB, "Largest workspace copied.", unit="bytes", ge=1)


class SandboxSection(Section):
    """Isolation of processes."""

    tier: Literal["auto", "overlay", "copy", "none"] = key(
        "auto", "Isolation used; auto = the best that works here.", applies="S"
    )
    minimum: Literal["overlay", "copy"] = key(
        "copy", "Isolation below which every command is refused.", applies="S"
    )
    network: NetworkSection = section(NetworkSection)
    memory_bytes: Int = key(4 * GIB, "Memory of one sandbox.", unit="bytes", ge=16 * MIB)
    pids: Int = key(4096, "Processes and threads of one sandbox.", ge=1, le=1_000_000)
    cpu_seconds: Float | None = key(None, "CPU time of one command; null = no limit.", unit="s", ge=0.1)
    disk_bytes: Int = key(4 * GIB, "Bytes that one sandbox may write.", unit="bytes", ge=MIB)
    disk_files: Int = key(500_000, "Files and directories that one sandbox may make.", ge=1000)
    max_timeout: Float = key(3600, "Longest time limit a call may ask for.", unit="s", ge=1, le=604_800)
    toolchains: Names = key(
        ("auto",),
        "Which of the tools on your PATH commands see, read-only: `auto` all, `off` none, or names of tools.",
        allowed="auto, off, or a list of asdf, cargo, conda, go, homebrew, java, mise, nix, node, nodenv, "
        "nvm, opt, path, pyenv, python, rbenv, ruby, rustup, sdkman, uv, venv, volta",
        choices=("auto", "off", "none"),
    )
    caches: Literal["auto", "off"] = key(
        "auto", "Whether commands see your caches of packages (Go, Cargo, Maven, npm, pip …), copy-on-write."
    )
    read_only: Names = key((), "Further directories readable in the sandbox.", allowed="absolute paths")
    env: dict[Text, Secret] = key({}, "Variables of every sandboxed process.")
    env_secrets: Names = key((), "Names of `env` that may look like secrets.")
    copying: CopySection = Field(
        default_factory=CopySection.model_construct, alias="copy", description="The copy tier."
    )


class ApprovalRule(Section):
    """One line of `approval.rules`."""

    tool: Text = key(..., "Tool, or a pattern of its arguments: `bash(git *)`.")
    decision: Literal["allow", "ask", "deny"] = key(..., "What happens to such a call; deny wins.")
    reason: Text = key("", "Told to the model with a denial.")


def _rule(value: object) -> object:
    """Accept `deny bash(rm *)` for `{decision: deny, tool: "bash(rm *)"}`."""
    if isinstance(value, str):
        decision, _, tool = value.strip().partition(" ")
        return {"decision": decision, "tool": tool.strip()}
    return value


RuleLine = Annotated[ApprovalRule, BeforeValidator(_rule, json_schema_input_type=ApprovalRule | str)]


class ApprovalSection(Section):
    """When a person is asked before a tool runs."""

    default: Literal["outside", "unsafe"] = key(
        "outside", "`outside` asks for effects outside the branch, `unsafe` for all but the safe tools."
    )
    timeout_s: Float = key(
        300, "After this a turn waits without holding anything.", unit="s", ge=0, le=86_400
    )
    expiry_days: Float = key(7, "How long a question can be answered.", unit="days", ge=0, le=365)
    rules: tuple[RuleLine, ...] = key((), "Rules by tool.", allowed="list of `allow|ask|deny TOOL(PATTERN)`")


class BudgetsSection(Section):
    """Money that may be spent; null = no limit. Days are UTC."""

    session_usd: Float | None = key(None, "Per session.", unit="USD", ge=0)
    user_day_usd: Float | None = key(None, "Per user and day.", unit="USD", ge=0)
    schedule_day_usd: Float | None = key(None, "Per scheduled task and day.", unit="USD", ge=0)
    deployment_day_usd: Float | None = key(None, "For all together per day.", unit="USD", ge=0)


class LimitsSection(Section):
    """Sizes of queues and messages."""

    parallel_turns: Int = key(64, "Turns running at once in one process.", ge=1, le=10_000)
    queue_per_session: Int = key(100, "Inputs waiting in one session.", ge=1, le=100_000)
    queue_total: Int = key(10_000, "Inputs waiting in all.", ge=1, le=10_000_000)
    message_mb: Float = key(1, "Largest message text.", unit="MiB", ge=0.001, le=64)
    upload_mb: Float = key(10, "Largest uploaded file.", unit="MiB", ge=0.001, le=10_240)


class RetentionSection(Section):
    """How long records are kept; 0 = forever."""

    sessions_days: Float = key(0, "How long finished sessions are kept.", unit="days", ge=0)
    deleted_days: Float = key(7, "How long deleted sessions can be restored.", unit="days", ge=0)
    traces_days: Float = key(7, "How long traces are kept.", unit="days", ge=0)
    detail_days: Float = key(90, "Finished inbox and outbox rows, usage in detail.", unit="days", ge=0)


class TurnSection(Section):
    """Turns that crash."""

    max_attempts: Int = key(3, "Crashes after which only a person can resume a turn.", ge=1, le=100)


class InboxSection(Section):
    """Accepted messages."""

    dedupe_days: Float = key(30, "How long a repeated message is recognised.", unit="days", ge=0.01)


class OutboxSection(Section):
    """Deliveries."""

    max_age_h: Float = key(24, "How long a delivery is retried.", unit="h", ge=0.01)


class ResumeSection(Section):
    """Resume after a crash."""

    external: Literal["tell", "ask"] = key(
        "tell", "Whether the model is told of an unfinished outside effect, or a person is asked."
    )


class ShutdownSection(Section):
    """The end of a process."""

    grace_s: Float = key(10, "Time given to running turns.", unit="s", ge=0, le=3600)


class MemorySection(Section):
    """What is remembered between conversations."""

    enabled: Flag = key(True, "Whether memory is read and rewritten.", env=("ENABLE_MEMORY",))
    idle_s: Float = key(300, "Quiet time after which memory is rewritten.", unit="s", ge=0)
    protected: Names = key(
        ("IDENTITY.md", "AGENT.md", "AGENTS.md", "skills/**"),
        "Files whose changes wait for a person under every landing policy.",
        allowed="globs",
    )


class JournalSection(Section):
    """Records of a session."""

    inline_max_kb: Int = key(
        256, "Largest record body kept in the database itself.", unit="KiB", ge=1, le=65_536
    )


class LoggingSection(Section):
    """The log."""

    level: Annotated[Literal["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"], BeforeValidator(_upper)] = key(
        "INFO", "Lowest level that is written.", allowed="DEBUG, INFO, WARNING, ERROR, CRITICAL, any case"
    )
    format: Literal["text", "json"] = key("text", "Format of log lines.")


class TelemetrySection(Section):
    """OpenTelemetry."""

    otlp_endpoint: Url | None = key(None, "Where spans are sent; null = nowhere.", applies="S")
    content: Flag = key(False, "Whether spans hold prompts and answers.")


class CliSection(Section):
    """Preferences of the terminal; flags win."""

    preset: Text | None = key(None, "Preset; unset = agent.preset.")
    model: Text | None = key(None, "Model; unset = provider.model.")
    approval: Flag = key(False, "Whether every unsafe tool asks.")
    vi_mode: Flag = key(False, "vi keys at the prompt.")
    theme: Literal["auto", "light", "dark"] = key("auto", "Colours.")
    notify: Literal["auto", "bell", "off"] = key(
        "auto",
        "What tells of a turn of over 10 s while you look elsewhere; auto: a notification, too.",
    )
    thinking_enabled: Flag | None = key(None, "Unset = agent.thinking_enabled.")
    thinking_effort: Effort | None = key(
        None, "Unset = agent.thinking_effort.", allowed="high, max (xhigh = max)"
    )
    timeout: Float = key(1800, "Longest one-shot run.", unit="s", ge=1, le=604_800)


class SubagentType(Section):
    """A type of subagents beside the built-in ones."""

    description: Text = key("", "What it is for, as models are told.")
    tools: Names | None = key(None, "Its only tools; unset = all of its caller's.")
    instructions: Text | None = key(None, "Its instructions; unset = the usual ones.")
    model: Text | None = key(None, "Its model; unset = as other subagents.")


class DelegationSection(Section):
    """Subagents."""

    tasks_per_call: Int = key(16, "Most tasks in one call.", ge=1, le=1000)
    parallel: Int = key(8, "Most subagents running at once.", ge=1, le=1000)
    per_turn: Int = key(32, "Most subagents in one turn.", ge=1, le=10_000)
    unmerged: Int = key(64, "Most finished subagents waiting to be merged.", ge=1, le=10_000)
    child_s: Float = key(1800, "Longest run of one subagent.", unit="s", ge=1, le=604_800)
    types: dict[Text, SubagentType] = key({}, "Further types by name.")
    checks: Names = key((), "Shell commands that judge tournaments which name none.")
    test_globs: Names = key((), "Files that such checks read; empty = the usual names of tests.")


class TeamsSection(Section):
    """Teammates."""

    wake_lead: Flag = key(True, "Whether a message to an idle lead starts a turn.")
    poll_s: Float = key(5, "How often an idle teammate looks at the board.", unit="s", ge=0.01, le=3600)
    idle_s: Float = key(60, "Idle time after which a teammate shuts down.", unit="s", ge=0.01, le=604_800)
    shutdown_s: Float = key(
        120, "Time after which an unanswered shutdown request expires.", unit="s", ge=0.01, le=604_800
    )
    plan_s: Float = key(
        1800, "Time after which a plan that nobody reviewed expires.", unit="s", ge=0.01, le=604_800
    )
    phases: Int = key(20, "Most turns of one teammate.", ge=1, le=10_000)
