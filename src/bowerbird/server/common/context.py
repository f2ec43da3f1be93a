"""What the server stands on, as one frozen value: services, settings, and who is calling.

Here: `ServerContext` (made by `app/`), `ServerSettings`, `Caller`, and the small protocols for what
is bound above this package. Not here: any decision, any request or answer.

In a handler: `context_of(request)` is the context, `caller_of(request)` who asks. Seams between the
parts of this package:

- `access/` (authentication, Host, Origin, CORS, headers, rates, overload) gives `middleware_for(context)
  -> list[Middleware]` (outermost first), `require("viewer" | "user" | "admin")` (a dependency that returns
  the `Caller`) and `router` (`/api/auth/…`: SV-18, tickets, tokens). One of its middleware identifies the
  caller of every http and websocket scope before anything else sees the request and puts the `Caller`
  into `scope["state"]["caller"]`; `require` only compares roles. With auth off it is `NOBODY_ELSE`.
- `socket/` gives `router`: the WebSocket and the event streams (SV-20, SV-35 … SV-51). It calls
  `context.presence.joined(thread_id)` when a viewer is accepted and `.left(thread_id)` when it is gone
  (SV-53 clean-up, SV-49 viewers), and ends its viewers when `context.life.draining` is set (SV-50).
- Errors: `errors.problem(code, …)` raised, or `errors.problem_response(…)` sent before a route is known.
- A session by id: `await owned_session(context, caller, id)` (`ownership.py`), 404 for anybody else's.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, cast

from starlette.requests import HTTPConnection

from bowerbird.server.common.doorstep import DoorLimits
from bowerbird.server.common.reloaded import Reloaded
from bowerbird.sessions.shown import Defaults

if TYPE_CHECKING:
    from bowerbird.boards.boards import Boards
    from bowerbird.models.offered import OfferedModel
    from bowerbird.sandbox.host import SandboxHost
    from bowerbird.sandbox.run.status import SandboxStatus
    from bowerbird.server.common.desk import Desk
    from bowerbird.server.common.metrics import ServerMetrics
    from bowerbird.server.common.presence import Presence
    from bowerbird.sessions.branches.branches import Branches
    from bowerbird.sessions.lookup import SessionRow
    from bowerbird.sessions.service import SessionService
    from bowerbird.sessions.subagents.for_doors import DoorSubagents
    from bowerbird.sessions.subagents.tournaments import Tournaments
    from bowerbird.skills import SkillLibrary
    from bowerbird.store.store import Store
    from bowerbird.tools import Toolset

Role = Literal["viewer", "user", "admin"]
AuthKind = Literal["none", "token", "oidc"]
Policy = Literal["review", "turn", "step"]

ROLES: tuple[Role, ...] = ("viewer", "user", "admin")  # each may do what those before it may
MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Caller:
    """Who sent a request.

    Attributes:
        user_id: owner of what they make; "" is the one user of a server without auth.
        role: what they may do. email, name, picture: as a sign-in told them, or "".
        credential: id of the token or session they came with, "" for none; never the secret.
    """

    user_id: str
    role: Role
    email: str = ""
    name: str = ""
    picture: str = ""
    credential: str = ""

    def may(self, role: Role) -> bool:
        """Whether this caller may do what `role` may."""
        return ROLES.index(self.role) >= ROLES.index(role)

    @property
    def owner(self) -> str | None:
        """What `sessions.owner` holds for their sessions."""
        return self.user_id or None

    @property
    def authority(self) -> 'Literal["admin", "owner"]':
        """What they may decide of limits in money."""
        return "admin" if self.role == "admin" else "owner"

    def owns(self, owner: str | None) -> bool:
        """Whether a thing of `owner` exists for this caller; all things do for an admin."""
        return self.role == "admin" or (owner is not None and owner == self.user_id)


NOBODY_ELSE = Caller("", "admin")  # the one user of a server without auth


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    """Frozen values of the server, filled by `app/` from the settings tree.

    Attributes:
        host, port: address listened on. root_path: prefix behind a proxy.
        auth … denied_users: who may come in.
        trusted_proxies: whose X-Forwarded-* count. door: what connections may take.
        metrics_token: reads `/metrics` without a role. max_rss_mb: 0 = no limit.
        on_disconnect: `stop` ends the turn of every client that left; None = as SV-49 says.
        workspace: directory of conversations that name none. registered: further ones by name.
        max_turns: model calls of a turn, at most. landing: policy of new branches.
        cleanup, cleanup_delay_s: SV-53.
        hide: globs hidden in every workspace.
        upload_bytes: of one file; upload_total_bytes: of one request; upload_files: of one request.
        body_bytes: of other requests; message_body_bytes: of messages with images.
        request_rate, new_conversation_rate: per second on average and at once, by user or address;
            failed_rate: of wrong credentials by address.
        max_lag_s: lateness of the event loop above which new work is refused.
        parallel_turns, queue_total: SV-60, SV-61. traces_days: SV-33.
        budgets: limits in USD by scope (`session`, `user`, `schedule`, `deployment`), None = none.
    """

    host: str = "127.0.0.1"
    port: int = 8000
    root_path: str = ""
    auth: AuthKind = "none"
    oidc_issuer: str = "https://accounts.google.com"
    google_client_id: str | None = None
    insecure: bool = False
    origins: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    allowed_emails: tuple[str, ...] = ()
    allowed_domains: tuple[str, ...] = ()
    denied_users: tuple[str, ...] = ()
    trusted_proxies: tuple[str, ...] = ()
    door: DoorLimits = field(default_factory=DoorLimits)
    metrics_token: str | None = None
    max_rss_mb: int = 0
    on_disconnect: Literal["stop"] | None = None
    workspace: str | None = None
    registered: Mapping[str, str] = field(default_factory=dict[str, str])
    max_turns: int = 200
    landing: Policy = "review"
    cleanup: Literal["release", "discard"] = "release"
    cleanup_delay_s: float = 300.0
    hide: tuple[str, ...] = ()
    upload_bytes: int = 10 * MIB
    upload_total_bytes: int = 100 * MIB
    upload_files: int = 50
    body_bytes: int = 2 * MIB
    message_body_bytes: int = 32 * MIB
    request_rate: tuple[float, float] = (20.0, 60.0)
    new_conversation_rate: tuple[float, float] = (10 / 60, 100.0)
    failed_rate: tuple[float, float] = (5 / 60, 5.0)
    max_lag_s: float = 0.5
    parallel_turns: int = 64
    queue_total: int = 10_000
    traces_days: float = 7.0
    budgets: Mapping[str, float | None] = field(default_factory=dict[str, "float | None"])
    defaults: Defaults = field(default_factory=Defaults)


@dataclass(slots=True)
class InForce:
    """The settings that hold now; loading them anew replaces the value.

    Attributes:
        revoked: grows when a credential is taken away; who is inside is looked at again.
    """

    settings: ServerSettings
    revoked: int = 0

    def follow(self, settings: ServerSettings) -> None:
        """Let other settings hold from now on."""
        self.settings = settings

    def note_revoked(self) -> None:
        """Say that a credential was taken away."""
        self.revoked += 1


@dataclass(frozen=True, slots=True)
class Named:
    """One tool, skill or preset as lists show it."""

    name: str
    description: str


class Offers(Protocol):
    """What conversations are offered; bound by `app/`, which knows settings and maker."""

    @property
    def model(self) -> str:
        """The model that conversations run on which name none."""
        ...

    def model_of(self, session: "SessionRow") -> str:
        """Return the model that a session runs on."""
        ...

    def window_of(self, session: "SessionRow") -> int:
        """Return how many tokens of context a session's turns plan with; blocks at the first call."""
        ...

    @property
    def model_pattern(self) -> str:
        """Return the regular expression that names of models fit, prefixes included."""
        ...

    def models(self) -> "Sequence[OfferedModel]":
        """Return the models that can be chosen, those that settings name first; blocks at the first call."""
        ...

    def knows_model(self, name: str) -> str | None:
        """Return why `name` cannot be a conversation's model, None when it can."""
        ...

    def presets(self) -> Sequence[Named]:
        """Return the presets there are, by name."""
        ...

    async def tools(self, session: "SessionRow | None" = None) -> "Toolset":
        """Return the tools a session is offered now; None = a new conversation with the defaults."""
        ...

    async def agents(self) -> "Sequence[AgentOffered]":
        """Return the agents that work can be given to, by name."""
        ...

    def skills(self) -> "SkillLibrary | None":
        """Return the skills of the default workspace, None when skills are off."""
        ...

    def skills_dir(self) -> Path | None:
        """Return the directory that holds the user's skills, None when skills are off."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentOffered:
    """One agent that work can be given to.

    Attributes:
        type: `subagent` for those of `task` and `spawn_subagents`; other vendors': `api`, `cli`, `local`.
        status: `operative`, or why it cannot be used now, as a word; `detail` in words.
        tools: what it may use, None = all that its caller has. model: its own, None = the usual one.
        max_cost: US dollars that one run of it may cost, None = no limit.
    """

    name: str
    type: str
    description: str
    status: str = "operative"
    detail: str = ""
    model: str | None = None
    tools: tuple[str, ...] | None = None
    display_name: str = ""
    capabilities: Sequence[str] = ()
    transports: Sequence[str] = ()
    max_cost: float | None = None
    version: str | None = None
    latency_ms: float | None = None
    checked_at: str = ""


@dataclass(slots=True)
class Life:
    """Where the server stands between start and end; set by whoever runs it.

    Attributes:
        ready: the session service was started. draining: no new work is taken, viewers are sent away.
    """

    ready: asyncio.Event = field(default_factory=asyncio.Event)
    draining: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerContext:
    """Everything that handlers use.

    Attributes:
        in_force: holds the settings; read them as `settings`, when they are needed.
        sessions: the session service, started by the owner. store, branches: what it stands on.
        offers: models, presets, tools and skills.
        subagents, tournaments: of sessions, beside their turns. boards: task boards of workspaces.
        sandboxes: what runs on branches. sandbox_status: its probe, cached by the host.
        data_dir: where everything is kept. version: of the program.
        store_kind: `sqlite` or `postgresql`.
        reload: loads the settings anew; None = this server was given them as values.
        desk: shows and changes them; None as with `reload`.
        presence: viewers of conversations and the clean-up after the last one.
        metrics: counters and gauges of `/metrics`. life: start and end.
    """

    in_force: InForce
    sessions: "SessionService"
    store: "Store"
    branches: "Branches"
    offers: Offers
    subagents: "DoorSubagents"
    tournaments: "Tournaments"
    boards: "Boards"
    sandboxes: "SandboxHost"
    sandbox_status: "Callable[[], Awaitable[SandboxStatus]]"
    data_dir: Path
    version: str
    store_kind: str
    presence: "Presence"
    metrics: "ServerMetrics"
    reload: "Callable[[], Awaitable[Reloaded]] | None" = None
    desk: "Desk | None" = None
    life: Life = field(default_factory=Life)

    @property
    def settings(self) -> ServerSettings:
        """The settings that hold now; whoever keeps them keeps old ones after a reload."""
        return self.in_force.settings


def context_of(connection: HTTPConnection) -> ServerContext:
    """Return the context of the application that answers `connection` (a request or a socket)."""
    return cast("ServerContext", connection.app.state.context)


def caller_of(connection: HTTPConnection) -> Caller:
    """Return who is calling, as access control found out; KeyError is a hole in the middleware."""
    state = cast("dict[str, Any]", connection.scope["state"])
    return cast("Caller", state["caller"])
