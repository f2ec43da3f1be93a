"""kill -9 of a real `bowerbird serve` at every named write point (issue: Must show 2; SE-50 … SE-56).

Clients speak REST and WebSocket only. In each life everybody says something, the process dies, the next one
goes on with what it finds; at the end a checker that reads the database with plain SQL and the disk as files
says what is wrong. Which point a death really hit is noted by the process at that moment.
`python benchmarks/kill_drill.py --serve` does it a thousand times.
"""

import asyncio
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.postgres import PostgresServer
from support.serve_checker import check
from support.serve_drill import ServeDrill
from support.serve_peers import Peers, peers
from support.serve_points import COMPACTION, LANDING, ONCE, UNDO, named, round_of
from support.serve_processes import Plain, Serves


@pytest.fixture(scope="module")
def world() -> Iterator[Peers]:
    with peers() as made:
        yield made


@pytest.fixture(scope="module")
def serves() -> Iterator[Serves]:
    server = Serves()
    try:
        yield server
    finally:
        server.close()


def judged(drill: ServeDrill) -> None:
    assert check(drill) == [], drill.log


@pytest.mark.parametrize("policy", ["review", "turn"])
@pytest.mark.parametrize("part", range(2))
def test_a_server_killed_at_each_write_point_of_a_turn_answers_everything_once(
    tmp_path: Path, world: Peers, serves: Serves, policy: str, part: int
) -> None:
    """SE-50 … SE-55: each point once, the policies in turns; the drill takes all of `TURN` under both."""
    drill = ServeDrill(tmp_path / "drill", world, policy)
    drill.begin(serves)
    outside = [point for point in ONCE[part::2] if point.startswith("external call")]
    others = [point for point in ONCE[part::2] if point not in outside]  # what lands by itself calls nothing
    points = [*others[1::2], *LANDING[part::2]] if policy == "turn" else [*others[::2], *outside]
    missed = round_of(drill, serves, points)
    drill.finish(serves)
    judged(drill)
    assert missed == []
    assert set(named(drill.hits())) == set(named(dict.fromkeys(points, 1)))


def test_a_server_killed_again_and_again_at_random_write_points_answers_everything_once(
    tmp_path: Path, world: Peers, serves: Serves
) -> None:
    """Acceptance 1: some deaths here, a thousand in the drill; a process may die while it picks up what is left."""
    chance = random.Random(1)
    drill = ServeDrill(tmp_path / "drill", world, "turn")
    drill.begin(serves)
    while drill.kills < 8:
        drill.live(serves, f"any:{chance.randint(1, 60)}")
    drill.finish(serves)
    judged(drill)
    assert sum(drill.hits().values()) >= drill.kills  # a process may also die while it only picks up


def test_a_server_killed_while_it_summarises_keeps_the_whole_history(
    tmp_path: Path, world: Peers, serves: Serves
) -> None:
    """SE-56."""
    drill = ServeDrill(tmp_path / "drill", world)
    drill.begin(serves)
    drill.live(serves, None)
    assert round_of(drill, serves, COMPACTION, drill.compact_and_speak) == []
    drill.finish(serves)
    judged(drill)
    assert set(named(drill.hits())) == {"compaction"}


def test_a_server_killed_while_it_takes_a_landing_back_has_taken_back_all_or_nothing(
    tmp_path: Path, world: Peers, serves: Serves
) -> None:
    """WS-56, WS-57."""
    drill = ServeDrill(tmp_path / "drill", world, "turn", count=1, chats=0)
    drill.begin(serves)
    points = [*UNDO[1::2], UNDO[-1]]  # the others in the drill
    for point in points:
        before = drill.files()
        drill.live(serves, None)
        landed = drill.files()
        assert not drill.live(serves, point, drill.undo_newest, "undo "), point
        drill.live(serves, None, drill.undo_newest)
        assert drill.files() == before != landed, point
    drill.finish(serves)
    judged(drill)
    assert {name for name in drill.hits() if name.startswith("undo ")} == {
        f"undo {point.partition(':')[0]}" for point in points
    }


def test_an_unchanged_server_killed_from_outside_when_a_row_appears_answers_everything_once(
    tmp_path: Path, world: Peers
) -> None:
    """The command as anybody starts it; where it was is read from the database it left."""
    drill = ServeDrill(tmp_path / "drill", world, "turn", chats=0)
    plain = Plain()
    try:
        drill.begin(plain)
        for kind in ("tool_intent", "assistant", "turn_ended"):
            assert not drill.live(plain, kind), kind
        drill.finish(plain)
    finally:
        plain.close()
    judged(drill)


@pytest.mark.parametrize(("policy", "points"), [
    ("review", ["leased", "external call", "before tool_outcome", "snapshot"]),
    ("turn", ["submitted", "after assistant", "outbox", "after turn_ended", "landing place"]),
])  # fmt: skip
def test_a_server_on_postgresql_killed_at_write_points_answers_everything_once(
    tmp_path: Path, world: Peers, serves: Serves, postgres: PostgresServer, policy: str, points: list[str]
) -> None:
    """SE-50 … SE-55; what lands by itself calls nothing outside (D-6), so the calls die under `review`."""
    url = asyncio.run(postgres.database())
    drill = ServeDrill(tmp_path / "drill", world, policy, url=url)
    drill.begin(serves)
    assert round_of(drill, serves, points) == []
    drill.finish(serves)
    judged(drill)
    asyncio.run(postgres.give_back(url))
