"""What the loop adds to a model's stream: one turn of 200 tokens beside the bare stream of the same answer.

Prints medians of wall and CPU time over alternating runs against a scripted HTTP server in another
process, and whether the difference keeps to 3 ms.

    python benchmarks/agent_turn.py [--runs 60] [--tokens 200]
"""

import argparse
import asyncio
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from pathlib import Path

from bowerbird.agent.turn import TurnRun
from bowerbird.agent.turn_loop.loop import run_turn
from bowerbird.core.events import TextLive
from bowerbird.core.messages import user_text
from bowerbird.core.requests import ModelRequest, TextDelta
from bowerbird.models import Model, ModelSettings, ProviderSettings, open_model
from bowerbird.tools import Toolset
from bowerbird.tools.files.file_tools import file_tools
from bowerbird.tools.plan import plan_tools
from bowerbird.tools.think import think_tools

BAR_MS = 3.0
TOOLS = Toolset([*file_tools(), *think_tools(), *plan_tools()])
FAKE = Path(__file__).parent.parent / "tests" / "support" / "fake_models.py"


async def bare(model: Model, question: str) -> int:
    """Read the model's stream and nothing else."""
    seen = 0
    async with aclosing(model.stream(ModelRequest((user_text(question),)))) as events:
        async for event in events:
            seen += event.text.count(" ") if isinstance(event, TextDelta) else 0
    return seen


async def turn(model: Model, question: str) -> int:
    """Run the same request as a turn of the loop."""
    seen = 0
    run = TurnRun(model=model, tools=TOOLS, new=(user_text(question),))
    async with aclosing(run_turn(run)) as events:
        async for event in events:
            seen += event.content.count(" ") if isinstance(event, TextLive) else 0
    return seen


async def measured(work: Callable[[], Awaitable[int]], tokens: int) -> tuple[float, float]:
    """Return wall and CPU milliseconds of `work`, which must see `tokens` tokens, each a word."""
    wall, cpu = time.perf_counter(), time.process_time()
    seen = await work()
    spent = (time.perf_counter() - wall) * 1000, (time.process_time() - cpu) * 1000
    assert seen == tokens, f"{seen} tokens instead of {tokens}"
    return spent


async def compare(url: str, runs: int, tokens: int) -> bool:
    """Print the table; return whether the bar is kept."""
    settings = ModelSettings(providers={"anthropic": ProviderSettings(api_key="none", base_url=url)})
    model = open_model("anthropic:claude-sonnet-5", settings)
    question = f'hello [[fake {{"steps":[{{"deltas":{tokens}}}]}}]]'
    plain: list[tuple[float, float]] = []
    looped: list[tuple[float, float]] = []
    try:
        for n in range(runs + 3):
            one = await measured(lambda: bare(model, question), tokens)
            other = await measured(lambda: turn(model, question), tokens)
            if n >= 3:  # the first ones pay for imports and connections
                plain.append(one)
                looped.append(other)
    finally:
        await model.aclose()
    print(f"{tokens} tokens, median of {runs} alternating runs [ms]      wall      CPU")
    medians: list[tuple[float, float]] = []
    for name, rows in (("model stream alone (reference)", plain), ("agent turn", looped)):
        wall, cpu = (statistics.median(column) for column in zip(*rows, strict=True))
        medians.append((wall, cpu))
        print(f"{name:<52}{wall:8.2f} {cpu:8.2f}")
    over = medians[1][0] - medians[0][0], medians[1][1] - medians[0][1]
    good = over[0] <= BAR_MS
    name = "over the stream (bar: 3 ms wall)"
    print(f"{name:<52}{over[0]:8.2f} {over[1]:8.2f}  {'ok' if good else 'TOO SLOW'}")
    return good


def main() -> int:
    """Start the scripted server, compare, stop it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=60)
    parser.add_argument("--tokens", type=int, default=200)
    options = parser.parse_args()
    server = subprocess.Popen(
        [sys.executable, str(FAKE), "--port", "0"], stdout=subprocess.PIPE, text=True, cwd=FAKE.parent.parent
    )
    try:
        assert server.stdout is not None
        found = re.search(r"listening on (\d+)", server.stdout.readline())
        assert found is not None, "the server did not say where it listens"
        url = f"http://127.0.0.1:{found[1]}"
        return 0 if asyncio.run(compare(url, options.runs, options.tokens)) else 1
    finally:
        server.terminate()
        server.wait(10)


if __name__ == "__main__":
    raise SystemExit(main())
