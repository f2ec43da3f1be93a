"""What a running tool gets from the runtime; hidden from the model (TO-2).

Here: the context and the record of what an agent has read. Not here: how the loop builds one.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bowerbird.core.atomic import replace_file

if TYPE_CHECKING:
    from bowerbird.core.requests import End, ModelRequest
    from bowerbird.tools.result import ToolResult
    from bowerbird.tools.together.delegation import Subagents
    from bowerbird.workspace import Branch

RESULT_CHARS = 50_000
_MOST_LINES = 2000


def _no_progress(_text: str) -> None:
    return


def _no_secret(_name: str) -> str | None:
    return None


class ReadTracker:
    """Which version of each file this agent has seen last.

    One per conversation, handed to every call's context; a subagent has its own.

    Args:
        kept: the file in which the next turn finds it, whichever process that runs in; None = nowhere.
    """

    def __init__(self, kept: Path | None = None) -> None:
        self._kept = kept
        self._seen: dict[str, str] = {}
        self._warned: dict[str, str] = {}
        lines = kept.read_bytes().splitlines() if kept is not None and kept.exists() else []
        for line in lines:
            with suppress(ValueError):  # cut by a kill: the file counts as not seen
                path, version = json.loads(line)
                self._set(path, version)
        if kept is not None and len(lines) > _MOST_LINES:
            rows = "".join(_line(path, version) for path, version in self._seen.items())
            replace_file(kept, rows.encode())

    def _set(self, path: str, version: str | None) -> None:
        self._seen.pop(path, None)
        if version is not None:
            self._seen[path] = version

    def _note(self, path: str, version: str | None) -> None:
        self._set(path, version)
        if self._kept is not None:
            with self._kept.open("a") as file:
                file.write(_line(path, version))

    def saw(self, path: str, version: str | None) -> None:
        """Remember that `path` was read or written as `version` (a file hash)."""
        if version != self._seen.get(path):
            self._note(path, version)
        self._warned.pop(path, None)

    def forget(self, path: str) -> None:
        """Forget `path` and everything below it: it was deleted or moved."""
        below = path.rstrip("/") + "/"
        for known in [p for p in self._seen if p == path or p.startswith(below)]:
            self._note(known, None)

    def seen(self, path: str) -> str | None:
        """Return the version last seen, None when the agent never saw the file."""
        return self._seen.get(path)

    def refuse_once(self, path: str, version: str) -> bool:
        """Whether writing over `version` is refused now: the first time it is found unseen."""
        if version in (self._seen.get(path), self._warned.get(path)):
            return False
        self._warned[path] = version
        return True


def _line(path: str, version: str | None) -> str:
    return json.dumps([path, version]) + "\n"


@dataclass(frozen=True, kw_only=True)
class ToolContext:
    """One call's surroundings. A function gets it through a parameter hinted `ToolContext`.

    Attributes:
        branch: the branch the call works on, bound to its turn and call; None without files.
        session, turn, call, agent: ids of the session, turn and call, name of the agent.
        cancel: set when the call should stop; the task is cancelled as well.
        progress: shows a short text to whoever watches; at most 10 a second pass.
        secret: returns a secret by the name settings give it, None when there is none.
        spill: stores long output and returns the path `read_file` finds it at; None = cut only.
        store_blob: keeps bytes of a media type and returns their id `sha256:…`; None = cannot.
        config: what the caller handed over: `channel`, `chat_id`, `user_id` …
        reads: what this agent has read so far.
        result_chars: most characters of a result that the model is shown.
        offered: canonical names of the tools this run really offers.
        ask: asks a person while the call runs: (question, options) → what was said, None when nobody
            answered; None = nobody can answer in this run.
        subagents: starts and merges subagents for this call; None where the run has none.
        sample: asks the turn's model once, within the turn's budget; raises ToolError when that is spent.
        change: runs a change of the store, a function of its connection that returns this call's result,
            and records that result as the call's outcome in the same transaction; None = no such
            record is kept, and whoever has the store writes to it directly.

    Example:
        >>> async def where(context: ToolContext) -> str:
        ...     '''Say which session this is.'''
        ...     return context.session
    """

    branch: "Branch | None" = None
    session: str = ""
    turn: str = ""
    call: str = ""
    agent: str = ""
    cancel: asyncio.Event = field(default_factory=asyncio.Event)
    progress: Callable[[str], None] = _no_progress
    secret: Callable[[str], str | None] = _no_secret
    spill: Callable[[str, str], Awaitable[str]] | None = None
    store_blob: Callable[[bytes, str], Awaitable[str]] | None = None
    config: Mapping[str, Any] = field(default_factory=dict[str, Any])
    reads: ReadTracker = field(default_factory=ReadTracker)
    result_chars: int = RESULT_CHARS
    offered: frozenset[str] = frozenset()
    ask: Callable[[str, tuple[str, ...]], Awaitable[str | None]] | None = None
    sample: "Callable[[ModelRequest], Awaitable[End]] | None" = None
    change: "Callable[[Callable[[Any], ToolResult]], Awaitable[ToolResult]] | None" = None
    subagents: "Subagents | None" = None

    @property
    def files(self) -> "Branch":
        """The branch; raises ToolError where a run has none."""
        if self.branch is None:
            from bowerbird.core.errors import ToolError

            raise ToolError("this run has no branch, so there are no files to work on")
        return self.branch
