"""A model that knows only what it is sent does its job, however much there is to read."""

from pathlib import Path
from typing import Any

import pytest
from support.knowing import Job, work
from support.patience import patience

pytestmark = pytest.mark.timeout(patience(90))


@pytest.mark.parametrize(
    ("wire", "kind", "share", "notes"),
    [
        ("anthropic", "facts", 0.5, False),
        ("responses", "facts", 2.0, True),
        ("openai", "rename", 0.9, False),
        ("ollama", "rename", 2.0, True),
    ],
)
async def test_what_was_read_is_in_the_answer_and_the_first_instruction_holds(
    tmp_path: Path, wire: str, kind: str, share: float, notes: bool
) -> None:
    job = await work(tmp_path, wire, Job(kind, 32_000, share, notes))
    assert job.problems == []


async def test_a_model_whose_results_are_cleared_after_three_cannot_do_it(tmp_path: Path) -> None:
    """The old rule: so the programs above do notice what is taken from them."""
    rule: dict[str, Any] = {"agent__keep_results": 0.0}
    job = await work(tmp_path, "openai", Job("facts", 32_000, 0.5, False), **rule)
    assert any(problem.startswith("facts were lost") for problem in job.problems)
