"""Frames that say under which conditions a conversation goes on: settings, sandbox, network, models, notices.

Not here: work of others (`work.py`), questions.
"""

from typing import Any, ClassVar

import msgspec

from bowerbird.core.events import LandingKind, LandingPhase
from bowerbird.core.wire.base import ServerFrame
from bowerbird.core.wire.rows import FileRow


class Compact(ServerFrame, frozen=True, tag="compact"):
    """The history was summarised: from here on the model is sent the summary; nothing is lost.

    Attributes:
        message: the same for people.
    Example:
        {"type": "compact", "message": "The history was summarised (auto).", "cursor": 9, "turn_id": "t_01J"}
    """

    is_plain: ClassVar[bool] = True
    line: ClassVar[str] = "{message}"

    message: str


class PlanModeChanged(ServerFrame, frozen=True, tag="plan_mode_changed"):
    """Plan mode was switched.

    Attributes:
        enabled: whether it is on now.
    Example:
        {"type": "plan_mode_changed", "enabled": true, "cursor": 2, "turn_id": null}
    """

    is_plain: ClassVar[bool] = True

    enabled: bool


class TeamsChanged(ServerFrame, frozen=True, tag="teams_changed"):
    """Teams were switched.

    Attributes:
        enabled: whether they are on now.
    Example:
        {"type": "teams_changed", "enabled": true, "cursor": 2, "turn_id": null}
    """

    is_plain: ClassVar[bool] = True

    enabled: bool


class ApprovalChanged(ServerFrame, frozen=True, tag="approval_changed"):
    """Approval of tools was switched.

    Attributes:
        enabled: whether people are asked now.
    Example:
        {"type": "approval_changed", "enabled": true, "cursor": 2, "turn_id": null}
    """

    is_plain: ClassVar[bool] = True

    enabled: bool


class Settings(ServerFrame, frozen=True, tag="settings"):
    """Other settings of the conversation changed.

    Attributes:
        changes: the new values by name.
    Example:
        {"type": "settings", "changes": {"title": "Tests"}, "cursor": 2, "turn_id": null}
    """

    changes: dict[str, Any]


class BranchUpdate(ServerFrame, frozen=True, tag="branch_update"):
    """Files of the branch changed, by a tool, a command, an upload or another door.

    Attributes:
        files: those that differ from the workspace now, without deleted ones, at most 1,000.
        changed: how many changes a review shows, deleted files and new directories too.
    Example:
        {"type": "branch_update", "files": [{"name": "a.txt", "path": "a.txt", "size": 3}], "changed": 1, "cursor": 4, "turn_id": "t_01J"}
    """

    files: list[FileRow]
    changed: int = 0


class Landing(ServerFrame, frozen=True, tag="landing"):
    """Changes landed in the workspace, or a landing was undone.

    Attributes:
        message: what, for people.
    Example:
        {"type": "landing", "message": "2 paths landed", "cursor": 8, "turn_id": "t_01J"}
    """

    line: ClassVar[str] = "{message}"

    message: str


class LandingProgress(ServerFrame, frozen=True, tag="landing_progress"):
    """How far a landing, or the undo of one, is; for more than 100 files, at most four times a second.

    Each phase counts its files from 0: `checking` against the workspace, `saving` what an undo needs, `writing`
    beside their places, `placing`, `recording`; after an error `taking_back`. The last one has the phase
    `over`, also when nothing landed; what happened is said by `landing`, or by the answer to who asked.

    Attributes:
        kind: `land` or `undo`. phase: see above. done: files of this phase that are done. total: of how many.
        undoes: of an undo, the landing that it takes back.
    Example:
        {"type": "landing_progress", "kind": "land", "phase": "writing", "done": 1200, "total": 100000, "undoes": null, "cursor": 8, "turn_id": null}
    """

    kind: LandingKind
    phase: LandingPhase
    done: int
    total: int
    undoes: str | None = None


class Notice(ServerFrame, frozen=True, tag="notice"):
    """Something a person should see: a limit that is near, a value that was cut to what is allowed.

    Attributes:
        kind: what it is about, in a word. message: for people.
    Example:
        {"type": "notice", "kind": "budget", "message": "0.4 of 0.5 USD of this run are spent", "cursor": 4, "turn_id": "t_01J"}
    """

    line: ClassVar[str] = "{message}"

    kind: str
    message: str


class SandboxTier(ServerFrame, frozen=True, tag="sandbox_tier"):
    """Commands are isolated in another way than before.

    Attributes:
        tier: `overlay`, `copy` or `none`. minimum: what the settings ask for at least.
        reasons: why a tier does not work here, by its name; null = it works.
    Example:
        {"type": "sandbox_tier", "tier": "copy", "minimum": "copy", "reasons": {"overlay": "no user namespaces"}, "cursor": 4, "turn_id": "t_01J"}
    """

    line: ClassVar[str] = "commands now run in the sandbox tier {tier}"

    tier: str
    minimum: str
    reasons: dict[str, str | None]


class Egress(ServerFrame, frozen=True, tag="egress"):
    """A command of the sandbox asked for a host.

    Attributes:
        host: its name. port: on it. verdict: `allowed`, or `refused: ` and why.
        bytes_in: received through it. bytes_out: sent.
    Example:
        {"type": "egress", "host": "pypi.org", "port": 443, "verdict": "allowed", "bytes_in": 5120, "bytes_out": 800, "cursor": 4, "turn_id": "t_01J"}
    """

    line: ClassVar[str] = "network: {host}:{port} {verdict}"

    host: str
    port: int
    verdict: str
    bytes_in: int = 0
    bytes_out: int = 0


class Retrying(ServerFrame, frozen=True, tag="retrying"):
    """A model's provider did not answer; it is asked again after a pause.

    Attributes:
        attempt: which repetition, from 1. delay_s: seconds until then. reason: why it is needed.
    Example:
        {"type": "retrying", "attempt": 1, "delay_s": 2.0, "reason": "overloaded", "cursor": 2, "turn_id": "t_01J"}
    """

    attempt: int
    delay_s: float
    reason: str


class ModelFallback(ServerFrame, frozen=True, tag="model_fallback"):
    """Another model answers, because the first could not.

    Attributes:
        from_model: `provider:model` that did not answer. to_model: the one that does now. reason: why.
    Example:
        {"type": "model_fallback", "from": "anthropic:a", "to": "openai:b", "reason": "overloaded", "cursor": 2, "turn_id": "t_01J"}
    """

    line: ClassVar[str] = "{from} does not answer ({reason}); going on with {to}"

    from_model: str = msgspec.field(name="from")
    to_model: str = msgspec.field(name="to")
    reason: str
