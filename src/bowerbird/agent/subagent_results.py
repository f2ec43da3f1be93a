"""What a program gets back of its subagents, as typed values (D-20, DE-5 … DE-13).

Here: the values, and each as the record that tools and the wire have (`.record()`). Not here: making them
(`bowerbird.subagents`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import msgspec


@dataclass(frozen=True, slots=True)
class SubagentFile:
    """One file that a subagent wrote, with its lines; `path_b64` is for names that are no text."""

    path: str
    kind: str
    size: int
    added: int
    removed: int
    path_b64: str | None = None


@dataclass(frozen=True, slots=True)
class SubagentDiff:
    """What a subagent changed; `patch` is the text of it, cut where `patch_truncated`."""

    written: tuple[SubagentFile, ...]
    deleted: tuple[str, ...]
    patch: str
    patch_truncated: bool


@dataclass(frozen=True, slots=True)
class SubagentResult:
    """How one subagent ended: its answer and changes, or why there are none.

    Attributes:
        handle: names it; None = it was not started. task: what it was to do.
        result, diff: of one that completed. error: why it did not.
    """

    handle: str | None
    task: str
    result: str | None = None
    diff: SubagentDiff | None = None
    error: str | None = None

    def record(self) -> dict[str, Any]:
        """Return the record that the tool returns."""
        who = {"handle": self.handle, "task": self.task}
        if self.error is not None:
            return {**who, "error": self.error}
        return {**who, "result": self.result, "diff": _plain(self.diff)}


@dataclass(frozen=True, slots=True)
class Spawned:
    """What became of subagents that were started together, by task; `error`: why none was."""

    subagents: tuple[SubagentResult, ...] = ()
    error: str | None = None

    def record(self) -> dict[str, Any]:
        """Return the record that the tool returns."""
        if self.error is not None:
            return {"error": self.error}
        return {"subagents": [each.record() for each in self.subagents]}


@dataclass(frozen=True, slots=True)
class SubagentMerge:
    """What a merge of a subagent's fork did; paths are virtual.

    Attributes:
        written, deleted: in the caller's branch. merged: of those, joined line by line.
        conflicts, skipped: left as they are. unknown: were named, and are no changes.
        lost: by path, the caller's text that `force` replaced. error: why nothing was merged.
    """

    written: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()
    conflicts: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
    merged: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    lost: Mapping[str, str] = field(default_factory=dict[str, str])
    error: str | None = None

    def record(self) -> dict[str, Any]:
        """Return the record that the tool returns."""
        if self.error is not None:
            return {"error": self.error}
        shown = _plain(self)
        return {name: value for name, value in shown.items() if name != "error" and (name != "lost" or value)}


@dataclass(frozen=True, slots=True)
class SubagentDiscard:
    """The handle of a subagent that was discarded, or why none was."""

    discarded: str | None = None
    error: str | None = None

    def record(self) -> dict[str, Any]:
        """Return the record that the tool returns."""
        return {"discarded": self.discarded} if self.error is None else {"error": self.error}


@dataclass(frozen=True, slots=True)
class TournamentCheck:
    """One check of an attempt; `baseline_failed`: it fails before anybody changed something, too."""

    command: str
    exit_code: int
    seconds: float
    output_tail: str
    baseline_failed: bool = False


@dataclass(frozen=True, slots=True)
class TournamentRow:
    """One attempt; `rank` counts from 1, `cost` is in USD, `passed` and `failed` count checks."""

    handle: str
    rank: int
    status: str
    passed: int
    failed: int
    checks: tuple[TournamentCheck, ...]
    files: int
    added: int
    removed: int
    touched_checks: bool
    cost: float | None
    tokens: int
    seconds: float
    error: str | None
    agent: str = "self"


@dataclass(frozen=True, slots=True)
class Tournament:
    """How a tournament ended.

    Attributes:
        winner: the handle of the best attempt that passes, None for nobody. ranking: the best first.
        note: attempts that were left out. merge: what `merge="best"` did. error: why there was none.
    """

    winner: str | None = None
    ranking: tuple[TournamentRow, ...] = ()
    note: str = ""
    merge: SubagentMerge | None = None
    error: str | None = None

    def record(self) -> dict[str, Any]:
        """Return the record that the tool returns."""
        if self.error is not None:
            return {"error": self.error}
        found = {"winner": self.winner, "ranking": _plain(self.ranking)}
        if self.note:
            found["note"] = self.note
        return found if self.merge is None else {**found, "merge": self.merge.record()}


def _plain(value: object) -> Any:
    """Return a value as data whose rows are lists, as they are on the wire."""
    return _listed(msgspec.to_builtins(value))


def _listed(value: Any) -> Any:
    if isinstance(value, dict):
        rows = cast("dict[str, Any]", value).items()
        return {name: _listed(each) for name, each in rows if name != "path_b64" or each is not None}
    if isinstance(value, list | tuple):
        return [_listed(each) for each in cast("list[Any]", value)]
    return value
