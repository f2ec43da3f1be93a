"""Keys of the doors: `server`, `channels`, `scheduler`, MCP, gateway, web and tool families.

Not here: the doors themselves; a section may be accepted before its door is built.
"""

from collections.abc import Mapping
from ipaddress import ip_network
from typing import Annotated, Literal, cast

from pydantic import AfterValidator, BeforeValidator, Field

from bowerbird.config.fields import Flag, Float, HttpUrl, Int, Names, Secret, Section, Text, Url, key, section


def _network(text: str) -> str:
    try:
        return str(ip_network(text, strict=False))
    except ValueError:
        raise ValueError("must be an IP address or a network, for example 10.0.0.0/8") from None


Networks = tuple[Annotated[Text, AfterValidator(_network)], ...]


class ServerSection(Section):
    """The HTTP server."""

    host: Text = key("127.0.0.1", "Address listened on.", applies="S")
    port: Int = key(8000, "Port listened on.", applies="S", ge=1, le=65_535)
    root_path: Text = key("", "Path prefix behind a reverse proxy.", applies="S")
    auth: Literal["none", "token", "oidc"] = key("none", "Who may come in.", applies="S")
    oidc_issuer: HttpUrl = key(
        Url("https://accounts.google.com"), "Issuer of sign-in tokens.", applies="S", allowed="http(s) URL"
    )
    google_client_id: Text | None = key(
        None, "Client id; set alone it turns sign-in with Google on.", env=("GOOGLE_CLIENT_ID",), applies="S"
    )
    insecure: Flag = key(False, "Whether a non-loopback address may be served without auth.", applies="S")
    origins: Names = key((), "Further Origins admitted.")
    hosts: Names = key((), "Further Host names admitted.")
    allowed_emails: Names = key((), "Addresses that may sign in.")
    allowed_domains: Names = key((), "Domains whose addresses may sign in.")
    denied_users: Names = key(
        (), "Users who may not come in, by sign-in or token.", allowed="addresses, or users of tokens"
    )
    trusted_proxies: Networks = key(
        (), "Reverse proxies whose X-Forwarded-For and X-Forwarded-Proto are believed.",
        applies="S", allowed="addresses or networks",
    )  # fmt: skip
    header_kb: Int = key(32, "Longest request line and headers.", unit="KiB", applies="S", ge=4, le=1024)
    header_timeout: Float = key(10, "Longest wait for them.", unit="s", applies="S", ge=0.1, le=600)
    body_timeout: Float = key(
        30, "Longest wait for a body; each 500 bytes that came give one second more.",
        unit="s", applies="S", ge=0.1, le=3600,
    )  # fmt: skip
    max_connections: Int = key(
        4096, "Open connections; fewer when the system allows fewer files.", applies="S", ge=8, le=1_000_000
    )
    max_connections_per_address: Int = key(
        1536, "Of them from one address; trusted proxies are not counted.", applies="S", ge=1, le=1_000_000
    )
    metrics_token: Secret | None = key(None, "Token that reads /metrics.")
    max_rss_mb: Int = key(0, "Memory above which new work is refused; 0 = off.", unit="MiB", ge=0)
    on_disconnect: Literal["stop"] | None = key(None, "`stop` ends a turn whose client left.")


class AllowedUser(Section):
    """Who may talk to a channel."""

    id: Text = key(..., "Id in the channel.")
    role: Literal["owner", "guest"] = key("owner", "`guest` may not land, undo or approve.")


def _user(value: object) -> object:
    if isinstance(value, bool):
        return value
    if isinstance(value, int | str):
        return {"id": str(value)}
    if isinstance(value, Mapping):
        row = dict(cast("Mapping[str, object]", value))
        if isinstance(row.get("id"), int) and not isinstance(row["id"], bool):
            row["id"] = str(row["id"])
        return row
    return value


User = Annotated[AllowedUser, BeforeValidator(_user, json_schema_input_type=AllowedUser | str | int)]


