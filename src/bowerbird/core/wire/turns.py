"""Frames of turns and of the connection: who is there, what waits, what runs, how it ended, what went wrong.

Not here: what happens within a turn.
"""

from typing import ClassVar, Literal

from msgspec import UNSET, UnsetType

from bowerbird.core.wire.base import ServerFrame
from bowerbird.core.wire.rows import FileRow, Sender, TurnUsage

TurnState = Literal["idle", "queued", "running", "waiting", "deleted"]


class Hello(ServerFrame, frozen=True, tag="hello"):
    """The first frame with `v=2`: how the conversation stands.

    Attributes:
        state: of the newest turn; `idle` = none runs or waits. tier: how commands are isolated.
        viewers: connections to this conversation, with this one. queued: turns that wait to run.
        head: the newest record; frames up to there are history.
    Example:
        {"type": "hello", "state": "idle", "tier": "overlay", "viewers": 1, "queued": 0, "head": 12, "cursor": 12, "turn_id": null}
    """

    state: TurnState
    tier: str
    viewers: int
    queued: int
    head: int


class Accepted(ServerFrame, frozen=True, tag="accepted"):
    """Answers a frame that had an `id`.

    Attributes:
        id: the client's. position: turns that run or wait before it.
        duplicate: a frame with this id came before; this one did nothing.
        open_request: the question that has to be answered before it is this one's turn.
    Example:
        {"type": "accepted", "id": "m-1", "position": 0, "duplicate": false, "cursor": 0, "turn_id": "t_01J"}
    """

    is_plain: ClassVar[bool] = True

    id: str
    position: int
    duplicate: bool
    open_request: str | UnsetType = UNSET


class TurnQueued(ServerFrame, frozen=True, tag="turn_queued"):
    """Somebody sent something, or took it back. A turn that is put back into the queue has a position only.

    Attributes:
        position: turns that run or wait before it. inbox_id: names the input, null = it is not known any more.
        kind: `message`, `interrupt` or `steer`. state: `queued`, or `cancelled` when it was taken back.
        content: what was said. sender: who said it.
    Example:
        {"type": "turn_queued", "inbox_id": "i_01J", "position": 1, "kind": "message", "state": "queued", "content": "and then", "sender": {"id": null, "name": "ann", "door": "web"}, "cursor": 3, "turn_id": "t_02J"}
    """

    inbox_id: str | UnsetType | None = UNSET
    position: int = 0
    kind: str | UnsetType = UNSET
    state: str | UnsetType = UNSET
    content: str | UnsetType = UNSET
    sender: Sender | UnsetType = UNSET


class TurnStarted(ServerFrame, frozen=True, tag="turn_started"):
    """A turn begins to run, or goes on after it waited.

    Example:
        {"type": "turn_started", "cursor": 1, "turn_id": "t_01J"}
    """


class Interrupted(ServerFrame, frozen=True, tag="interrupted"):
    """The turn was interrupted by somebody's words; stands in place of `done`: a new turn follows.

    Attributes:
        usage: what the turn used. files: of the branch, changed ones first, at most 1,000.
        files_truncated: there are more files.
    Example:
        {"type": "interrupted", "usage": {"input_tokens": 9, "output_tokens": 1, "last_input_tokens": 9, "plan_mode": false, "cache_read_tokens": 0, "cache_write_tokens": 0, "reasoning_tokens": 0, "cost": null, "subagents": {}}, "files": [], "cursor": 7, "turn_id": "t_01J"}
    """

    is_plain: ClassVar[bool] = True

    usage: TurnUsage
    files: list[FileRow]
    files_truncated: bool | UnsetType = UNSET


class Done(ServerFrame, frozen=True, tag="done"):
    """The turn has stopped: it is over, or waits for a person.

    Attributes:
        usage: what the turn used. files: of the branch, changed ones first, at most 1,000.
        files_truncated: there are more files.
        stop_reason: why, for example `end_turn`; the manual lists them.
        waiting_for: `plan`, `approval`, `user`, `budget` or `effect`; null = the turn is over.
        snapshot_id: the branch as it is now. changed: how many changes a review shows.
    Example:
        {"type": "done", "usage": {"input_tokens": 9, "output_tokens": 1, "last_input_tokens": 9, "plan_mode": false, "cache_read_tokens": 0, "cache_write_tokens": 0, "reasoning_tokens": 0, "cost": null, "subagents": {}}, "files": [{"name": "a.txt", "path": "a.txt", "size": 3}], "stop_reason": "end_turn", "waiting_for": null, "snapshot_id": "s_01J", "changed": 1, "cursor": 7, "turn_id": "t_01J"}
    """

    is_plain: ClassVar[bool] = True

    usage: TurnUsage
    files: list[FileRow]
    files_truncated: bool | UnsetType = UNSET
    stop_reason: str | None = None
    waiting_for: str | None = None
    snapshot_id: str | None = None
    changed: int = 0


class Error(ServerFrame, frozen=True, tag="error"):
    """Something went wrong: with the turn named by `turn_id`, or with a frame of this client.

    Attributes:
        message: what, for people. code: what, for programs. retryable: whether the same may work later.
        subagent_id: the session of the subagent it is about, when it is about one.
    Example:
        {"type": "error", "message": "nothing runs", "code": "not_running", "retryable": false, "cursor": 7, "turn_id": null}
    """

    is_plain: ClassVar[bool] = True

    message: str
    code: str
    retryable: bool = False
    subagent_id: str | UnsetType = UNSET


class Pong(ServerFrame, frozen=True, tag="pong"):
    """Answers `ping`.

    Example:
        {"type": "pong", "cursor": 7, "turn_id": null}
    """
