"""Which isolation this host really gives, as a value that every door shows (SB-6).

Here: the record and the choice of a tier from probes. Not here: probing (`probe`).
"""

from collections.abc import Mapping
from typing import Literal

import msgspec

from bowerbird.core.errors import SandboxUnavailable

Tier = Literal["overlay", "copy", "none"]
_STRENGTH: Mapping[str, int] = {"none": 0, "copy": 1, "overlay": 2}
OVERLAY_ISOLATION = ("userns", "mountns", "pidns", "netns", "ipcns", "utsns", "seccomp")
COPY_ISOLATION = ("landlock", "seccomp")
COPY_REST = (
    "in use; without namespaces commands still see names, sizes and dates of files they cannot read, and "
    "names and command lines of processes"
)
NO_ALLOW_LIST = (
    "the copy tier has no network of its own, so an allow-list cannot be enforced: the network is closed"
)


OVERDUE = "the probe did not end in time, the machine is busy; it is repeated"


class SandboxStatus(msgspec.Struct, frozen=True):
    """What `status()` returns; `reasons` says why a better tier is not there, None where it works;
    for the copy tier in use, what it cannot hide.

    Attributes:
        tier: the highest tier that works and settings allow. minimum: what settings demand.
        network_reason: why an allow-list cannot be enforced, or None.
        limits: how each limit is held: by cgroup, by rlimit and a watcher.
        left_out: what of toolchain trees is not shown to commands, since data of Bowerbird's lies in it.
    """

    tier: Tier
    minimum: Tier
    reasons: dict[str, str | None]
    isolation: tuple[str, ...]
    network: Literal["closed", "allowlist"]
    network_reason: str | None
    limits: dict[str, str]
    python: dict[str, str | None]
    search: str
    probed_at: str
    left_out: tuple[str, ...] = ()

    def is_undecided(self, wanted: str) -> bool:
        """Whether a better tier may be there all the same: its probe did not end in time.

        >>> reasons = {"overlay": OVERDUE, "copy": None}
        >>> SandboxStatus("copy", "copy", reasons, (), "closed", None, {}, {}, "", "").is_undecided("auto")
        True
        """
        better = [tier for tier in ("overlay", "copy") if _STRENGTH[tier] > _STRENGTH[self.tier]]
        return any(self.reasons.get(tier) == OVERDUE for tier in better if wanted in ("auto", tier))

    def require(self) -> None:
        """Raise SandboxUnavailable unless the tier meets the minimum; law 6."""
        if self.tier != "none" and _STRENGTH[self.tier] >= _STRENGTH[self.minimum]:
            return
        wanted = self.minimum if self.minimum != "none" else "copy"
        why = "; ".join(f"{tier}: {reason}" for tier, reason in self.reasons.items() if reason)
        given = f"{self.tier!r} ({why})" if why else repr(self.tier)
        raise SandboxUnavailable(
            f"commands need the sandbox tier {wanted!r} and this host gives {given}. "
            "`bowerbird doctor` shows what to install; sandbox.minimum is the setting"
        )


def choose_tier(wanted: str, reasons: Mapping[str, str | None]) -> Tier:
    """Return the tier to use: the one settings name if it works, else the strongest that works.

    Args:
        wanted: `auto`, `overlay`, `copy` or `none`.
        reasons: why a tier does not work, None where it does.

    >>> choose_tier("auto", {"overlay": "no user namespaces", "copy": None})
    'copy'
    """
    if wanted == "none":
        return "none"
    candidates: tuple[Tier, ...] = ("overlay", "copy")
    for tier in candidates:
        if wanted in ("auto", tier) and reasons.get(tier) is None:
            return tier
    return "none"