class TelegramSection(Section):
    """Telegram."""

    enabled: Flag = key(False, "Whether the bot runs.", applies="S")
    token: Secret | None = key(None, "Token of the bot.", applies="S", allowed="needed when enabled")
    trigger: Annotated[Text, Field(pattern=r"\S")] = key(
        "@Bowerbird", "Word that addresses the bot in a group.", allowed="not blank"
    )
    allowed_users: tuple[User, ...] = key(
        (), "Who is answered; empty = nobody.", allowed="ids, or {id, role: owner|guest}"
    )
    stream_interval: Float = key(1.0, "Shortest time between edits.", unit="s", ge=0.1, le=60)
    show_tools: Flag = key(True, "Whether tool calls are shown.")


class ChannelsSection(Section):
    """Chat channels."""

    telegram: TelegramSection = section(TelegramSection)


class SchedulerSection(Section):
    """Scheduled tasks."""

    enabled: Flag = key(False, "Whether tasks run and can be made.", applies="S")
    poll_interval: Float = key(60, "Longest sleep between looks at due tasks.", unit="s", ge=1, le=3600)
    data_file: Text = key(
        "./data/scheduled_tasks.json", "Imported once at start when it exists.", applies="S", base="file"
    )
    min_interval: Float = key(60, "Shortest interval accepted.", unit="s", ge=1)
    timezone: Text = key("UTC", "Zone of tasks that name none.", allowed="IANA zone")
    history_turns: Int = key(5, "Earlier turns that a run sees.", ge=0, le=1000)


class McpTools(Section):
    """Which tools of a server are offered."""

    allow: Names = key((), "Only these; empty = all.")
    deny: Names = key((), "Never these.")


class McpServer(Section):
    """One MCP server."""

    transport: Literal["stdio", "streamable_http", "http", "sse"] | None = key(
        None,
        "How it is reached; unset = stdio with command, streamable_http with url.",
        other_names=("type",),
    )
    command: Text | None = key(None, "Program started.")
    args: Names = key((), "Its arguments.")
    env: dict[Text, Secret] = key({}, "Variables added to its environment.")
    cwd: Text | None = key(None, "Its directory.", base="file")
    url: HttpUrl | None = key(None, "Its address.", allowed="http(s) URL")
    headers: dict[Text, Secret] = key({}, "Headers sent to it.")
    authorization_token: Secret | None = key(None, "Bearer token sent to it.")
    mode: Literal["client", "remote"] = key("client", "`remote` lets the model's provider call it.")
    enabled: Flag = key(True, "Whether it is used.")
    start_timeout: Float = key(10, "Longest start.", unit="s", ge=0.1, le=600)
    call_timeout: Float = key(60, "Longest call.", unit="s", ge=0.1, le=86_400)
    tools: McpTools = section(McpTools)
    approval: Literal["ask", "allow", "deny"] | dict[Text, Literal["ask", "allow", "deny"]] = key(
        "ask", "Whether its calls ask; or per tool.", allowed="ask, allow, deny, or {tool: one of these}"
    )
    trusted: Flag = key(False, "Whether its annotations are believed.")
    sampling: Flag = key(False, "Whether it may use the model.")
    sandbox: Flag = key(False, "Whether it runs in the branch's sandbox.")


class McpSection(Section):
    """MCP servers in a file of their own."""

    file: Text = key(
        "mcp_servers.json",
        "File whose servers are added to mcp_servers.",
        env=("MCP_SERVERS_FILE",),
        base="file",
    )


class SkillsSection(Section):
    """Skills."""

    enabled: Flag = key(True, "Whether skill tools are offered.")
    directory: Text = key(
        "skills", "Directory of skills, in the workspace.", env=("SKILLS_DIR",), base="workspace"
    )


class ToolsSection(Section):
    """Limits of tools that run programs."""

    bash_timeout: Float = key(
        60, "Time limit of a command; its whole process group is killed then.",
        env=("BASH_TIMEOUT",), unit="s", ge=1, le=86_400,
    )  # fmt: skip
    background_timeout: Float = key(
        300, "The same for background runs.", env=("BACKGROUND_TIMEOUT",), unit="s", ge=1, le=604_800
    )
    allowed_commands: Names = key(
        (), "Programs that may run; empty = all.", env=("ALLOWED_COMMANDS",), allowed="names"
    )


class WebSection(Section):
    """Web tools."""

    brave_api_key: Secret | None = key(None, "Set = Brave searches, else DuckDuckGo.")
    fetch_timeout: Float = key(30, "Longest fetch.", unit="s", ge=1, le=600)
    allow_hosts: Names = key((), "Private hosts that may be fetched.")


