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
READ_SAME = 10  # equal rounds with nothing new between, where they only read
MORE = 2  # repeats after the corrective message, then the run ends
KEPT_ROUNDS = 100

Verdict = Literal["fine", "warn", "stop"]


class Round(msgspec.Struct, frozen=True):
    """One batch of calls with their results; equal rounds did and learned the same."""

    signature: bytes
    reads: bool = False


def round_of(calls: Sequence[ToolUseBlock], outcomes: Iterable[ToolOutcome], *, reads: bool = False) -> Round:
    """Return the round that these calls and outcomes make, whatever their ids.

    Args:
        reads: they only read.
    """
    results = {o.call: o for o in outcomes}
    digest = hashlib.blake2b(digest_size=16)
    for call in calls:
        outcome = results.get(call.id)
        digest.update(msgspec.json.encode([call.name, call.input], order="sorted"))
        digest.update(msgspec.json.encode([outcome.status, outcome.content] if outcome else None))
    return Round(digest.digest(), reads)


def judge(rounds: Sequence[Round]) -> Verdict:
    """Return whether the newest rounds repeat: `warn` once, `stop` after two more repeats.

    Example:
        >>> judge([Round(b"a")] * 3), judge([Round(b"a")] * 4), judge([Round(b"a")] * 5)
        ('warn', 'fine', 'stop')
    """
    if not rounds:
        return "fine"
    newest = rounds[-1]
    in_a_row = next((at for at, each in enumerate(reversed(rounds)) if each != newest), len(rounds))
    if in_a_row >= SAME and not newest.reads:
        return _verdict(in_a_row, SAME, MORE)
    # Looking again after something new is work; looking again and again is not.
    seen: set[bytes] = set()
    fresh = 0
    for at, each in enumerate(rounds):
        if each.signature not in seen:
            seen.add(each.signature)
            fresh = at
    since = rounds[fresh:].count(newest) + (newest in rounds[:fresh])
    return _verdict(since, READ_SAME, MORE)


def _verdict(length: int, allowed: int, more: int) -> Verdict:
    if length >= allowed + more:
        return "stop"
    return "warn" if length == allowed else "fine"
