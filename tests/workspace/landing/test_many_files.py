"""Landings of very many files: what costs more than each of them must (reliability, D-3)."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.cpu_time import cpu
from support.places import memory_place

from bowerbird.workspace import Workspace
from bowerbird.workspace.landing.flushing import Flushing
from bowerbird.workspace.landing.plan import choose
from bowerbird.workspace.tree.changes import Change, Tops, covers
from bowerbird.workspace.tree.content import Content
from bowerbird.workspace.tree.threeway import Side

FEW, MANY = 500, 4000
PATHS = st.lists(
    st.lists(st.sampled_from("ab"), max_size=4).map(lambda parts: "/" + "/".join(parts)), max_size=6
)


@given(PATHS, PATHS)
def test_given_paths_cover_what_each_of_them_covers(tops: list[str], others: list[str]) -> None:
    """WS-49."""
    asked = Tops(tops)
    for other in others:
        assert asked.over(other) == sorted({top for top in tops if covers(top, other)})
        assert asked.inside(other) == any(covers(other, top) for top in tops)


def test_naming_every_path_costs_each_its_own_depth() -> None:
    """WS-49: a page names each ticked file; 30,000 of them took hours."""

    def named(count: int) -> Callable[[], object]:
        side = Side("file", 0o644, Content(b"x\n"))
        changes = [Change(f"/d{n % 50}/f{n}", None, side) for n in range(count)]
        paths = [change.path for change in changes]
        return lambda: choose(changes, paths, None)

    assert cpu(named(MANY)) < 25 * cpu(named(FEW))  # eight times as many; the square would be 64


async def test_many_files_get_to_the_disk_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """D-1: the file system is told once, not for each file, and before anything changes its place."""
    calls: list[str] = []
    real, renamed = os.fsync, os.rename
    together = "bowerbird.workspace.landing.flushing.sync_file_system"
    monkeypatch.setattr(os, "fsync", lambda fd: (calls.append("each"), real(fd))[1])
    monkeypatch.setattr(together, lambda _: calls.append("together"))

    def rename(*paths: bytes, **handles: int) -> None:
        calls.append("moved" if handles else "record")
        renamed(*paths, **handles)

    monkeypatch.setattr(os, "rename", rename)
    with memory_place() as place:
        root = Path(place) / "ws"
        root.mkdir()
        for number in range(200):
            (root / f"f{number}").write_text("old")
        with Workspace(root, data_dir=place / "data") as workspace:
            branch = workspace.branch()
            for number in range(200):
                await branch.delete(f"f{number}")
                await branch.write_file(f"new{number}", f"{number}")
            branch.end_turn()
            calls.clear()
            branch.land()
        assert sorted(path.name for path in root.iterdir()) == sorted(f"new{n}" for n in range(200))
    assert calls.count("each") < 100
    assert "together" in calls[: calls.index("moved")]


def test_a_file_that_could_not_be_written_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """D-1: the one call for all of them fails where one of them did."""

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("bowerbird.workspace.landing.flushing.sync_file_system", full)
    monkeypatch.setattr("bowerbird.workspace.landing.flushing._is_whole", lambda _: True)
    with Flushing() as flushing:
        for number in range(40):
            with (tmp_path / f"{number}").open("wb") as file:
                flushing.written(file.fileno())
        with pytest.raises(OSError, match="No space"):
            flushing.finish()
