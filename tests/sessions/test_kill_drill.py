"""kill -9 at every named write point, again and again in one data directory (SE-50 … SE-56, WS-57).

After each death the next process goes on; after each drill a checker that shares nothing with the
product looks at database and disk: every message answered once and in order, nothing sent outside
twice, nothing delivered out of order or lost, no torn landing, no lost file. `benchmarks/kill_drill.py`
does it a thousand times.
"""

import random
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.crashes import Forks
from support.drills import CHILD, Drill, answer, check_drill, drill_at_random
from support.fake_models import FakeModels

TURN = [
    "submit", "submitted", "lease", "leased", "before turn_started", "after turn_started",
    "before assistant", "after assistant", "after assistant:2", "after assistant:3",
    "before tool_intent", "after tool_intent", "after tool_intent:2", "tool", "tool:2",
    "before tool_outcome", "after tool_outcome", "before tool_outcome:2", "after tool_outcome:3", "settled",
    "frozen", "snapshot", "outbox", "before turn_ended", "after turn_ended",
    "sending", "delivered", "sending:2", "delivered:2",
]  # fmt: skip
COMPACTION = ["summarised", "before compaction", "after compaction"]
LANDING = [
    "landing steps", "landing prepared", "landing applying", "landing place", "landing place:2",
    "landing sync", "landing settle", "landing done",
]  # fmt: skip
OTHERS = {
    "reset": ["counter", "new session"], "fork": ["forked"], "delete": ["buried"], "import": ["imported", "imported:3"],
}  # fmt: skip


@pytest.fixture(scope="module")
def models() -> Iterator[str]:
    with FakeModels() as fake:
        fake.answer(answer)
        yield fake.anthropic_url


@pytest.fixture(scope="module")
def children(models: str) -> Iterator[Forks]:
    with tempfile.TemporaryDirectory() as directory:
        warm = Drill(Path(directory) / "warm", models)
        server = Forks(warm.config(warm.next_message(), None), CHILD)
        try:
            yield server
        finally:
            server.close()


def drill_turns(drill: Drill, children: Forks, points: list[str]) -> None:
    """A message for each point; the process dies there, the next one finishes."""
    for point in points:
        message = drill.next_message()
        drill.kill(children, message, point)
        drill.finish(children, message)


@pytest.mark.parametrize("policy", ["review", "turn"])
@pytest.mark.parametrize("part", range(2))
def test_each_write_point_of_a_turn_survives_a_kill(
    tmp_path: Path, children: Forks, models: str, policy: str, part: int
) -> None:
    """SE-50 … SE-55: each point once, the policies in turns; the drill takes all of them under both."""
    drill = Drill(tmp_path / "drill", models, policy)
    drill_turns(drill, children, TURN[part::2][policy == "turn" :: 2])
    assert check_drill(drill) == [], drill.log


@pytest.mark.parametrize("seed", range(2))
def test_a_turn_whose_processes_die_at_random_write_points_still_ends_once(
    tmp_path: Path, children: Forks, models: str, seed: int
) -> None:
    """Acceptance 1: process after process gets a little further, then dies."""
    drill = Drill(tmp_path / "drill", models, ("review", "turn")[seed % 2])
    drill_at_random(drill, children, random.Random(seed), deaths=14)
    assert check_drill(drill) == [], drill.log


@pytest.mark.parametrize("point", COMPACTION)
def test_each_write_point_of_a_compaction_survives_a_kill(
    tmp_path: Path, children: Forks, models: str, point: str
) -> None:
    """SE-56: the third turn summarises."""
    drill = Drill(tmp_path / "drill", models)
    for _ in range(2):
        drill.finish(children, drill.next_message())
    drill_turns(drill, children, [point])
    assert check_drill(drill) == [], drill.log


def test_each_write_point_of_a_landing_and_its_undo_survives_a_kill(
    tmp_path: Path, children: Forks, models: str
) -> None:
    """WS-53, WS-57: whole or not at all."""
    drill = Drill(tmp_path / "drill", models, "turn")
    drill_turns(drill, children, LANDING)
    assert check_drill(drill) == [], drill.log
    for index, point in enumerate(["steps", "prepared", "applying", "place", "sync", "settle"]):
        undone = Drill(tmp_path / f"undo{index}", models, "turn")
        for _ in range(2):
            undone.finish(children, undone.next_message())
        undone.kill(children, [{"do": "undo"}], f"landing {point}")
        undone.finish(children, [{"do": "undo"}])
        undone.counted["undo"] = 1
        assert check_drill(undone) == [], undone.log


def test_reset_fork_delete_and_import_happen_whole_or_not_at_all(
    tmp_path: Path, children: Forks, models: str
) -> None:
    """SE-56."""
    drill = Drill(tmp_path / "drill", models)
    drill.finish(children, drill.next_message())
    for kind, points in OTHERS.items():
        for number, point in enumerate(points):
            if kind == "delete":
                drill.finish(children, [{"do": "fork", "n": number + 1}])
            operation = drill.next(kind)
            drill.kill(children, operation, point)
            drill.finish(children, operation)
    assert check_drill(drill) == [], drill.log
