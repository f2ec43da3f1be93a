"""Three jobs for an agent on the sample project, and how each result is checked from the outside.

The expected values are worked out here from the project's own files, without the agent and without
the project's code: change a price or an order, and what is expected changes with it.

    python examples/jobs.py         # print the jobs and what is expected of each
"""

import csv
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

PROJECT = Path(__file__).resolve().parent / "bakery"
PRODUCT = "Croissant"
PRICES = "bakery/prices.py"
NEW_LIMIT = "50.00"
DELIVERY_LINE = f'FREE_DELIVERY_FROM = Decimal("{NEW_LIMIT}")'
DELIVERY_CHECK = f"grep -qx '{DELIVERY_LINE}' {PRICES}"


@dataclass(frozen=True)
class Job:
    """One job.

    Attributes:
        name: short name.
        kind: what it needs: `question`, `computation` or `change`.
        prompt: what the agent is asked.
        check: called with the project as it was, the project as it is now, and the agent's last
            answer; returns what is wrong, or None.
        expected: the expected result in words, for people.
    """

    name: str
    kind: str
    prompt: str
    check: Callable[[Path, Path, str], str | None]
    expected: Callable[[Path], str]


def numbers(text: str) -> set[float]:
    """Return the numbers in a text; `1,234` and `1234` are the same."""
    found = re.findall(r"\d[\d,]*(?:\.\d+)?", text)
    return {float(number.replace(",", "")) for number in found}


def constant(project: Path, name: str) -> float:
    """Return the number a constant of `bakery/prices.py` is set to."""
    source = (project / PRICES).read_text(encoding="utf-8")
    found = re.search(rf'^{name} = (?:Decimal\(")?([\d.]+)', source, re.MULTILINE)
    if found is None:
        raise ValueError(f"{PRICES} sets no {name}")
    return float(found[1])


def ordered_pieces(project: Path) -> int:
    """Return how many pieces of `PRODUCT` the order book holds."""
    with (project / "data" / "orders.csv").open(newline="", encoding="utf-8") as file:
        return sum(int(row["quantity"]) for row in csv.DictReader(file) if row["product"] == PRODUCT)


def check_fee(before: Path, _after: Path, answer: str) -> str | None:
    """The answer names the fee that `bakery/prices.py` sets."""
    fee = constant(before, "DELIVERY_FEE")
    return None if fee in numbers(answer) else f"it is {fee:.2f}, which the answer does not name"


def check_pieces(before: Path, _after: Path, answer: str) -> str | None:
    """The answer names the sum over the order book."""
    pieces = ordered_pieces(before)
    return None if pieces in numbers(answer) else f"there are {pieces}, which the answer does not name"


def check_delivery(before: Path, after: Path, _answer: str) -> str | None:
    """The limit is the new one, and nothing else in the file changed."""
    old = (before / PRICES).read_text(encoding="utf-8").splitlines()
    new = (after / PRICES).read_text(encoding="utf-8").splitlines()
    expected = [DELIVERY_LINE if line.startswith("FREE_DELIVERY_FROM = ") else line for line in old]
    if new == old:
        return f"{PRICES} is unchanged"
    changed = [line for line in new if line not in old]
    return None if new == expected else f"{PRICES} does not read as asked; it now has {changed}"


def wrong_patch(patch: str) -> str | None:
    """Say what is wrong with a patch that should change the limit and nothing else; None when it is right."""
    lines = patch.splitlines()
    old = [line[1:] for line in lines if line.startswith("-") and not line.startswith("--- ")]
    new = [line[1:] for line in lines if line.startswith("+") and not line.startswith("+++ ")]
    if not old and not new:
        return "the agent changed nothing"
    if new == [DELIVERY_LINE] and len(old) == 1 and old[0].startswith("FREE_DELIVERY_FROM = "):
        return None
    return f"the change is not what was asked: {old} became {new}"


JOBS = (
    Job(
        name="fee",
        kind="question",
        prompt="How high is the delivery fee?",
        check=check_fee,
        expected=lambda project: f"{constant(project, 'DELIVERY_FEE'):.2f}",
    ),
    Job(
        name="croissants",
        kind="computation",
        prompt=f"What is the total quantity of the product {PRODUCT} in data/orders.csv?",
        check=check_pieces,
        expected=lambda project: f"{ordered_pieces(project)} pieces",
    ),
    Job(
        name="delivery",
        kind="change",
        prompt=f"Make delivery free from {NEW_LIMIT} on instead of 60.00.",
        check=check_delivery,
        expected=lambda _project: (
            f"{PRICES} sets FREE_DELIVERY_FROM to {NEW_LIMIT} and is otherwise unchanged"
        ),
    ),
)


if __name__ == "__main__":
    for job in JOBS:
        print(f"{job.name} ({job.kind}): {job.prompt}\n  expected: {job.expected(PROJECT)}")
