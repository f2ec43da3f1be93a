"""A landing costs what the first did, however many there were and however many branches exist (D-3)."""

from pathlib import Path

from support.failing_calls import FailingCalls
from support.places import memory_place

from bowerbird.workspace import Branch, Workspace


async def calls_of_landings(branch: Branch, count: int) -> list[int]:
    """How many system calls each of `count` landings makes, as turns end one after the other."""
    counted: list[int] = []
    for number in range(count):
        await branch.write_file(f"f{number % 5}.txt", f"{number}\n")
        branch.end_turn(f"t_{number}")
        calls = FailingCalls()
        with calls.armed():
            branch.land(partial=True)
        counted.append(calls.count)
    return counted


async def test_the_last_of_many_landings_costs_what_the_first_did() -> None:
    """Issue 10, point 4, in system calls instead of seconds; `benchmarks/landings.py` measures those."""
    with memory_place() as place:
        root = Path(place) / "ws"
        root.mkdir()
        with Workspace(root, data_dir=place / "data") as workspace:
            alone = await calls_of_landings(workspace.branch(), 50)
            for _ in range(150):
                stored = workspace.branch()
                workspace.forget(stored.id)
            crowded = await calls_of_landings(workspace.branch(), 20)
    # The first five create the files that later ones replace.
    assert sum(alone[-10:]) <= 1.2 * sum(alone[5:15]) + 10 * 50  # a look at each landing of the branch
    assert sum(crowded[10:20]) <= 1.2 * sum(alone[10:20])
