"""The engine on real, tiny weights: loading, streaming, cancelling, sharing (MO-37, MO-40)."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path

import pytest
from support.patience import HANG_S, patience

from bowerbird.core.errors import ConfigError, ModelError
from bowerbird.models.local import opening
from bowerbird.models.local.engine import Engine, EngineOptions, Piece
from bowerbird.models.local.generation import Generation
from bowerbird.models.local.opening import open_local
from bowerbird.models.settings import LocalSettings

ENDLESS = "%llguidance {}\nstart: /[a-z]{30000}/\n"
ENDING = """
import asyncio, time
from pathlib import Path
from bowerbird.models.local.engine import Engine, EngineOptions
from bowerbird.models.local.generation import Generation

async def main():
    engine = Engine(Path({path!r}), EngineOptions(32_768, 1))
    pieces = engine.generate(Generation(({{"role": "user", "content": "x"}},), 30_000, {grammar!r}))
    await anext(pieces)
    tasks = Path("/proc/self/task").iterdir()
    print(*[pid for task in tasks for pid in (task / "children").read_text().split()], flush=True)
    {then}

asyncio.run(main())
"""
WORD = "%llguidance {}\nstart: /[a-z]{5}/\n"


def says(text: str, grammar: str = WORD, max_tokens: int = 50) -> Generation:
    return Generation(({"role": "user", "content": text},), max_tokens, grammar)


async def all_of(engine: Engine, generation: Generation) -> tuple[str, Piece]:
    text, last = "", Piece()
    async with aclosing(engine.generate(generation)) as pieces:
        async for piece in pieces:
            text, last = text + piece.text, piece
    return text, last


@pytest.fixture
async def engine(tiny_path: Path):
    made = Engine(tiny_path, EngineOptions(context=32_768, threads=1))
    await made.load()
    yield made
    await made.close()


async def test_the_grammar_decides_what_is_said(engine: Engine):
    text, last = await all_of(engine, says("hello"))
    assert text.isalpha() and len(text) == 5
    assert last.finish == "stop" and last.counts.generated >= 5


async def test_a_longer_prompt_evaluates_only_what_is_new(engine: Engine):
    """MO-40."""
    long = "word " * 400
    _, first = await all_of(engine, says(long))
    _, second = await all_of(engine, says(long + "more"))
    assert first.counts.evaluated > 2_000
    assert second.counts.evaluated < 60 and second.counts.reused > 1_900


async def test_what_follows_a_removed_part_is_reused(engine: Engine):
    """MO-40 although the agent replaces old results: the adapter leaves them out whole."""
    begin, old, rest = ({"role": "user", "content": f"{word} " * 300} for word in ("begin", "old", "rest"))
    await all_of(engine, Generation((begin, old, rest), 50, WORD))
    _, last = await all_of(engine, Generation((begin, rest), 50, WORD))
    assert last.counts.evaluated < 60 and last.counts.reused > 2_500


async def test_requests_are_answered_one_after_the_other(engine: Engine):
    answers = await asyncio.gather(*(all_of(engine, says(f"number {n}")) for n in range(5)))
    assert all(len(text) == 5 for text, _ in answers)


async def _cancel_after(engine: Engine, generation: Generation, pieces_first: int, wait_s: float) -> float:
    """Cancel a reader of `generation`; return how long that took."""
    begun = asyncio.Event()

    async def read() -> None:
        seen = 0
        async with aclosing(engine.generate(generation)) as pieces:
            if not pieces_first:
                begun.set()
            async for _ in pieces:
                seen += 1
                if seen >= pieces_first:
                    begun.set()

    reader = asyncio.create_task(read())
    await begun.wait()
    await asyncio.sleep(wait_s)
    at = time.perf_counter()
    reader.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reader
    return time.perf_counter() - at


async def test_cancelling_between_tokens_returns_at_once_and_frees_the_engine(engine: Engine):
    """MO-37: within 100 ms; an engine that went on would need half a minute for these tokens."""
    assert await _cancel_after(engine, says("x", ENDLESS, 30_000), 5, 0) < patience(2)
    at = time.perf_counter()
    await all_of(engine, says("next"))
    assert time.perf_counter() - at < patience(5)


async def test_cancelling_while_the_prompt_is_evaluated_frees_the_engine(engine: Engine):
    assert await _cancel_after(engine, says("word " * 5_000), 0, 0.1) < patience(0.5)
    at = time.perf_counter()
    await all_of(engine, says("next"))
    assert time.perf_counter() - at < patience(5)


async def test_a_request_cancelled_in_the_queue_is_never_run(engine: Engine):
    running = asyncio.create_task(all_of(engine, says("x", ENDLESS, 30_000)))
    await asyncio.sleep(0.05)
    assert await _cancel_after(engine, says("y", ENDLESS, 30_000), 0, 0) < 0.1
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert len((await all_of(engine, says("z")))[0]) == 5


async def test_a_prompt_over_the_window_is_a_context_overflow(tiny_path: Path):
    small = Engine(tiny_path, EngineOptions(context=512, threads=1))
    with pytest.raises(ModelError, match="too long") as failed:
        await all_of(small, says("word " * 1_000))
    assert failed.value.kind == "context_overflow"
    assert len((await all_of(small, says("short")))[0]) == 5
    await small.close()


def children() -> list[int]:
    """Return the processes of the engine that this one has started and not yet waited for."""
    tasks = Path("/proc/self/task").iterdir()
    started = [int(pid) for task in tasks for pid in (task / "children").read_text().split()]
    return [pid for pid in started if b"models.local.native" in Path(f"/proc/{pid}/cmdline").read_bytes()]


def listening_places() -> list[str]:
    """Return the paths of the Unix sockets, and the TCP ports, of the process that evaluates."""
    (pid,) = children()
    sockets = {str(fd.readlink()) for fd in Path(f"/proc/{pid}/fd").iterdir() if fd.is_symlink()}
    inodes = {name[8:-1] for name in sockets if name.startswith("socket:[")}
    rows = [line.split() for line in Path("/proc/self/net/unix").read_text().splitlines()]
    paths = [row[7] for row in rows if len(row) > 7 and row[6] in inodes]
    tcp = [line.split() for line in Path("/proc/self/net/tcp").read_text().splitlines()[1:]]
    return paths + [row[1] for row in tcp if row[9] in inodes]


async def test_nobody_can_connect_to_the_engine(engine: Engine):
    """Its socket is unlinked before the first request, and no port is open."""
    places = listening_places()
    assert any(place.endswith("/engine.sock") for place in places)
    assert not any(Path(place).exists() for place in places)


async def test_nobody_can_connect_once_a_beginning_was_kept(tiny_path: Path, tmp_path: Path):
    """The engine was asked through its socket (D-24), which is gone before the first answer."""
    engine = Engine(tiny_path, EngineOptions(context=8_192, threads=1, beginnings=tmp_path / "kept"))
    await all_of(engine, replace(says("hello"), beginnings=(({"role": "system", "content": "constant"},),)))
    assert list((tmp_path / "kept").iterdir())
    assert not any(Path(place).exists() for place in listening_places())
    await engine.close()


def test_the_engine_is_loaded_in_no_process_that_serves(tiny_path: Path):
    """While it loads it holds its interpreter: here nobody would be served, and leases would end (SE-29)."""
    loaded = "import sys; assert 'xllamacpp' not in sys.modules"
    code = ENDING.format(path=str(tiny_path), grammar=ENDLESS, then=loaded)
    subprocess.run([sys.executable, "-c", code], timeout=HANG_S, check=True)


async def test_a_process_that_dies_fails_its_request_and_the_next_one_gets_another(engine: Engine):
    """Where memory runs out, for one."""
    async with aclosing(engine.generate(says("x", ENDLESS, 30_000))) as pieces:
        await anext(pieces)
        (pid,) = children()
        os.kill(pid, signal.SIGKILL)
        with pytest.raises(ModelError, match="too little memory"):
            async for _ in pieces:
                pass
    assert len((await all_of(engine, says("next")))[0]) == 5
    assert pid not in children()


async def test_a_process_that_died_between_two_requests_is_not_missed(engine: Engine):
    (pid,) = children()
    os.kill(pid, signal.SIGKILL)
    await asyncio.to_thread(os.waitid, os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    assert len((await all_of(engine, says("next")))[0]) == 5


async def test_a_key_that_interrupts_the_program_leaves_the_weights_loaded(engine: Engine):
    """Ctrl+C goes to every process of the terminal; it stops a turn, not the model."""
    (pid,) = children()
    os.kill(pid, signal.SIGINT)
    await all_of(engine, says("hello"))
    assert children() == [pid]


async def test_closing_ends_an_answer_under_way(tiny_path: Path):
    engine = Engine(tiny_path, EngineOptions(32_768, 1))
    async with aclosing(engine.generate(says("x", ENDLESS, 30_000))) as pieces:
        await anext(pieces)
        await engine.close()
        with pytest.raises(ModelError, match="was closed"):
            async for _ in pieces:
                pass
    assert not children()


def test_nothing_is_left_of_a_process_that_was_killed(tiny_path: Path):
    started = subprocess.Popen(
        [sys.executable, "-c", ENDING.format(path=str(tiny_path), grammar=ENDLESS, then="time.sleep(600)")],
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert started.stdout is not None
    pid = int(started.stdout.readline())
    os.kill(started.pid, signal.SIGKILL)
    started.communicate()
    until = time.monotonic() + HANG_S
    while Path(f"/proc/{pid}").exists() and "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text():
        assert time.monotonic() < until, "it evaluates for nobody"
        time.sleep(0.02)


async def test_a_closed_engine_says_so(tiny_path: Path):
    closed = Engine(tiny_path)
    await closed.close()
    await closed.close()
    with pytest.raises(ModelError, match="was closed"):
        await closed.load()


async def test_weights_that_cannot_be_loaded_are_named(tmp_path: Path):
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"GGUF" + bytes(200))
    model = open_local(str(broken), LocalSettings())
    with pytest.raises(ModelError, match=r"broken\.gguf") as failed:
        await model.warm()
    assert failed.value.kind == "local"
    await model.aclose()


# ---------------------------------------------------------------- opening


async def test_models_of_one_file_share_one_engine(tiny_path: Path):
    settings = LocalSettings(threads=1, context_window=4_096)
    one, two = open_local(str(tiny_path), settings), open_local(str(tiny_path), settings)
    assert one._engine is two._engine  # what memory depends on has no public face
    await one.aclose()
    await one.aclose()
    await two._engine.load()
    await two.aclose()
    assert not opening._ENGINES


def test_the_default_is_found_in_the_data_directory_or_the_command_is_named(tmp_path: Path):
    with pytest.raises(ConfigError, match="bowerbird model fetch"):
        open_local("default", LocalSettings(data_dir=tmp_path))
    with pytest.raises(ConfigError, match="data directory"):
        open_local("default", LocalSettings())


@pytest.mark.parametrize("name", ["gpt-x", "/nowhere/model.gguf", "qwen.bin"])
def test_a_name_that_is_no_weights_file_is_refused(name: str):
    with pytest.raises(ConfigError):
        open_local(name, LocalSettings())


def test_a_file_that_is_no_gguf_is_refused(tmp_path: Path):
    path = tmp_path / "x.gguf"
    path.write_text("hello")
    with pytest.raises(ConfigError, match="not a GGUF"):
        open_local(str(path), LocalSettings())


def test_without_the_extra_the_install_command_is_given(tiny_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    with pytest.raises(ConfigError, match=r"pip install 'bowerbird\[local\]'"):
        open_local(str(tiny_path), LocalSettings())


def test_importing_the_package_loads_neither_engine_nor_http():
    code = (
        "import sys, bowerbird.models.local as m; m.open_local; "
        "print([n for n in ('xllamacpp', 'httpx') if n in sys.modules])"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "[]"


def test_a_process_that_ends_in_the_middle_of_an_answer_ends_cleanly(tiny_path: Path):
    code = ENDING.format(path=str(tiny_path), grammar=ENDLESS, then="pass")
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=HANG_S, check=False
    )
    assert (ended.returncode, ended.stderr) == (0, "")
