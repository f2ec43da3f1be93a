"""kill -9 at every write point and at random instants (SE-50 … SE-54, acceptance 1).

A real process drives a scripted turn and dies; the next one goes on. Whatever the instant: the turn
completes, the journal has no gap, each call has one outcome, each edit is in the branch exactly
once, nothing is sent twice, no landing is torn. `benchmarks/kill_run.py` does it 200 times.
"""

import os
import random
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.crashes import Forks, Scene, check, forks
from support.fake_models import FakeModels

POINTS = [
    "submit", "submitted",
    "before turn_started", "after turn_started",
    "before assistant", "after assistant:2", "after assistant:6",
    "before tool_intent:2", "after tool_intent", "after tool_intent:2", "after tool_intent:4",
    "tool", "tool:2", "tool:3", "tool:5",
    "before tool_outcome:2", "before tool_outcome:5", "after tool_outcome:3",
    "settled:1", "settled:4",
    "frozen", "before turn_ended", "after turn_ended",
]  # fmt: skip
LANDING = [
    "frozen", "landing stage:2", "landing prepared", "landing applying", "landing remove",
    "landing place:2", "landing sync",
    "landing settle", "landing done", "before turn_ended",
]  # fmt: skip


@pytest.fixture(scope="module")
def models() -> Iterator[str]:
    with FakeModels() as fake:
        yield fake.anthropic_url


@pytest.fixture(scope="module")
def children(models: str) -> Iterator[Forks]:
    with forks(models) as server:
        yield server


def finish(scene: Scene, children: Forks) -> None:
    assert children.run(scene.config()) == 0, scene.log
    assert check(scene) == [], scene.log


@pytest.mark.parametrize("point", POINTS)
def test_a_turn_killed_at_a_write_point_completes_exactly_once(
    tmp_path: Path, children: Forks, models: str, point: str
) -> None:
    """SE-50 … SE-54."""
    scene = Scene(tmp_path / "scene", models)
    assert os.WTERMSIG(children.run(scene.config(point))) == signal.SIGKILL, scene.log
    finish(scene, children)


@pytest.mark.parametrize("point", LANDING)
def test_a_turn_killed_while_it_lands_has_landed_whole(
    tmp_path: Path, children: Forks, models: str, point: str
) -> None:
    """WS-53, WS-57."""
    scene = Scene(tmp_path / "scene", models, policy="turn")
    assert os.WTERMSIG(children.run(scene.config(point))) == signal.SIGKILL, scene.log
    finish(scene, children)


@pytest.mark.parametrize("seed", range(4))
def test_a_turn_killed_again_and_again_at_random_instants_completes(
    tmp_path: Path, children: Forks, models: str, seed: int
) -> None:
    """Acceptance 1, SE-23: three deaths are not a crash loop for a person who resumes."""
    scene = Scene(tmp_path / "scene", models, policy=random.Random(seed).choice(["review", "turn"]))
    chance = random.Random(seed)
    for _ in range(3):
        if children.run(scene.config(), kill_after_s=chance.uniform(0.02, 0.5)) == 0:
            break
    for _ in range(3):  # a turn that died three times is failed once before a person resumes it
        assert children.run(scene.config()) == 0, scene.log
        if check(scene) == []:
            return
    assert check(scene) == [], scene.log


def test_three_processes_that_die_with_a_turn_make_a_crash_loop_that_names_the_last_intent(
    tmp_path: Path, children: Forks, models: str
) -> None:
    """SE-23."""
    import sqlite3

    scene = Scene(tmp_path / "scene", models)
    for _ in range(3):
        assert os.WTERMSIG(children.run(scene.config("after tool_intent"))) == signal.SIGKILL
    assert children.run(scene.config(resumes=False)) == 0
    database = sqlite3.connect(scene.directory / "data" / "agent.db")
    state, reason, error = database.execute("SELECT state, stop_reason, error FROM turns").fetchone()
    database.close()
    assert (state, reason) == ("failed", "crash_loop")
    assert "write_file" in error
    finished = children.run(scene.config())  # a person resumes
    assert finished == 0
    database = sqlite3.connect(scene.directory / "data" / "agent.db")
    assert database.execute("SELECT state FROM turns").fetchone() == ("done",)
    database.close()


def test_the_answer_of_a_turn_without_tools_is_recorded_with_its_end_or_not_at_all(
    tmp_path: Path, children: Forks, models: str
) -> None:
    """SE-14, SE-51: one commit; a process that dies before it asks the model again."""
    import sqlite3

    scene = Scene(tmp_path / "scene", models, steps=[{"text": "Only words."}])

    def found() -> tuple[list[str], str]:
        database = sqlite3.connect(scene.directory / "data" / "agent.db")
        types = [row[0] for row in database.execute("SELECT type FROM journal ORDER BY seq")]
        (state,) = database.execute("SELECT state FROM turns").fetchone()
        database.close()
        return types, state

    assert os.WTERMSIG(children.run(scene.config("before turn_ended"))) == signal.SIGKILL
    assert found() == (["turn_started", "user"], "running")
    assert children.run(scene.config()) == 0, scene.log
    assert found() == (["turn_started", "user", "assistant", "turn_ended"], "done")
    other = Scene(tmp_path / "other", models, steps=[{"text": "Only words."}])
    assert os.WTERMSIG(children.run(other.config("after assistant"))) == signal.SIGKILL
    scene = other
    assert found() == (["turn_started", "user", "assistant", "turn_ended"], "done")
