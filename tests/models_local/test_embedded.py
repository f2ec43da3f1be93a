"""The real embedded model on the sample project. Marked: run by hand and by `make demo`, not by `make test`.

    BOWERBIRD_WEIGHTS=/path/model.gguf pytest -m embedded tests/models_local/test_embedded.py

Without the variable the 0.5B weights are fetched into a cache of pytest's, once.
"""

import importlib
import os
import runpy
import shutil
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from support.patience import patience

from bowerbird.api import Agent
from bowerbird.core.messages import ToolUseBlock, user_text
from bowerbird.core.requests import ModelRequest
from bowerbird.models.local import LocalModel, fetch_weights, open_local
from bowerbird.models.local.choices import OFFERED
from bowerbird.models.protocol import complete
from bowerbird.models.settings import LocalSettings

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
PROJECT = EXAMPLES / "bakery"
JOBS = runpy.run_path(str(EXAMPLES / "jobs.py"))["JOBS"]

pytestmark = [pytest.mark.embedded, pytest.mark.timeout(patience(180))]


@pytest.fixture(scope="session")
def weights(pytestconfig: pytest.Config) -> Path:
    """The weights to test with."""
    if "embedded" not in pytestconfig.option.markexpr:
        pytest.skip("needs the weights; run with -m embedded")
    named = os.environ.get("BOWERBIRD_WEIGHTS")
    if named:
        return Path(named)
    cache = pytestconfig.cache
    assert cache is not None
    return fetch_weights(cache.mkdir("bowerbird-weights"), small=True, on_progress=lambda _: None)


@pytest.fixture
async def model(weights: Path) -> AsyncIterator[LocalModel]:
    """The real model."""
    opened = open_local(str(weights), LocalSettings())
    yield opened
    await opened.aclose()


@pytest.mark.parametrize("job", JOBS, ids=lambda job: job.name)
async def test_every_step_of_a_real_job_is_a_valid_call_and_the_turn_ends(
    job: Any, model: LocalModel, tmp_path: Path
):
    """Whether the answer is right is a matter of the model; that each step can be run is ours."""
    project = tmp_path / "bakery"
    shutil.copytree(PROJECT, project)
    result = await Agent(workdir=project, data_dir=":memory:", language_model=model, max_iterations=20).run(
        job.prompt
    )
    calls = [block for m in result.messages for block in m.content if isinstance(block, ToolUseBlock)]
    assert result.stop_reason == "completed" and result.text
    assert calls and {call.name for call in calls} <= set(OFFERED)
    assert result.usage.cost == 0.0
    assert result.usage.output_tokens > 0, "no job is done without the model"


@pytest.mark.timeout(patience(900))
def test_where_the_first_attempt_of_the_demo_is_wrong_three_compete_and_the_winner_lands(
    weights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """The branch holds a wrong change, as after a failed job; all that follows is the demo's own."""
    monkeypatch.delenv("BOWERBIRD_WEIGHTS", raising=False)
    monkeypatch.setattr(sys, "path", [str(EXAMPLES), *sys.path])
    demo: Any = importlib.import_module("demo")
    work, job, model = tmp_path / "bakery", JOBS[-1], ["--model", f"local:{weights}"]
    shutil.copytree(PROJECT, work)
    monkeypatch.setattr(demo, "WORK", work)
    monkeypatch.setattr(demo, "DATA", tmp_path / "data")
    demo.bowerbird("run", *model, "--no-memory", job.prompt.replace("50.00", "5.00"))
    session, unfit = demo.judged(job, model)
    assert unfit is None and len(session) == 1, "no attempt won"
    assert demo.land_and_undo(job, session) is None


async def test_a_plain_question_without_tools_is_answered(model: LocalModel):
    end = await complete(model, ModelRequest((user_text("What is the capital of France?"),), max_tokens=40))
    assert "Paris" in end.message.text