class TranscriptionSection(Section):
    """Voice messages."""

    enabled: Flag = key(False, "Whether voice is transcribed.")
    provider: Literal["groq", "openai"] = key("groq", "Who transcribes.")
    model: Text = key("whisper-large-v3-turbo", "Model used.")
    api_key: Secret | None = key(None, "Key of that provider.", allowed="needed when enabled")
    base_url: HttpUrl | None = key(None, "Host that gets the calls.", allowed="http(s) URL")
    timeout: Float = key(30, "Longest call.", unit="s", ge=1, le=600)


class Bridge(Section):
    """One bridge of the host gateway."""

    allowed_commands: Names = key((), "Programs it may start.")
    allowed_cwd: Names = key((), "Directories that may be given; empty = none.", base="file")
    token: Secret | None = key(None, "Its token.", allowed="at least 16 characters")
    env: Names = key((), "Variables passed on to its programs.")
    max_timeout: Float = key(600, "Longest run.", unit="s", ge=1, le=86_400)
    approval: Literal["ask", "allow", "deny"] = key("ask", "Whether its calls ask.")
    agent: Flag = key(True, "Whether agents may use it.")


def _thirty(value: object) -> object:
    return 30 if value == 0 and not isinstance(value, bool) else value


class GatewaySection(Section):
    """The host gateway."""

    enabled: Flag = key(False, "Whether its tools are offered.", applies="S")
    url: HttpUrl | None = key(None, "Where it listens.", allowed="http(s) URL")
    token: Secret | None = key(
        None,
        "Token for a file with exactly one bridge.",
        env=("GATEWAY_TOKEN", "CC_BRIDGE_TOKEN"),
        applies="S",
    )
    bind: Text = key("127.0.0.1", "Address it listens on.", applies="S")
    port: Int = key(
        9842, "Port it listens on.", env=("GATEWAY_PORT", "CC_BRIDGE_PORT"), applies="S", ge=1, le=65_535
    )
    socket: Text | None = key(None, "Unix socket it listens on.", applies="S", base="file")
    default_timeout: Annotated[Float, BeforeValidator(_thirty)] = key(
        30, "Time limit of calls that give none.", unit="s", ge=1, le=600, allowed="1–600, 0 = 30"
    )
    bridges: dict[Text, Bridge] = key({}, "Bridges by name.")


class ClaudeCodeSection(Section):
    """Claude Code through the gateway."""

    enabled: Flag = key(False, "Whether it is offered.", applies="S")
    bridge_url: HttpUrl | None = key(None, "Unset = gateway.url.", allowed="http(s) URL")
    bridge_token: Secret | None = key(None, "Unset = gateway.token.")
    projects_dir: Text = key("~/.claude/projects", "Where its conversations are.", base="file")
    permission_mode: Text | None = key(None, "Passed to it.", allowed="bypassPermissions needs allow_bypass")
    timeout: Float = key(0, "Longest run; 0 = 1,800 s.", unit="s", ge=0, le=604_800)
    claude_path: Text = key("claude", "The program.")
    state_file: Text = key("data/cc_user_states.json", "Imported once at start.", applies="S", base="file")
    allow_bypass: Flag = key(False, "Whether permission_mode bypassPermissions is permitted.")


class AvatarSection(Section):
    """Accepted; nothing uses it."""

    enabled: Flag = key(False, "Nothing uses it.")
    tier: Text = key("lite", "Nothing uses it.")


class McpExpose(Section):
    """Bowerbird as an MCP server."""

    expose: Names | None = key(None, "Tools offered; null = all.")
    allow_land: Flag = key(False, "Whether clients may land.")


class OpenAiDoor(Section):
    """The OpenAI-compatible API."""

    enabled: Flag = key(False, "Whether it is served.", applies="S")


class ProtocolsSection(Section):
    """Protocol doors."""

    mcp: McpExpose = section(McpExpose)
    openai: OpenAiDoor = section(OpenAiDoor)


class AcpSection(Section):
    """Bowerbird in editors."""

    allowed_roots: Names = key((), "Directories it may work in; empty = home and current.", base="file")
    on_disconnect: Literal["stop"] | None = key(None, "`stop` ends the turn when the editor leaves.")
