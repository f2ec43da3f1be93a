"""The settings tree: every key of the program, in one frozen value.

Here: the root, and what follows from its values alone. Not here: where values come from.
Constructing `Settings` reads neither environment nor files; `load_settings` does that and tells for each
key who set it. pydantic-settings could not tell, and its import is a tenth of a small command's time.
"""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from bowerbird.config.fields import Secret, Text, Url, section
from bowerbird.config.sections.agent import (
    AgentSection,
    LocalSection,
    ModelEntry,
    ProviderSection,
    ProvidersSection,
    RouterSection,
)
from bowerbird.config.sections.channels import ChannelsSection, TranscriptionSection
from bowerbird.config.sections.claude_code import ClaudeCodeSection
from bowerbird.config.sections.doors import (
    HooksSection,
    McpSection,
    McpServer,
    ProtocolsSection,
    PushSection,
    SchedulerSection,
    ServerSection,
    SkillsSection,
    ToolsSection,
    WebSection,
)
from bowerbird.config.sections.gateway import GatewaySection
from bowerbird.config.sections.ground import (
    ApprovalSection,
    BudgetsSection,
    CliSection,
    DelegationSection,
    DispatchSection,
    GitSection,
    InboxSection,
    JournalSection,
    LandingSection,
    LimitsSection,
    LoggingSection,
    MemorySection,
    OutboxSection,
    ResumeSection,
    RetentionSection,
    SandboxSection,
    ShutdownSection,
    StoreSection,
    TeamsSection,
    TelemetrySection,
    TurnSection,
    WorkspaceSection,
)


class Settings(BaseModel):
    """All settings. `Settings()` holds the default of every key.

    Raises pydantic's ValidationError for a wrong value or unknown key.

    Example:
        >>> Settings(agent=AgentSection(max_turns=5)).agent.max_turns
        5
    """

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    agent: AgentSection = section(AgentSection)
    provider: ProviderSection = section(ProviderSection)
    providers: ProvidersSection = section(ProvidersSection)
    model_router: RouterSection = section(RouterSection)
    models: dict[Text, ModelEntry] = Field(
        default_factory=dict[str, ModelEntry], description="Settings for single models, by name."
    )
    local: LocalSection = section(LocalSection)
    store: StoreSection = section(StoreSection)
    dispatch: DispatchSection = section(DispatchSection)
    workspace: WorkspaceSection = section(WorkspaceSection)
    landing: LandingSection = section(LandingSection)
    git: GitSection = section(GitSection)
    sandbox: SandboxSection = section(SandboxSection)
    tools: ToolsSection = section(ToolsSection)
    approval: ApprovalSection = section(ApprovalSection)
    budgets: BudgetsSection = section(BudgetsSection)
    limits: LimitsSection = section(LimitsSection)
    retention: RetentionSection = section(RetentionSection)
    turn: TurnSection = section(TurnSection)
    inbox: InboxSection = section(InboxSection)
    outbox: OutboxSection = section(OutboxSection)
    resume: ResumeSection = section(ResumeSection)
    shutdown: ShutdownSection = section(ShutdownSection)
    journal: JournalSection = section(JournalSection)
    memory: MemorySection = section(MemorySection)
    skills: SkillsSection = section(SkillsSection)
    web: WebSection = section(WebSection)
    scheduler: SchedulerSection = section(SchedulerSection)
    delegation: DelegationSection = section(DelegationSection)
    teams: TeamsSection = section(TeamsSection)
    mcp: McpSection = section(McpSection)
    mcp_servers: dict[Text, McpServer] = Field(
        default_factory=dict[str, McpServer], description="MCP servers by name."
    )
    protocols: ProtocolsSection = section(ProtocolsSection)
    hooks: HooksSection = section(HooksSection)
    gateway: GatewaySection = section(GatewaySection)
    claude_code: ClaudeCodeSection = section(ClaudeCodeSection)
    push: PushSection = section(PushSection)
    server: ServerSection = section(ServerSection)
    channels: ChannelsSection = section(ChannelsSection)
    transcription: TranscriptionSection = section(TranscriptionSection)
    cli: CliSection = section(CliSection)
    logging: LoggingSection = section(LoggingSection)
    telemetry: TelemetrySection = section(TelemetrySection)

    def secrets(self) -> frozenset[str]:
        """Return every secret text in this tree, for the redactor.

        Example:
            >>> Settings().secrets()
            frozenset()
        """
        return frozenset(_secrets_in(self))


AppConfig = Settings
"""The name under which `create_agent` takes them."""


def _secrets_in(value: Any) -> list[str]:
    if isinstance(value, Secret):
        return [value.reveal()] if value else []
    if isinstance(value, Url):
        return _password_of(value.reveal())
    if isinstance(value, BaseModel):
        fields: list[Any] = [v for _, v in value]
        return [text for item in fields for text in _secrets_in(item)]
    if isinstance(value, dict):
        items: list[Any] = list(value.values())  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType] - any mapping of the tree
        return [text for item in items for text in _secrets_in(item)]
    return []


def _password_of(url: str) -> list[str]:
    from urllib.parse import unquote, urlsplit

    try:
        parts = urlsplit(url)
    except ValueError:
        return []
    # The user of a database is a name; elsewhere a lone one may well be a token.
    is_token = parts.username is not None and "@" in url and not parts.scheme.startswith("postgres")
    found = parts.password or (parts.username if is_token else "")
    return [found, unquote(found)] if found else []
