"""Keys of the host gateway (CF-60), of the gateway itself and of the server whose agents use it.

Not here: running a command (`gateway/`), the tool of agents (`tools/host.py`).
"""

from typing import Literal

from bowerbird.config.fields import Flag, Float, Int, Names, Secret, Section, Text, Url, key

NOT_FOR_AGENTS = ("claude-code", "1password")
"""Bridges that no agent may use unless its entry says so."""


class BridgeEntry(Section):
    """One client's commands of the host, behind a token of its own."""

    token: Secret | None = key(None, "Token of this bridge, at least 16 characters.")
    allowed_commands: Names = key(
        (),
        "Commands that may run: with any arguments, or as whole lines.",
        applies="S",
        allowed="names on PATH or absolute paths, alone or with all their words",
    )
    allowed_cwd: Names = key((), "Directories in which they may run; empty = none may be named.", applies="S")
    env: Names = key((), "Variables of the host that they get.", applies="S", allowed="names")
    max_timeout: Float = key(600, "Longest run.", unit="s", applies="S", ge=1, le=86_400)
    approval: Literal["ask", "allow"] = key("ask", "Whether agents ask a person before each command.")
    agent: Flag | None = key(
        None, f"Whether agents may use it; unset = yes, save for {' and '.join(NOT_FOR_AGENTS)}."
    )


class GatewaySection(Section):
    """Commands of the host for agents: `bowerbird gateway` runs them, `host_execute` asks for them."""

    enabled: Flag = key(False, "Whether agents are offered the tool host_execute.")
    url: Url | None = key(
        None,
        "Address of the gateway; unset = http://127.0.0.1 and the port, or the socket.",
        allowed="http(s) URL, or unix:/path",
    )
    token: Secret | None = key(
        None, "Token of the only bridge, where it has none of its own.",
        env=("GATEWAY_TOKEN", "CC_BRIDGE_TOKEN"),
    )  # fmt: skip
    bind: Text = key("127.0.0.1", "Address that the gateway listens on.", applies="S")
    port: Int = key(
        9842, "Port that it listens on.", env=("GATEWAY_PORT", "CC_BRIDGE_PORT"), applies="S", ge=1, le=65_535
    )
    socket: Text | None = key(
        None, "Unix socket that it listens on in place of address and port.", base="file", applies="S"
    )
    default_timeout: Float = key(30, "Time of a command that names none; 0 = 30.", unit="s", ge=0, le=600)
    bridges: dict[Text, BridgeEntry] = key({}, "Bridges by name.")

    def token_of(self, name: str) -> str | None:
        """Return the token of a bridge; `gateway.token` is that of the only one."""
        own = self.bridges[name].token
        if own:
            return own.reveal()
        return self.token.reveal() if self.token and len(self.bridges) == 1 else None

    @property
    def address(self) -> str:
        """Where the gateway is reached."""
        if self.url is not None:
            return self.url.reveal()
        return f"http://127.0.0.1:{self.port}" if self.socket is None else f"unix:{self.socket}"

    def for_agents(self, name: str) -> bool:
        """Whether agents may use a bridge."""
        said = self.bridges[name].agent
        return name not in NOT_FOR_AGENTS if said is None else said
