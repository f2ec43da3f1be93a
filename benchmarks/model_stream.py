"""CPU per streamed token of the adapters, beside a raw read of the same stream in the same run.

Here: the measurement and its printed table. Not here: the server (tests/support/fake_models.py, in a
process of its own, so that only the client's CPU is counted).

    python benchmarks/model_stream.py [--deltas 20000] [--rounds 5] [--limit 25] [--json]

`raw` reads the bytes of the answer through the same HTTP library and does nothing with them; `adapter`
is everything the adapter does, reading included; the agent gets its events from there. Exit code 1
when an adapter needs more than `--limit` microseconds per token.
"""

import argparse
import asyncio
import json
import statistics
import subprocess
import sys
import time
from contextlib import aclosing
from pathlib import Path
from typing import NamedTuple

import aiohttp

from bowerbird.core.messages import user_text
from bowerbird.core.requests import End, ModelRequest, TextDelta
from bowerbird.models import Model, ModelSettings, ProviderSettings, open_model

ROOT = Path(__file__).resolve().parent.parent
PATHS = {"anthropic": "/v1/messages", "openai": "/v1/chat/completions"}


class Row(NamedTuple):
    """Medians over the rounds, in microseconds of CPU per delta."""

    wire: str
    deltas: int
    raw_us: float
    adapter_us: float


def prompt(deltas: int) -> str:
    """Return a user text that makes the server stream `deltas` deltas."""
    return "[[fake " + json.dumps({"steps": [{"deltas": deltas}]}) + "]]"


async def raw_read(url: str, body: dict[str, object]) -> float:
    """Return the CPU seconds of reading the answer's bytes."""
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=None)) as client:
        began = time.process_time()
        async with client.post(url, json=body) as response:
            async for _ in response.content.iter_any():
                pass
        return time.process_time() - began


async def adapter_read(model: Model, text: str, deltas: int) -> float:
    """Return the CPU seconds of streaming the answer through the adapter."""
    request = ModelRequest((user_text(text),), max_tokens=1_000_000)
    seen = 0
    ended = False
    began = time.process_time()
    async with aclosing(model.stream(request)) as events:
        async for event in events:
            seen += event.text.count(" ") if isinstance(event, TextDelta) else 0  # a word each, some joined
            ended = ended or isinstance(event, End)
    used = time.process_time() - began
    if seen != deltas or not ended:
        raise RuntimeError(f"saw {seen} deltas of {deltas}, end: {ended}")
    return used


async def measure(wire: str, port: int, deltas: int, rounds: int) -> Row:
    """Measure one wire; raw and adapter alternate, so that both meet the same machine."""
    base = f"http://127.0.0.1:{port}"
    url = base if wire == "anthropic" else f"{base}/v1"
    settings = ModelSettings(providers={wire: ProviderSettings("sk-bench-000000000000", url)})
    model = open_model(f"{wire}:bench", settings)
    text = prompt(deltas)
    body = {"model": "bench", "stream": True, "messages": [{"role": "user", "content": text}]}
    raw: list[float] = []
    adapter: list[float] = []
    try:
        await adapter_read(model, prompt(100), 100)  # imports and connections are not the stream
        for _ in range(rounds):
            raw.append(await raw_read(base + PATHS[wire], body))
            adapter.append(await adapter_read(model, text, deltas))
    finally:
        await model.aclose()
    per_delta = 1e6 / deltas
    return Row(wire, deltas, statistics.median(raw) * per_delta, statistics.median(adapter) * per_delta)


async def measure_all(port: int, deltas: int, rounds: int) -> list[Row]:
    """Measure both wires."""
    return [await measure(wire, port, deltas, rounds) for wire in PATHS]


def main() -> int:
    """Print the table; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--deltas", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--limit", type=float, default=25.0, help="microseconds of CPU per token")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    command = [sys.executable, str(ROOT / "tests/support/fake_models.py")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            line = server.stdout.readline() if server.stdout else ""
            rows = asyncio.run(measure_all(int(line.rsplit(maxsplit=1)[-1]), options.deltas, options.rounds))
        finally:
            server.kill()
    if options.json:
        print(json.dumps([row._asdict() for row in rows]))
    else:
        print(f"CPU per streamed token, {options.deltas:,} deltas, median of {options.rounds} rounds")
        print(f"  (limit for an adapter, reading included: {options.limit:g} µs)")
        for row in rows:
            print(f"  {row.wire:<10} adapter {row.adapter_us:6.2f} µs   raw read {row.raw_us:6.2f} µs")
    return int(any(row.adapter_us > options.limit for row in rows))


if __name__ == "__main__":
    raise SystemExit(main())
