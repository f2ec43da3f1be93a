"""What subagents cost: eight beside one, their start in large workspaces, merging 1,000 files (issue 5).

    python benchmarks/subagents.py [--runs 5] [--files 100 10000 100000]

The model is a scripted HTTP server in another process that answers after a fixed time, so what is above one
subagent's time is ours. Forks are measured as part of the start: `workspace_branches.py` has them alone.
"""

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from workspace_branches import make_tree

from bowerbird import Agent
from bowerbird.models import Model, ModelSettings, ProviderSettings, open_model

PARALLEL_BAR = 1.5
START_BAR_S = 1.0
MERGE_BAR_MS = 150.0
MANY = 1_000
LATENCY_S = 0.4
FAKE = Path(__file__).parent.parent / "tests" / "support" / "fake_models.py"


def task(name: str, rounds: int, latency_s: float) -> str:
    """A task that writes a file per round; the server reads its script from the text."""
    steps = [
        {
            "tools": [{"name": "write_file", "input": {"path": f"{name}-{n}.txt", "content": name}}],
            "ttft_s": latency_s,
        }
        for n in range(rounds)
    ]
    return f"Write. [[fake {json.dumps({'steps': [*steps, {'text': 'done', 'ttft_s': latency_s}]})}]]"


async def spawned(
    model: Model, root: Path, count: int, rounds: int = 3, latency_s: float = LATENCY_S
) -> float:
    """Seconds of one spawn of `count` subagents, forks and diffs included."""
    with Agent(workdir=root, data_dir=":memory:", language_model=model, max_subagent_depth=1) as agent:
        _ = agent.branch
        begun = time.perf_counter()
        made = (
            await agent.spawn_subagents([task(f"s{n}", rounds, latency_s) for n in range(count)])
        ).record()
        seconds = time.perf_counter() - begun
    failed = [entry["error"] for entry in made["subagents"] if "error" in entry]
    assert not failed, failed
    return seconds


async def in_parallel(model: Model, root: Path, runs: int) -> bool:
    """Eight subagents beside one, alternating."""
    ones: list[float] = []
    eights: list[float] = []
    await spawned(model, root, 1)  # imports, connections
    for _ in range(runs):
        ones.append(await spawned(model, root, 1))
        eights.append(await spawned(model, root, 8))
    one, eight = statistics.median(ones), statistics.median(eights)
    held = eight <= PARALLEL_BAR * one
    print(f"  one {one:.2f} s, eight {eight:.2f} s: {eight / one:.2f} × (bar {PARALLEL_BAR}) {word(held)}")
    return held


async def started(model: Model, root: Path, files: int, runs: int) -> bool:
    """Eight subagents that answer at once: what forking, starting and ending them takes."""
    found = [await spawned(model, root, 8, rounds=0, latency_s=0.0) for _ in range(runs)]
    seconds = statistics.median(found)
    held = seconds <= START_BAR_S
    print(f"  {files:>7,} files: eight started and ended in {seconds:.2f} s (bar {START_BAR_S}) {word(held)}")
    return held


async def merged(model: Model, root: Path, runs: int) -> bool:
    """Merging a subagent that changed 1,000 files."""
    found: list[float] = []
    for _ in range(runs):
        with Agent(workdir=root, data_dir=":memory:", language_model=model, max_subagent_depth=1) as agent:
            await agent.spawn_subagents([task("few", 1, 0.0)])
            fork = agent.subagents["subagent_0"]
            for number in range(MANY):
                await fork.write_file(f"many/{number // 100}/{number}.txt", f"{number}\n" * 20)
            begun = time.perf_counter()
            record = (await agent.merge_subagent("subagent_0")).record()
            found.append((time.perf_counter() - begun) * 1000)
            assert len(record["written"]) == MANY + 1
    held = statistics.median(found) <= MERGE_BAR_MS
    print(
        f"  merge of {MANY:,} files: {statistics.median(found):.0f} ms (bar {MERGE_BAR_MS:.0f}) {word(held)}"
    )
    return held


def word(held: bool) -> str:
    """How a bar is reported."""
    return "ok" if held else "MISSED"


async def measure(url: str, runs: int, sizes: Sequence[int]) -> bool:
    """Measure everything; whether all bars held."""
    settings = ModelSettings(providers={"anthropic": ProviderSettings(api_key="k", base_url=url)})
    model = open_model("anthropic:claude-sonnet-5", settings)
    held = True
    try:
        for files in sizes:
            with tempfile.TemporaryDirectory() as place:
                root = Path(place) / "tree"
                make_tree(root, files)
                if files == sizes[0]:
                    held &= await in_parallel(model, root, runs)
                    held &= await merged(model, root, runs)
                held &= await started(model, root, files, runs)
    finally:
        await model.aclose()
    return held


def main() -> int:
    """Run the benchmark; exit code 1 when a bar was missed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--files", type=int, nargs="+", default=[100, 10_000, 100_000])
    chosen = parser.parse_args()
    server = subprocess.Popen([sys.executable, str(FAKE), "--port", "0"], stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        port = server.stdout.readline().rstrip().rpartition(":")[2].split("/")[0].split()[-1]
        with tempfile.TemporaryDirectory() as home:
            os.environ["HOME"] = home  # the figures are of the defaults, not of somebody's settings
            os.chdir(home)
            return 0 if asyncio.run(measure(f"http://127.0.0.1:{port}", chosen.runs, chosen.files)) else 1
    finally:
        server.terminate()
        server.wait()


if __name__ == "__main__":
    sys.exit(main())
