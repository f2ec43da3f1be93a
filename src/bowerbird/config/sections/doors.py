"""Keys of the doors: `server`, MCP, web and tool families.

Not here: the doors themselves. A section enters with the code that reads it (`config/absent.py`
names those that people may look for).
"""

from ipaddress import ip_network
from typing import Annotated, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

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

    host: Text = key("127.0.0.1", "Address to listen on.", applies="S")
    port: Int = key(8000, "Port to listen on.", applies="S", ge=1, le=65_535)
    root_path: Text = key("", "Path prefix behind a reverse proxy.", applies="S")
    auth: Literal["none", "token", "oidc"] = key(
        "none", "How people and programs prove who they are.", applies="S"
    )
    oidc_issuer: HttpUrl = key(
        Url("https://accounts.google.com"), "Issuer of sign-in tokens.", applies="S", allowed="http(s) URL"
    )
    google_client_id: Text | None = key(
        None,
        "Client id; setting it is enough to turn on sign-in with Google.",
        env=("GOOGLE_CLIENT_ID",),
        applies="S",
    )
    insecure: Flag = key(False, "Whether a non-loopback address may be served without auth.", applies="S")
    origins: Names = key((), "Further origins that are allowed.")
    hosts: Names = key((), "Further host names that are allowed.")
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
    header_timeout: Float = key(
        10, "Longest wait for the request line and headers.", unit="s", applies="S", ge=0.1, le=600
    )
    body_timeout: Float = key(
        30, "Longest wait for a body; each 500 bytes received add one second.",
        unit="s", applies="S", ge=0.1, le=3600,
    )  # fmt: skip
    max_connections: Int = key(
        4096, "Open connections; fewer when the system allows fewer files.", applies="S", ge=8, le=1_000_000
    )
    max_connections_per_address: Int = key(
        1536,
        "Open connections from one address; trusted proxies are not counted.",
        applies="S",
        ge=1,
        le=1_000_000,
    )
    metrics_token: Secret | None = key(None, "Token that reads /metrics.")
    max_rss_mb: Int = key(0, "Memory above which new work is refused; 0 = off.", unit="MiB", ge=0)
    on_disconnect: Literal["stop"] | None = key(None, "`stop` ends a turn whose client left.")


def _zone(text: str) -> str:
    try:
        ZoneInfo(text)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError("must be a time zone, for example Europe/Rome") from None
    return text


class SchedulerSection(Section):
    """Scheduled tasks."""

    enabled: Flag = key(
        False, "Whether a server runs scheduled tasks, and new ones can be made.", applies="S"
    )
    poll_interval: Float = key(
        60, "Longest time between two looks at all tasks.", unit="s", applies="S", ge=1, le=3600
    )
    data_file: Text = key(
        "./data/scheduled_tasks.json",
        "File of tasks of an earlier program; imported once at start when it exists.",
        applies="S",
        base="file",
    )
    min_interval: Float = key(
        60, "Shortest interval that a task may have.", unit="s", applies="S", ge=1, le=86_400
    )
    timezone: Annotated[Text, AfterValidator(_zone)] = key(
        "UTC", "Time zone of tasks that name none.", applies="S", allowed="a time zone"
    )
    history_turns: Int = key(5, "Earlier runs of a task that its next one sees.", applies="S", ge=0, le=1000)


class McpTools(Section):
    """Which tools of a server are offered."""

    allow: Names = key((), "Only these; empty = all.")
    deny: Names = key((), "Never these.")


