"""What a person may set about sandboxes, as plain values (`sandbox.*` of the settings tree)."""

from collections.abc import Mapping

import msgspec

from bowerbird.sandbox.run.limits import RunLimits


class SandboxSettings(msgspec.Struct, frozen=True):
    """Settings of all sandboxes of one process.

    Args:
        tier: `auto`, `overlay`, `copy`, `none`. minimum: `overlay` or `copy`.
        max_timeout_s: no command may run longer, unless a longer timeout is configured for it.
        allow: entries of the network's allow-list; empty = closed.
        max_bytes: transfer limit of one session.
        toolchains: `auto`, `off`, or names of `run.toolchains.KNOWN`. read_only: further directories to show.
        caches: `auto`: commands see the user's caches of packages; or `off`.
        env, env_secrets: further environment of commands; see `profile.environment`.
        copy_max_files, copy_max_bytes: larger branches are not copied (`sandbox.copy.*`).
        warm_s: seconds that an idle sandbox is kept. warm_most: how many are kept.
        commands: how many commands of one branch run at once; more wait.
        background: how many background commands of one branch may run.
        packages: hosts that the allow-list entry `packages` stands for.
        kept_out: settings files in use; no tree that is shown to commands holds one.
    """

    tier: str = "auto"
    minimum: str = "copy"
    limits: RunLimits = msgspec.field(default_factory=RunLimits)
    max_timeout_s: float = 3600.0
    allow: tuple[str, ...] = ()
    max_bytes: int = 1 << 30
    toolchains: tuple[str, ...] = ("auto",)
    caches: str = "auto"
    read_only: tuple[str, ...] = ()
    env: Mapping[str, str] = msgspec.field(default_factory=dict[str, str])
    env_secrets: tuple[str, ...] = ()
    copy_max_files: int = 200_000
    copy_max_bytes: int = 4 << 30
    warm_s: float = 300.0
    warm_most: int = 32
    commands: int = 4
    background: int = 8
    packages: tuple[str, ...] = ()
    kept_out: tuple[str, ...] = ()
    private_hosts: frozenset[str] = frozenset()
