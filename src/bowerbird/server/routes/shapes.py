"""Forms that several answers share, for the description of the routes (SV-4).

Here: models of what is shown. Not here: who makes it; members of one route's own answer.
"""

from typing import Any, Literal

from pydantic import Field

from bowerbird.server.routes.common import Shown


class UsageNumbers(Shown):
    """What model calls used; `cost` in USD, null where a price is unknown."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0
    model_calls: int = 0
    tool_calls: int = 0
    cost: float | None = None
    estimated: bool = False


class TurnError(Shown):
    """Why a turn failed; `retryable`: the same again may work."""

    type: str = ""
    message: str = ""
    retryable: bool = False


class Sender(Shown):
    """Who said something, and through which door."""

    id: str | None = None
    name: str | None = None
    door: str | None = None


class LineDiff(Shown):
    """Hunks of a unified diff, cut at 8,000 characters, and how many lines in all."""

    text: str = ""
    added: int = 0
    removed: int = 0


class ToolAsked(Shown):
    """A tool call that waits for a decision; `rules` are what an answer `always_…` would keep."""

    id: str = ""
    name: str = ""
    input: Any = None
    diff: LineDiff | None = None
    rules: list[str] | None = None


class Question(Shown):
    """What waits for a decision; `subagent_id` names the subagent or teammate that asks, if one does."""

    request_id: str
    conversation_id: str
    subagent_id: str | None
    turn_id: str
    kind: str
    tools: list[ToolAsked]
    text: str
    asked_at: str
    expires_at: str | None


class QueuedShown(Shown):
    """An input that waits."""

    inbox_id: str
    turn_id: str
    position: int
    kind: str
    content: str


class BranchShown(Shown):
    """A conversation's branch, and the last name of the directory it is a branch of."""

    id: str
    changed_files: int
    workspace: str | None


class LandingUnderWay(Shown):
    """How far a landing or an undo of more than 100 files is.

    Each phase (`checking`, `saving`, `writing`, `placing`, `recording`; after an error `taking_back`) counts
    its files anew. `undoes`: the landing that an undo takes back.
    """

    kind: Literal["land", "undo"]
    phase: str
    done: int
    total: int
    undoes: str | None


class HunkShown(Shown):
    """Lines that changed together; `text` as in a unified diff."""

    id: str
    old_start: int
    old_lines: int
    new_start: int
    new_lines: int
    text: str


class ChangedFile(Shown):
    """A path that was created or modified; `hunks` null = too large to compare, or to show beside the others.

    `too_large`: it has no hunks when asked for alone, either. `long_lines`: a changed line has more than
    5,000 bytes. `renamed_from`: a deleted path that this one was, `similarity` in percent, `edits` what is
    new since; they land only with the whole file. `target`, `old_target`: where a link points, and pointed.
    `flags`, `grade`, `reasons`, `tainted` and `taint` are those of the landing plan.
    """

    path: str
    kind: Literal["create", "modify"]
    type: str
    size: int
    mode: int | None
    old_mode: int | None
    binary: bool
    added: int
    removed: int
    renamed_from: str | None
    similarity: int | None = None
    edits: list[HunkShown] | None = None
    base: str
    hunks: list[HunkShown] | None
    too_large: bool = False
    long_lines: bool = False
    target: str | None = None
    old_target: str | None = None
    flags: list[str] = Field(default_factory=list)
    grade: str = "free"
    reasons: list[str] = Field(default_factory=list)
    tainted: bool = False
    taint: list[str] = Field(default_factory=list)


class GitCommit(Shown):
    """A commit as a line."""

    id: str
    subject: str


class GitRef(Shown):
    """A ref that the branch changed; `stash/0` is its oldest stash, `HEAD` a detached one."""

    ref: str
    change: Literal["created", "moved", "rewritten", "deleted"]
    old: str | None
    new: str | None
    commits: int
    subjects: list[GitCommit]
    landed: bool


class GitSetting(Shown):
    """What git runs or obeys, and the branch changed: it lands only when accepted by name."""

    path: str
    change: Literal["created", "modified", "deleted"]
    reasons: list[str]


class GitRepository(Shown):
    """What happened in one git directory; `head`: where HEAD was and is, null = it stayed."""

    path: str
    is_new: bool
    is_removed: bool
    head: list[str | None] | None
    refs: list[GitRef]
    worktrees: list[str]
    settings: list[GitSetting]
    troubles: list[str]


class FoldedRow(Shown):
    """What stays on the branch below one name at the top: caches, and what git ignores."""

    path: str
    files: int
    bytes: int


class Diff(Shown):
    """Changes with their hunks; paths begin with a slash. `folded`: what stays on the branch by itself."""

    written: list[ChangedFile]
    deleted: list[str]
    git: list[GitRepository] = Field(default_factory=list[GitRepository])
    folded: list[FoldedRow] = Field(default_factory=list[FoldedRow])


class LandedRef(Shown):
    """A ref of the branch that arrived in the user's repository, under `kept_as`.

    `state`: `moved` = the user's ref of that name points to `id` now; `stays` = it does not, `said` tells
    why; `arrived` = only `kept_as` does. `commands`: ways to bring it in by hand.
    """

    ref: str
    id: str | None
    kept_as: str
    state: str
    said: str
    commands: list[str]


class LandedCommit(Shown):
    """The commit that was asked for; `id` null = none was made, `said` tells why."""

    branch: str
    id: str | None
    subject: str
    said: str
    notes: list[str]


class LandedRepository(Shown):
    """What a landing did in one repository; `troubles`: what git refused; `notes`: what else was left out."""

    repository: str
    refs: list[LandedRef]
    troubles: list[str]
    notes: list[str]
    commit: LandedCommit | None = None


class LandedPath(Shown):
    """What a landing did to one path; `before` and `after` null = nothing stood there."""

    path: str
    op: str
    before: str | None
    after: str | None
    mode: int | None
    hunks: list[str]
    flags: list[str]
    merged: bool
    tainted: bool
    taint: list[str]


class RefusedPath(Shown):
    """A path that did not land, and why."""

    path: str
    reason: str


class SaidOrDone(Shown):
    """A message of a subagent; `role` is `user`, `assistant` or `tool`."""

    cursor: int
    at: str
    role: str
    content: str


class Ranked(Shown):
    """An attempt in its place; `agent` is `self`, or another vendor's."""

    handle: str
    agent: str
    rank: int
    status: str
    passed: int
    failed: int
    files: int
    added: int
    removed: int
    touched_checks: bool
    cost: float | None
    tokens: int
    seconds: float
    error: str | None


class UsageRow(Shown):
    """A sum; `cost` null = some call has no price, `known_cost` is that of the others."""

    key: str
    calls: int
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    unpriced_calls: int
    cost: float | None
    known_cost: float


class TraceRecord(Shown):
    """A model call's request or answer, as stored while tracing was on."""

    n: int
    at: str
    turn_id: str | None


class CheckShown(Shown):
    """What `landing.check` found on the branch.

    `plan` names what it was run on: another name in the landing plan now means that something changed since.
    """

    command: str
    state: Literal["none", "running", "passed", "failed", "unable"]
    plan: str | None
    exit_code: int | None
    seconds: float | None
    output_tail: str
    error: str | None
