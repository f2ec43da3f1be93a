"""The flags of `run` and where they lead: a session's flags, settings, refusals (UI-50, UI-69).

Here: values and checks. Not here: running.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

import msgspec

from bowerbird.cli.terminal.exits import USAGE, CliExit
from bowerbird.core.errors import ConfigError

if TYPE_CHECKING:
    from bowerbird.config.sections.ground import CliSection

Output = Literal["text", "json", "stream-json"]
_CHOICES = {
    "output": ("text", "json", "stream-json"),
    "land": ("review", "turn", "step"),
    "tools": ("default", "full"),
    "thinking_effort": ("high", "max", "xhigh"),
}
_MOST = {"max_turns": 1_000_000, "max_cost": 1_000_000_000, "timeout": 604_800}


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """What was asked for on the command line; None = not said."""

    prompt: str | None = None
    preset: str | None = None
    workspace: str | None = None
    model: str | None = None
    no_memory: bool = False
    approval: bool | None = None
    max_turns: int | None = None
    teams: bool = False
    plan: bool = False
    thinking: bool | None = None
    thinking_effort: str | None = None
    resume: str | None = None
    land: str | None = None
    max_cost: float | None = None
    timeout: float | None = None
    tools: str | None = None
    network: str | None = None
    yes: bool = False
    output: str = "text"
    quiet: bool = False
    attachment: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        for name, allowed in _CHOICES.items():
            value = getattr(self, name)
            if value is not None and value not in allowed:
                flag = "--" + name.replace("_", "-")
                raise CliExit(USAGE, f"{flag} is {value!r}; use {', '.join(allowed)}")
        if self.network is not None:
            from bowerbird.sandbox.network.network import entries_of

            try:
                entries_of(self.network)
            except ConfigError as error:
                raise CliExit(USAGE, f"--network: {error}") from error
        for name, most in _MOST.items():
            value = getattr(self, name)
            flag = "--" + name.replace("_", "-")
            if value is not None and not value > 0:
                raise CliExit(USAGE, f"{flag} is {value}; it must be more than 0")
            if value is not None and value > most:
                raise CliExit(USAGE, f"{flag} is {value}; it must be at most {most:,}")

    @property
    def form(self) -> Output:
        """How the result is written."""
        return cast("Output", self.output)

    def session_flags(self, preferred: "CliSection") -> dict[str, Any]:
        """Return the flags a session keeps, by REST's names: those that were said, then preferences."""
        thinking = self.thinking if self.thinking is not None else preferred.thinking_enabled
        flags: dict[str, Any] = {
            "model": self.model,
            "enable_approval": self.approval if self.approval is not None else (preferred.approval or None),
            "enable_teams": self.teams or None,
            "enable_plan_mode": self.plan or None,
            "enable_thinking": thinking,
            "tools": self.tools,
            "network": self.network,
            "max_turns": self.max_turns,
            "max_cost": self.max_cost,
            "memory": False if self.no_memory else None,
        }
        return {name: value for name, value in flags.items() if value is not None}

    def effort(self, preferred: "CliSection | None" = None) -> str | None:
        """Return the thinking effort that was said, else the one preferred for new sessions."""
        effort = self.thinking_effort or (preferred.thinking_effort if preferred is not None else None)
        return "max" if effort == "xhigh" else effort


class Doubt(msgspec.Struct, frozen=True):
    """Why a directory should not be worked on without a word; `fatal` = not at all."""

    reason: str
    fatal: bool = False


def doubt_about(workspace: Path, *, home: Path, data_dir: Path, explicit: bool) -> Doubt | None:
    """Return what speaks against working on `workspace`, None when nothing does.

    Args:
        workspace: resolved. home: resolved. data_dir: where records are.
        explicit: it was named with --workspace.

    Example:
        >>> doubt_about(Path("/"), home=Path("/h"), data_dir=Path("/h/d"), explicit=True).fatal
        True
    """
    if workspace == Path("/"):
        return Doubt("/ is the whole machine; choose a directory with --workspace", fatal=True)
    if workspace == home:
        return None if explicit else Doubt(f"{workspace} is your home directory")
    if data_dir.is_relative_to(workspace):
        return Doubt(f"{workspace} contains Bowerbird's data directory {data_dir}")
    return None
