"""What a program said in the end, and whether that is success (PR-19). Pure.

Here: the value that every reader ends with, and the rule. Not here: reading output (`readers`), running.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from bowerbird.providers.contract.errors import (
    AgentAuthError,
    AgentContextError,
    AgentError,
    AgentExecutionError,
    AgentRateLimited,
    AgentSessionError,
    AgentTimeout,
    AgentUnavailable,
)

SHOWN_STDERR = 500
_SIGN_IN = re.compile(
    r"(not logged in|please (log|sign) ?in|run .{0,30}\b(login|auth)\b|/login|device code|"
    r"no api key|api key (is )?(required|missing)|must specify the .{1,40}api_key|sign in (with|to) |"
    r"authenticat(e|ion) (required|failed)|invalid (x-)?api[- ]key|unauthorized|\b401\b)",
    re.IGNORECASE,
)
_NO_SESSION = re.compile(
    r"(no conversation found|session .{0,80}not found|no (rollout|session|thread) found|unknown session|"
    r"invalid session identifier)",
    re.IGNORECASE,
)
_RATE = re.compile(r"(rate.?limit|too many requests|\b429\b|quota exceeded|overloaded)", re.IGNORECASE)
# Of the sandbox's own, or of the shell that becomes the program (`launching.SCRIPT`); the first line says it.
_NOT_RUN = re.compile(r"bowerbird: cannot run|\Aagent: (line )?\d+: ")
WHAT_IS_SEEN = "commands there see the system, toolchains and what sandbox.read_only lists"
_CONTEXT = re.compile(r"(context (length|window)|prompt is too long|maximum context)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a reader made of a program's output.

    Attributes:
        text: the answer. ended: its end marker says success.
        error: what it says went wrong. session: its own name of the session.
        input_tokens, output_tokens, cost: what it used, where it says so; US dollars.
        denied: tools that were refused, by name.
        notes: warnings. link: where work that goes on elsewhere can be seen.
    """

    text: str = ""
    ended: bool = False
    error: str | None = None
    session: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost: float | None = None
    denied: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    link: str | None = None

    @property
    def tokens(self) -> int | None:
        """Tokens in both directions together."""
        if self.input_tokens is None and self.output_tokens is None:
            return None
        return (self.input_tokens or 0) + (self.output_tokens or 0)


@dataclass(frozen=True, slots=True)
class Stopped:
    """Why Bowerbird ended a program.

    Attributes:
        kind: `timeout`, `idle`, `output`, `line`, `relay`, or a limit of the sandbox.
        detail: a sentence for people.
    """

    kind: str
    detail: str


def shown_text(outcome: Outcome) -> str:
    """Return the answer with one line about refused tools."""
    if not outcome.denied:
        return outcome.text
    line = f"(not permitted, so not done: {', '.join(dict.fromkeys(outcome.denied))})"
    return f"{outcome.text.rstrip()}\n\n{line}" if outcome.text.strip() else line


def failure(
    name: str, outcome: Outcome, code: int, stderr: str, stopped: Stopped | None, sign_in: str
) -> AgentError | None:
    """Return what went wrong with a run, None for success.

    Args:
        code: the exit code. stderr: what the program said there, cut to head and tail.
        stopped: why Bowerbird ended it, None when it ended by itself.
        sign_in: what a person runs to sign in.
    """
    if stopped is not None:
        kind = AgentTimeout if stopped.kind in ("timeout", "idle") else AgentExecutionError
        return kind(f"{name}: {stopped.detail}")
    if outcome.error is None and outcome.ended and code == 0:
        return None
    last = tail(stderr)
    said = outcome.error or last
    if outcome.error is None and code == 0:
        return AgentExecutionError(
            f"{name} ended without saying that it finished{_quoted(last)}", exit_code=code
        )
    how = f" (exit code {code})" if code else ""
    return _typed(name, said, how, code, sign_in)


def _typed(name: str, said: str, how: str, code: int, sign_in: str) -> AgentError:
    text = f"{name} failed{how}{_quoted(said)}"
    if _NO_SESSION.search(said):
        return AgentSessionError(text)
    if _SIGN_IN.search(said):
        return AgentAuthError(f"{text}; {sign_in}")
    if _RATE.search(said):
        return AgentRateLimited(text)
    if _CONTEXT.search(said):
        return AgentContextError(text)
    if code in (126, 127) and _NOT_RUN.search(said):
        return AgentUnavailable(f"{name} cannot be run in the sandbox{_quoted(said)}; {WHAT_IS_SEEN}")
    return AgentExecutionError(text, exit_code=code)


def tail(text: str, most: int = SHOWN_STDERR) -> str:
    """Return the last characters of a text, as one trimmed piece."""
    text = text.strip()
    return text if len(text) <= most else "…" + text[-most:]


def _quoted(said: str) -> str:
    return f": {tail(said)}" if said.strip() else ", and said nothing"


def joined(texts: Sequence[str]) -> str:
    """Return the parts of an answer as one text."""
    return "\n\n".join(text.strip("\n") for text in texts if text.strip())


def with_counted(outcome: Outcome, input_tokens: int, output_tokens: int, cost: float | None) -> Outcome:
    """Return an outcome whose figures are the relay's, where the program says none."""
    if not (input_tokens or output_tokens):
        return outcome
    if outcome.cost is None:
        outcome = replace(outcome, cost=cost)
    if outcome.tokens is not None:
        return outcome
    return replace(outcome, input_tokens=input_tokens, output_tokens=output_tokens)