class McpOAuth(Section):
    """How people sign in at a server (`bowerbird mcp login`)."""

    client_id: Text | None = key(None, "A client that the server knows; unset = one is registered.")
    client_secret: Secret | None = key(None, "Its secret, where it has one.")


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
    cwd: Text | None = key(None, "Its directory; unset = an empty one.", base="file")
    url: HttpUrl | None = key(None, "Its address.", allowed="http(s) URL")
    headers: dict[Text, Secret] = key({}, "Headers sent to it.")
    authorization_token: Secret | None = key(None, "Bearer token sent to it.")
    oauth: McpOAuth = section(McpOAuth)
    mode: Literal["client", "remote"] = key("client", "`remote` lets the model's provider call it.")
    enabled: Flag = key(True, "Whether it is used.")
    start_timeout: Float = key(10, "Longest start.", unit="s", ge=0.1, le=600)
    call_timeout: Float = key(60, "Longest call.", unit="s", ge=0.1, le=86_400)
    tools: McpTools = section(McpTools)
    approval: Literal["ask", "allow", "deny"] | dict[Text, Literal["ask", "allow", "deny"]] = key(
        "ask",
        "Whether its calls ask first; can be set per tool.",
        allowed="ask, allow, deny, or {tool: one of these}",
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


class McpServing(Section):
    """Bowerbird as an MCP server."""

    enabled: Flag = key(True, "Whether the HTTP server answers at /mcp.", applies="S")
    expose: Names = key((), "Tools that are offered; empty = all.", allowed="names or patterns of tools")
    allow_land: Flag = key(
        False, "Whether tools may land changes and take landings back; the caller is usually a model."
    )


class ProtocolsSection(Section):
    """Protocols in which other programs speak to Bowerbird."""

    mcp: McpServing = section(McpServing)


class SkillsSection(Section):
    """Skills."""

    enabled: Flag = key(True, "Whether skill tools are offered.")
    directory: Text = key(
        "skills", "Directory of skills, in the workspace.", env=("SKILLS_DIR",), base="workspace"
    )


class ToolsSection(Section):
    """Limits of tools that run programs."""

    bash_timeout: Float = key(
        120, "Time limit of a command; its whole process group is killed then.",
        env=("BASH_TIMEOUT",), unit="s", ge=1, le=86_400,
    )  # fmt: skip
    background_timeout: Float = key(
        300, "The same for background runs.", env=("BACKGROUND_TIMEOUT",), unit="s", ge=1, le=604_800
    )
    allowed_commands: Names = key(
        (), "Programs that may run; empty = all.", env=("ALLOWED_COMMANDS",), allowed="names"
    )


DOCUMENTATION_HOSTS = (
    "docs.python.org", "*.readthedocs.io", "developer.mozilla.org", "nodejs.org", "doc.rust-lang.org",
    "docs.rs", "pkg.go.dev", "go.dev", "docs.oracle.com", "learn.microsoft.com", "en.cppreference.com",
    "man7.org", "www.postgresql.org", "sqlite.org", "www.sqlite.org", "docs.djangoproject.com",
    "react.dev", "www.typescriptlang.org", "peps.python.org", "packaging.python.org",
)  # fmt: skip
"""Sites of documentation, where a query string reaches nobody who would collect it."""


class WebSection(Section):
    """Web tools."""

    brave_api_key: Secret | None = key(None, "With a key, searches use Brave; otherwise DuckDuckGo.")
    fetch_timeout: Float = key(30, "Longest fetch.", unit="s", ge=1, le=600)
    allow_hosts: Names = key(
        DOCUMENTATION_HOSTS,
        "Hosts that may be fetched without a question, as globs; those that you add may be private.",
    )


class PushSection(Section):
    """Web push: browsers without an open page are told that an agent asks, or is done."""

    enabled: Flag = key(True, "Whether browsers may ask to be told.")
    after: Float = key(
        10, "How long a turn must have taken for its end to be told.", unit="s", ge=0, le=86_400
    )
    contact: Annotated[Text, Field(pattern=r"^(mailto:\S+@\S+|https://\S+)$")] = key(
        "mailto:bowerbird@example.com",
        "Who runs the server; push services are told.",
        allowed="mailto: or https: address",
    )
    allow_hosts: Names = key(
        (), "Push services that may be private or without https, by `host` or `host:port`."
    )


class HookEntry(Section):
    """One command of `hooks`."""

    command: Text = key(..., "Line for the shell; it gets the event as JSON on standard input.")
    tools: Names = key((), "Tools it is about, empty = all.", allowed="names or patterns of tools")
    timeout: Float = key(
        30, "Time it has; a guard that is silent for longer forbids.", unit="s", ge=0.1, le=600
    )
    cwd: Text | None = key(None, "Its directory; unset = an empty one.", base="file")
    env: dict[Text, Secret] = key({}, "Variables added to its environment.")


def _hook(value: object) -> object:
    """Accept a command alone."""
    return {"command": value} if isinstance(value, str) else value


HookLines = tuple[Annotated[HookEntry, BeforeValidator(_hook, json_schema_input_type=HookEntry | str)], ...]


class HooksSection(Section):
    """Commands of yours that are told what agents do; they run outside the sandbox, as you."""

    before_tool: HookLines = key((), "Before a tool runs; may forbid it.", allowed="list of commands")
    after_tool: HookLines = key((), "After a tool has run.", allowed="list of commands")
    turn_end: HookLines = key((), "When a turn has ended.", allowed="list of commands")
    before_land: HookLines = key((), "Before changes land; may forbid it.", allowed="list of commands")
    notification: HookLines = key((), "When an agent asks a person something.", allowed="list of commands")
