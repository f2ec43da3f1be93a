"""Claude Code on the host, asked through the bridge `claude-code` (AS-61, AS-62).

Here: its command line, its answer, one run at a time per conversation. Not here: which conversation a person
is in (`channels/claude/mode.py`), running commands (`running.py`).
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import msgspec

from bowerbird.core.errors import ToolError
from bowerbird.core.forms import decode
from bowerbird.gateway.claude_projects import Talk, as_list, as_object
from bowerbird.gateway.client import Answer, GatewayClient

BRIDGE = "claude-code"
EFFORTS = ("low", "medium", "high")
DYING_S = 3.0  # a gateway that lost its client has killed the command by then
ERROR_CHARS = 2_000
_UNKNOWN = ("no conversation found", "no session found")

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ClaudeRequest:
    """One message for Claude Code.

    Attributes:
        cwd: the project's directory on the host. is_new: the conversation begins with this message.
        whole: every event is asked for, not the result alone. user: who asks.
    """

    text: str
    cwd: str
    session_id: str
    is_new: bool
    model: str | None = None
    effort: str | None = None
    permission_mode: str | None = None
    timeout_s: float = 1_800.0
    whole: bool = False
    user: str = ""


@dataclass(frozen=True, slots=True)
class ClaudeAnswer:
    """What came of it.

    Attributes:
        denied: tools that it was not permitted to use. tokens: before and after a compaction, where told.
        is_unknown: there is no such conversation. thread_id: the session whose branch holds what it changed,
            None where it changed the host itself.
    """

    text: str
    is_error: bool = False
    timed_out: bool = False
    session_id: str | None = None
    cost_usd: float = 0.0
    denied: tuple[str, ...] = ()
    tokens: tuple[int | None, int | None] = (None, None)
    is_unknown: bool = False
    thread_id: str | None = None


class ClaudeCode(Protocol):
    """Whoever runs Claude Code: through the gateway on the host, or on a branch."""

    @property
    def where(self) -> str:
        """What people are told of what it changes, when they begin."""
        ...

    async def run(self, request: ClaudeRequest) -> ClaudeAnswer:
        """Run one message to its end; raises ToolError where it cannot be run at all."""
        ...

    async def talks(self, user: str, cwd: str) -> Sequence[Talk] | None:
        """Return a person's conversations about a project, newest first; None = those of the host itself."""
        ...

    async def doctor(self) -> Sequence[str]:
        """Return what is well and what is not, a line each."""
        ...


def command_of(program: str, request: ClaudeRequest) -> list[str]:
    """Return the command line; the text goes on standard input. Pure.

    Example:
        >>> command_of("claude", ClaudeRequest("hi", "/p", "u-1", True))
        ['claude', '-p', '--output-format', 'json', '--session-id', 'u-1']
    """
    form = ["stream-json", "--verbose"] if request.whole else ["json"]
    command = [program, "-p", "--output-format", *form]
    command += ["--session-id" if request.is_new else "--resume", request.session_id]
    if request.model:
        command += ["--model", request.model]
    if request.effort:
        command += ["--effort", request.effort]
    if request.permission_mode:
        command += ["--permission-mode", request.permission_mode]
    return command


def read_answer(answer: Answer, timeout_s: float) -> ClaudeAnswer:
    """Return what Claude Code said. Pure; whatever it printed gives an answer."""
    if answer.timed_out:
        text = (
            f"Claude Code was stopped after {timeout_s:,.0f} s. The conversation is kept: "
            "your next message goes on with it."
        )
        return ClaudeAnswer(text, is_error=True, timed_out=True)
    events = list(_events(answer.stdout))
    result = next((one for one in reversed(events) if one.get("type") == "result"), None)
    if result is None:
        return _without_result(answer)
    said = result.get("result")
    text = said if isinstance(said, str) else "\n".join(map(str, as_list(result.get("errors"))))
    is_error = bool(result.get("is_error")) or answer.returncode != 0
    cost, session = result.get("total_cost_usd"), result.get("session_id")
    return ClaudeAnswer(
        text.strip() or ("Claude Code failed and does not say why." if is_error else "Done."),
        is_error=is_error,
        session_id=session if isinstance(session, str) else None,
        cost_usd=float(cost) if isinstance(cost, int | float) else 0.0,
        denied=_denied(result.get("permission_denials")),
        tokens=_compacted(events),
        is_unknown=is_error and _is_unknown(text),
    )


