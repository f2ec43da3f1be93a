"""Layers joined again and again: every snapshot keeps its content (WS-43)."""

import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from support.branch_histories import read_branch
from support.time_lines import run_time_line

from bowerbird.core.errors import Stale
from bowerbird.workspace import Branch, Workspace
from bowerbird.workspace.tree.manifest import ManifestFile

TIME_LINES = 6  # `make drills` runs thousands
EACH = 2
THINNED = 3
TURNS = 20


@pytest.fixture
def joined_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """More than 4 layers are joined to 2, so that 20 turns join several times."""
    monkeypatch.setattr("bowerbird.workspace.history.layer_shelf.MOST_LAYERS", 4)
    monkeypatch.setattr("bowerbird.workspace.history.layer_shelf.LAYERS_AFTER", 2)


@pytest.mark.usefixtures("joined_often")
@pytest.mark.parametrize("first", range(0, TIME_LINES, EACH))
def test_every_snapshot_keeps_its_content_beyond_three_joins(first: int, tmp_path: Path) -> None:
    """Engine finding 2: fork, restore, diff and merge base at every snapshot equal a plain dict model."""
    for seed in range(first, first + EACH):
        counts = run_time_line(tmp_path / str(seed), seed, TURNS)
        assert counts.most_joins > 3


@pytest.mark.usefixtures("joined_often")
def test_forgotten_snapshots_take_nothing_from_the_others(tmp_path: Path) -> None:
    """Reliability 10: thinned at random moments, killed at any change of a directory, or not.

    `benchmarks/time_lines.py --thin` runs as many as one likes.
    """
    thinned = 0
    for seed in range(THINNED):
        thinned += run_time_line(tmp_path / str(seed), seed, TURNS, thins=True).thinned
    assert thinned > 0


@pytest.mark.usefixtures("joined_often")
async def test_thinned_snapshots_leave_the_disk(tmp_path: Path) -> None:
    """Reliability 10: their rows went, and their layers stayed for ever."""
    with Workspace(None, data_dir=tmp_path) as workspace:
        branch = workspace.branch()
        for turn in range(1, 41):
            await branch.write_file("f", f"{turn}\n")
            branch.end_turn(f"t_{turn}")
        layers = tmp_path / "branches" / branch.id / "layers"
        before = len(list(layers.iterdir()))
        old = {f"t_{turn}" for turn in range(1, 31) if turn % 10}
        assert workspace.forget_snapshots(branch.id, old) > 20
        assert len(list(layers.iterdir())) < before - 20
        kept = {row.turn: row.id for row in branch.snapshots()}
        for turn in (10, 20, 30, 31, 40):
            child = branch.fork(snapshot=kept[f"t_{turn}"])
            assert (await child.read_file("f"))["content"].startswith(f"{turn}\n")
        assert workspace.forget_snapshots(branch.id, old) == 0


def state_after(turn: int) -> dict[str, bytes]:
    """What the stored branch showed after a turn: each wrote `f<turn % 7>`, every tenth deleted the last one."""
    tree: dict[str, bytes] = {}
    for number in range(1, turn + 1):
        if number % 10 == 0:
            del tree[f"f{(number - 1) % 7}"]
        else:
            tree[f"f{number % 7}"] = b"%d\n" % number
    return tree


def test_a_branch_that_lost_its_snapshots_has_them_again(tmp_path: Path) -> None:
    """Engine finding 2: a branch directory as 229c7cd left it, in which 114 of 190 snapshots showed no file."""
    stored = Path(__file__).parent / "golden/branch_of_190_turns.tar.gz"
    (tmp_path / "branches").mkdir()
    subprocess.run(["tar", "-xzf", stored, "-C", tmp_path / "branches"], check=True)
    (folder,) = (tmp_path / "branches").iterdir()
    with Workspace(None, data_dir=tmp_path) as workspace:
        branch = workspace.open(folder.name)
        rows = branch.snapshots()
        assert [row.turn for row in rows] == [f"t_{turn}" for turn in range(1, 191)]
        for turn, row in enumerate(rows, 1):
            branch.restore(row.id)
            found = {path: read_branch(branch, path) for path in (f"f{number}" for number in range(7))}
            shown = {path: version[1] for path, version in found.items() if version is not None}
            assert shown == state_after(turn), row.turn


class Killed(BaseException):
    """Stands for a kill: nothing of ours catches it."""


@pytest.mark.usefixtures("joined_often")
@pytest.mark.parametrize("point", ["exchange", "keep", "manifest"])
async def test_a_kill_while_layers_are_joined_loses_no_snapshot(
    point: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """WS-43, WS-59: also after going back behind the layer that was to hold the others."""
    states: list[tuple[str, dict[str, bytes]]] = []
    with Workspace(None, data_dir=tmp_path) as workspace:
        branch = workspace.branch()
        for turn in range(1, 5):
            await branch.write_file(f"f{turn % 3}", f"{turn}")
            states.append((branch.end_turn(f"t_{turn}").id, shown_by(branch)))
        mark = branch.mark()
        await branch.write_file("more", "5")
        with monkeypatch.context() as patched:
            kill_at(point, patched)
            with pytest.raises(Killed):
                branch.end_turn("t_5")
        identity = branch.id
    with Workspace(None, data_dir=tmp_path) as workspace:
        branch = workspace.open(identity)
        assert [row.turn for row in branch.snapshots()] == [f"t_{turn}" for turn in range(1, 6)]
        with suppress(Stale):  # joined in full: only the manifest's own layers have marks
            branch.rollback(mark)
        for turn in range(6, 14):
            await branch.write_file(f"f{turn % 3}", f"{turn}")
            states.append((branch.end_turn(f"t_{turn}").id, shown_by(branch)))
        assert len({row.id for row in branch.snapshots()}) == len(branch.snapshots())
        for snapshot, state in states:
            assert shown_by(branch.fork(snapshot=snapshot)) == state


def kill_at(point: str, patched: pytest.MonkeyPatch) -> None:
    """Die at a write point of joining; `manifest` is before the manifest forgets the single layers."""

    def die(*_: object, **__: object) -> None:
        raise Killed

    if point == "exchange":
        patched.setattr("bowerbird.workspace.tree.handles.exchange", die)
    elif point == "keep":
        patched.setattr("bowerbird.workspace.history.layer_shelf.LayerShelf.keep", die)
    else:
        update = ManifestFile.update

        def until_fewer(self: ManifestFile, change: Any = None, **values: Any) -> Any:
            if len(values.get("layers", self.value.layers)) < len(self.value.layers):
                raise Killed
            return update(self, change, **values)

        patched.setattr(ManifestFile, "update", until_fewer)


def shown_by(branch: Branch) -> dict[str, bytes]:
    """Return the files of the drill that a branch shows."""
    found = {path: read_branch(branch, path) for path in ("f0", "f1", "f2", "more")}
    return {path: version[1] for path, version in found.items() if version is not None}
