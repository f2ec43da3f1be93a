"""Evaluated beginnings outlive the process that evaluated them, and nothing broken is ever read (D-24)."""

import stat
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from pathlib import Path

import pytest

from bowerbird.core.messages import user_text
from bowerbird.core.requests import End, ModelRequest, ToolSpec
from bowerbird.models.local import LocalModel, open_local
from bowerbird.models.local.beginnings import MOST_FILES
from bowerbird.models.local.engine import Engine, EngineOptions
from bowerbird.models.local.generation import Counts, Generation
from bowerbird.models.settings import LocalSettings

WORD = "%llguidance {}\nstart: /[a-z]{5}/\n"
LONG = "always the same " * 150


@asynccontextmanager
async def loaded(weights: Path, kept: Path) -> AsyncIterator[Engine]:
    """A fresh engine, as a new process has one."""
    engine = Engine(weights, EngineOptions(context=16_384, threads=1, beginnings=kept))
    try:
        yield engine
    finally:
        await engine.close()


async def first_request(weights: Path, kept: Path, beginning: str = LONG) -> Counts:
    """Return what the first request of a fresh engine evaluated and reused."""
    async with loaded(weights, kept) as engine:
        messages = ({"role": "system", "content": beginning + "and this is new"},)
        wanted = Generation(messages, 20, WORD, beginnings=(({"role": "system", "content": beginning},),))
        counts = Counts()
        async with aclosing(engine.generate(wanted)) as pieces:
            async for piece in pieces:
                counts = piece.counts
        return counts


def states(kept: Path) -> list[Path]:
    return sorted(kept.iterdir())


async def test_a_new_process_reads_what_an_earlier_one_evaluated(tiny_path: Path, tmp_path: Path):
    await first_request(tiny_path, tmp_path / "kept")
    (state,) = states(tmp_path / "kept")
    written = state.stat().st_ino
    again = await first_request(tiny_path, tmp_path / "kept")
    assert again.reused > 2_000 and again.evaluated < 100
    (state,) = states(tmp_path / "kept")
    assert state.stat().st_ino == written, "it was evaluated and written a second time"


async def test_what_is_kept_belongs_to_its_owner_alone(tiny_path: Path, tmp_path: Path):
    await first_request(tiny_path, tmp_path / "kept")
    modes = [stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "kept", *states(tmp_path / "kept"))]
    assert modes == [0o700, 0o600]


def cut(state: Path) -> None:
    state.write_bytes(state.read_bytes()[:-100])


def changed(state: Path) -> None:
    body = bytearray(state.read_bytes())
    body[len(body) // 2] ^= 255
    state.write_bytes(body)


def emptied(state: Path) -> None:
    state.write_bytes(b"")


@pytest.mark.parametrize("spoil", [cut, changed, emptied])
async def test_a_broken_file_is_replaced(tiny_path: Path, tmp_path: Path, spoil: Callable[[Path], None]):
    await first_request(tiny_path, tmp_path / "kept")
    (state,) = states(tmp_path / "kept")
    good = state.read_bytes()
    spoil(state)
    assert (await first_request(tiny_path, tmp_path / "kept")).reused > 2_000
    (state,) = states(tmp_path / "kept")
    assert len(state.read_bytes()) == len(good)
    assert (await first_request(tiny_path, tmp_path / "kept")).reused > 2_000


async def test_another_beginning_gets_a_file_of_its_own_and_the_oldest_goes(tiny_path: Path, tmp_path: Path):
    for number in range(MOST_FILES + 2):
        await first_request(tiny_path, tmp_path / "kept", f"{number} short ")
    assert len(states(tmp_path / "kept")) == MOST_FILES


async def test_where_nothing_can_be_kept_the_answer_comes_all_the_same(tiny_path: Path, tmp_path: Path):
    (tmp_path / "file").write_text("no directory")
    assert (await first_request(tiny_path, tmp_path / "file" / "kept")).evaluated > 2_000


async def test_a_step_of_the_adapter_begins_with_what_was_kept(tiny_path: Path, tmp_path: Path):
    """Another task, another project: the tools must be the same; in the same project its files are kept, too."""

    async def evaluated(task: str, files: str) -> int:
        model: LocalModel = open_local(str(tiny_path), LocalSettings(tmp_path, 32_768, threads=1))
        tools = tuple(ToolSpec(name, "", {}) for name in ("read_file", "list_files"))
        request = ModelRequest((user_text(task),), system=(f"Files:\n{files}",), tools=tools)
        try:
            async with aclosing(model.stream(request)) as events:
                return sum([event.usage.input_tokens async for event in events if isinstance(event, End)])
        finally:
            await model.aclose()

    await evaluated("Where is the port set?", "a.py")
    kept = tmp_path / "models" / "beginnings"
    assert len(states(kept)) == 2
    files = "\n".join(f"b{n}.js" for n in range(40))
    other = await evaluated("How many lines has b3.js?", files)
    assert other < 2_000 and len(states(kept)) == 3
    assert await evaluated("How many lines has b4.js?", files) <= other and len(states(kept)) == 3