class GatewayClaude:
    """Claude Code on the host itself; what it changes is changed at once."""

    where = (
        "⚠ Claude Code works in your files themselves, through the host gateway: "
        "what it changes is changed at once, and waits for no landing."
    )

    def __init__(self, client: GatewayClient, program: str = "claude") -> None:
        self._client = client
        self._program = program
        self._locks: dict[str, tuple[asyncio.Lock, int]] = {}

    async def run(self, request: ClaudeRequest) -> ClaudeAnswer:
        """See `ClaudeCode`; a second run of one conversation waits until the first is dead."""
        async with self._alone(request.session_id):
            try:
                answer = await self._client.execute(
                    command_of(self._program, request), request.timeout_s, cwd=request.cwd, stdin=request.text
                )
            except (asyncio.CancelledError, ToolError):
                # Whether the process has ended is not known: the gateway kills what its client left.
                await asyncio.shield(asyncio.sleep(DYING_S))
                raise
        return read_answer(answer, request.timeout_s)

    async def talks(self, user: str, cwd: str) -> Sequence[Talk] | None:
        """See `ClaudeCode`."""
        del user, cwd

    async def doctor(self) -> Sequence[str]:
        """See `ClaudeCode`."""
        try:
            answer = await self._client.execute([self._program, "--version"], 20.0)
        except ToolError as error:
            return [f"✗ {error}"]
        if answer.returncode != 0:
            return [
                "✓ the gateway answers",
                f"✗ {self._program}: {answer.stderr.strip()[:200] or 'it fails'}",
            ]
        return ["✓ the gateway answers", f"✓ {self._program} {answer.stdout.strip()[:80]}"]

    @asynccontextmanager
    async def _alone(self, session_id: str) -> AsyncGenerator[None]:
        lock, users = self._locks.get(session_id, (asyncio.Lock(), 0))
        self._locks[session_id] = (lock, users + 1)
        try:
            async with lock:
                yield
        finally:
            lock, users = self._locks[session_id]
            if users == 1:
                del self._locks[session_id]
            else:
                self._locks[session_id] = (lock, users - 1)


def _without_result(answer: Answer) -> ClaudeAnswer:
    text = answer.stdout.strip()
    if answer.returncode == 0 and text:
        return ClaudeAnswer(text)
    why = (answer.stderr.strip() or text)[-ERROR_CHARS:]
    said = (
        f"Claude Code ended with {answer.returncode}: {why}"
        if why
        else f"Claude Code ended with {answer.returncode}."
    )
    return ClaudeAnswer(said, is_error=True, is_unknown=_is_unknown(why))


def _events(text: str) -> Iterator[Mapping[str, Any]]:
    """Yield the objects of an answer: one, a list, or one a line."""
    for part in (text, *text.splitlines()) if "\n" in text.strip() else (text,):
        try:
            found: Any = decode(part.encode("utf-8", "surrogatepass"), Any)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            continue
        yield from filter(None, map(as_object, as_list(found) or [found]))


def _denied(value: object) -> tuple[str, ...]:
    found: list[str] = []
    for one in map(as_object, as_list(value)[:20]):
        texts = [text for text in as_object(one.get("tool_input")).values() if isinstance(text, str)]
        found.append(f"{one.get('tool_name')} {' '.join(texts[0].split())[:100] if texts else ''}".strip())
    return tuple(found)


def _compacted(events: Sequence[Mapping[str, Any]]) -> tuple[int | None, int | None]:
    for one in events:
        told = as_object(one.get("compact_metadata") or one.get("compactMetadata"))
        if told:
            before = told.get("pre_tokens", told.get("preTokens"))
            after = told.get("post_tokens", told.get("postTokens"))
            return (before if isinstance(before, int) else None, after if isinstance(after, int) else None)
    return (None, None)


def _is_unknown(text: str) -> bool:
    return any(said in text.lower() for said in _UNKNOWN)
