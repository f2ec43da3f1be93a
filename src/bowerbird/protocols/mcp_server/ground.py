"""What the MCP server stands on, and who is calling.

Here: frozen values that `app/` makes. Not here: any tool, any transport.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from bowerbird.providers.contract.agent import AgentRegistry
    from bowerbird.sessions.service import SessionService
    from bowerbird.sessions.values import NewSession

Role = Literal["viewer", "user", "admin"]
ROLES: tuple[Role, ...] = ("viewer", "user", "admin")  # each may do what those before it may


@dataclass(frozen=True, slots=True)
class McpCaller:
    """Who calls; "" is the one user of a machine or a server without auth."""

    user_id: str
    role: Role

    @property
    def owner(self) -> str | None:
        """What `sessions.owner` holds for their sessions."""
        return self.user_id or None

    @property
    def authority(self) -> Literal["admin", "owner"]:
        """What they may decide of limits in money."""
        return "admin" if self.role == "admin" else "owner"

    def may(self, role: Role) -> bool:
        """Whether this caller may do what `role` may."""
        return ROLES.index(self.role) >= ROLES.index(role)


@dataclass(frozen=True, slots=True)
class McpRules:
    """Settings of this door.

    Attributes:
        expose: names or patterns of the tools that are offered, none = all.
        allow_land: whether tools may bring changes into the user's directory, and take them back.
        calls_per_minute, running: runs of agents of one caller.
    """

    expose: tuple[str, ...] = ()
    allow_land: bool = False
    calls_per_minute: int = 30
    running: int = 4

    def exposes(self, name: str) -> bool:
        """Whether a tool of this name is offered.

        Example:
            >>> rules = McpRules(("session_*",))
            >>> rules.exposes("session_send"), rules.exposes("branch_diff")
            (True, False)
        """
        return not self.expose or any(fnmatchcase(name, pattern) for pattern in self.expose)


@dataclass(frozen=True, slots=True)
class PresetText:
    """A preset as a prompt."""

    name: str
    description: str
    text: str


class Places(Protocol):
    """How sessions of this door begin and who runs their turns; bound by `app/`."""

    def new_session(self, caller: McpCaller, preset: str | None, workspace: str | None) -> "NewSession":
        """Return the session that is asked for; raises InvalidArgument for an unknown preset or workspace."""
        ...

    def workspace(self) -> str | None:
        """Return the directory that agents work on, None for the usual one."""
        ...

    def directories(self) -> Sequence[str]:
        """Return the directories that landings of this door may lie in, besides those of sessions."""
        ...

    async def drive(self, thread_id: str) -> None:
        """See to it that the session's turns are run."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class McpGround:
    """What tools, resources and prompts use.

    Attributes:
        sessions: the session service. places: how its sessions begin here.
        agents: gives the registry of provider agents, which is opened with the first question.
        agent_thread: gives the session that holds the changes of one of the caller's provider sessions,
            None for any other id.
        rules: settings that hold now. redact: takes configured secrets out of a text.
        presets: what prompts are made of.
        version: of the program.
    """

    sessions: "SessionService"
    places: Places
    agents: "Callable[[], AgentRegistry]"
    agent_thread: Callable[[str, McpCaller], Awaitable[str | None]]
    rules: Callable[[], McpRules]
    redact: Callable[[str], str]
    presets: Callable[[], Sequence[PresetText]]
    version: str
