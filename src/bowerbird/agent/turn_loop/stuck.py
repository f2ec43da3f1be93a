"""Is the model going round in circles? One pure judgement over its rounds (AG-50).

Here: what counts as repeating and when enough is enough. Not here: what is said or done then.
"""

import hashlib
from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec

from bowerbird.core.events import ToolOutcome
from bowerbird.core.messages import ToolUseBlock

SAME = 3  # equal rounds in a row until the model is told
PATIENT_SAME = 10  # for tools that are asked again and again by nature
ALTERNATIONS = 4  # A B, four times
MORE = 2  # repeats after the corrective message, then the run ends
PATIENT_TOOLS = frozenset(("check_background", "read_inbox", "check_protocol"))
KEPT_ROUNDS = 2 * (ALTERNATIONS + MORE) + PATIENT_SAME

Verdict = Literal["fine", "warn", "stop"]


class Round(msgspec.Struct, frozen=True):
    """One batch of calls with their results; equal rounds did and learned the same."""

    signature: bytes
    patient: bool = False


def round_of(calls: Sequence[ToolUseBlock], outcomes: Iterable[ToolOutcome]) -> Round:
    """Return the round that these calls and outcomes make, whatever their ids."""
    results = {o.call: o for o in outcomes}
    digest = hashlib.blake2b(digest_size=16)
    for call in calls:
        outcome = results.get(call.id)
        digest.update(msgspec.json.encode([call.name, call.input], order="sorted"))
        digest.update(msgspec.json.encode([outcome.status, outcome.content] if outcome else None))
    patient = bool(calls) and all(c.name in PATIENT_TOOLS for c in calls)
    return Round(digest.digest(), patient)


def judge(rounds: Sequence[Round]) -> Verdict:
    """Return whether the newest rounds repeat: `warn` once, `stop` after two more repeats.

    Example:
        >>> judge([Round(b"a")] * 3), judge([Round(b"a")] * 4), judge([Round(b"a")] * 5)
        ('warn', 'fine', 'stop')
    """
    if not rounds:
        return "fine"
    same = _run_length(rounds, 1)
    allowed = PATIENT_SAME if rounds[-1].patient else SAME
    if same >= allowed:
        return _verdict(same, allowed, MORE)
    if len(rounds) > 1 and rounds[-1] != rounds[-2]:
        turns = _run_length(rounds, 2)
        if turns >= 2 * ALTERNATIONS and not any(r.patient for r in rounds[-2:]):
            return _verdict(turns, 2 * ALTERNATIONS, 2 * MORE)
    return "fine"


def _run_length(rounds: Sequence[Round], period: int) -> int:
    """Return how many of the newest rounds equal the one `period` before them, plus `period`."""
    length = min(period, len(rounds))
    for at in range(len(rounds) - 1, period - 1, -1):
        if rounds[at] != rounds[at - period]:
            break
        length += 1
    return length


def _verdict(length: int, allowed: int, more: int) -> Verdict:
    if length >= allowed + more:
        return "stop"
    return "warn" if length == allowed else "fine"
