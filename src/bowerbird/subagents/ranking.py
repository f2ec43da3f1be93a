"""Who won a tournament: a pure, total order of attempts (DE-23, DE-24).

Here: the order, the winner, the rows of the result. Not here: running attempts and checks.
"""

import math
from collections.abc import Sequence
from typing import Any

import msgspec

from bowerbird.subagents.checks import Check
from bowerbird.subagents.records import SELF, handle_of


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt as it is judged.

    Attributes:
        number: of its handle. completed: it said that it is done.
        agent: whose it is. cost: USD, None when unknown. touched_checks: it changed files that checks read.
    """

    number: int
    completed: bool
    checks: tuple[Check, ...] = ()
    files: int = 0
    added: int = 0
    removed: int = 0
    touched_checks: bool = False
    cost: float | None = None
    tokens: int = 0
    seconds: float = 0.0
    error: str | None = None
    agent: str = SELF

    @property
    def passed(self) -> int:
        """How many checks passed."""
        return sum(check.passed for check in self.checks)

    @property
    def passes(self) -> bool:
        """Whether it can win: it completed and every check passed."""
        return self.completed and self.passed == len(self.checks)


def ranked(attempts: Sequence[Attempt]) -> list[Attempt]:
    """Return the attempts, best first; the order they are given in does not matter.

    >>> [a.number for a in ranked([Attempt(number=0, completed=False), Attempt(number=1, completed=True)])]
    [1, 0]
    """
    return sorted(attempts, key=_place)


def _place(attempt: Attempt) -> tuple[Any, ...]:
    return (
        not attempt.completed,
        attempt.passed < len(attempt.checks),
        -attempt.passed,
        # Among equals, whoever changed what the checks read has proved less.
        attempt.touched_checks,
        attempt.added + attempt.removed,
        math.inf if attempt.cost is None else attempt.cost,
        attempt.seconds,
        attempt.number,
    )


def winner(order: Sequence[Attempt]) -> Attempt | None:
    """Return the winner of ranked attempts, None when no attempt passes."""
    return order[0] if order and order[0].passes else None


def row(attempt: Attempt, rank: int) -> dict[str, Any]:
    """Return one row of the result's `ranking`; ranks count from 1."""
    return {
        "handle": handle_of(attempt.number),
        "rank": rank,
        "status": "completed" if attempt.completed else "failed",
        "passed": attempt.passed,
        "failed": len(attempt.checks) - attempt.passed,
        "checks": [check.record() for check in attempt.checks],
        "files": attempt.files,
        "added": attempt.added,
        "removed": attempt.removed,
        "touched_checks": attempt.touched_checks,
        "cost": attempt.cost,
        "tokens": attempt.tokens,
        "seconds": attempt.seconds,
        "error": attempt.error,
        "agent": attempt.agent,
    }
