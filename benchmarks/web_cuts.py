"""A page behind a proxy that cuts its connections at random, for hundreds of turns (issue 14, UI-21, UI-86).

Here: the proxy, the turns, the comparison. Not here: the fold's own property test (web/tests/conversation.test.ts),
the page, the server, the model (tests/support/fake_models.py).

    python benchmarks/web_cuts.py [--turns 500] [--first 1] [--pages 6] [--every 0.4] [--seed 1] [--json]

Debian's Chromium has several chats open through the proxy, each in a page of its own, while turn after turn thinks,
writes, calls a tool and writes again; all connections are cut after random times with a mean of `--every` seconds.
After each turn its page must show what the model said: the same texts, each once, whole, in order. Exit code 1 for
a turn that is shown otherwise. `--first 201` goes on where another run was ended. What the drill itself asks of the
server goes around the proxy, and again with the same key where a connection breaks.
"""

import argparse
import asyncio
import contextlib
import json
import random
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

import httpx  # noqa: E402 - after the path to tests/support
from playwright.async_api import BrowserContext, Page, async_playwright, expect  # noqa: E402
from support.fake_models import FakeModels  # noqa: E402
from support.live_server import LiveServer, live_server  # noqa: E402

# What the page shows of its newest turn: everything behind the last message of the person.
SHOWN = """() => {
  const rows = [...document.querySelectorAll(".turn-row")];
  const last = rows.findLastIndex((row) => row.querySelector(".bubble"));
  return rows.slice(last + 1).flatMap((row) => [...row.querySelectorAll(".prose")]).map((part) => part.textContent.trim());
}"""


ASKED = 5  # times, before a connection that breaks is the drill's own failure


class Proxy:
    """Hands bytes on between a page and a server, until it cuts them off."""

    def __init__(self, port: int) -> None:
        self.cuts = 0
        self.waited = 0
        self._calm = 0
        self._port = port
        self._open: set[asyncio.StreamWriter] = set()

    async def start(self) -> int:
        server = await asyncio.start_server(self._lead, "127.0.0.1", 0)
        return int(server.sockets[0].getsockname()[1])

    async def _lead(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._port)
        self._open |= {writer, far_writer}
        await asyncio.gather(self._pump(reader, far_writer), self._pump(far_reader, writer))
        self._open -= {writer, far_writer}

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):  # one side was cut off, which is what this is for
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
        writer.close()

    @contextlib.contextmanager
    def calm(self) -> Iterator[None]:
        """Cut nothing for now."""
        self._calm += 1
        self.waited += 1
        yield
        self._calm -= 1

    async def cut(self, every: float, chance: random.Random) -> None:
        """Cut everything that is open, again and again."""
        while True:
            await asyncio.sleep(chance.expovariate(1 / every))
            if self._calm:
                continue
            self.cuts += bool(self._open)
            for writer in list(self._open):
                writer.transport.abort()


def texts(turn: int) -> list[str]:
    """The texts that a page must show of a turn."""
    first = f"Turn {turn} begins: " + " ".join(f"word{at}" for at in range(40))
    return [first, " ".join(f"more{at}" for at in range(40)) + f" end of turn {turn}."]


def answer(body: dict[str, Any], _number: int) -> dict[str, Any]:
    """What the model says: before the tool's result, or after it."""
    said = json.dumps(body["messages"])
    turn = int(re.findall(r"Turn (\d+) please", said)[-1])
    usage = {"input": 50, "output": 20}
    first, last = texts(turn)
    if "tool_result" in json.dumps(body["messages"][-1]):
        return {"text": last, "deltas": 40, "gap_s": 0.008, "usage": usage}
    read = {"name": "ls", "input": {"path": "/"}}
    return {"thinking": f"Thought {turn}.", "text": first, "deltas": 40, "gap_s": 0.008, "tools": [read], "usage": usage}  # fmt: skip


async def shown_to_its_end(page: Page, turn: int) -> None:
    """Wait until it is; raises AssertionError."""
    await expect(page.get_by_role("log").get_by_text(f"end of turn {turn}.")).to_be_visible()
    await expect(page.locator("[data-state=idle]")).to_be_visible()


async def said(server: LiveServer, conversation: str, turn: int) -> None:
    """Say a turn's message and wait for the turn's end; said once, however often it is asked."""
    for left in reversed(range(ASKED)):
        try:
            done = await server.http.post(
                f"/api/conversations/{conversation}/messages",
                params={"wait": 60},
                headers={"Idempotency-Key": f"{conversation}-{turn}"},
                json={"content": f"Turn {turn} please"},
                timeout=90,
            )
        except httpx.TransportError as error:
            print(f"turn {turn} is asked again: {error!r}", file=sys.stderr, flush=True)
            if not left:
                raise
        else:
            done.raise_for_status()
            return


async def one_turn(server: LiveServer, proxy: Proxy, page: Page, conversation: str, turn: int) -> str:
    """Run a turn while connections are cut; how the page differs from it, or nothing."""
    await said(server, conversation, turn)
    try:
        await shown_to_its_end(page, turn)
    except AssertionError:
        # On a machine too busy to connect between two cuts nothing can be shown: what counts is what is shown then.
        with proxy.calm():
            try:
                await shown_to_its_end(page, turn)
            except AssertionError:
                return f"turn {turn}: not shown to its end: {await page.evaluate(SHOWN)}"
    shown = [text for text in await page.evaluate(SHOWN) if not text.startswith("Thought")]
    return "" if shown == texts(turn) else f"turn {turn}: {shown}"


async def opened(server: LiveServer, context: BrowserContext) -> tuple[Page, str]:
    """A page with a chat of its own, before anything is cut."""
    page = await context.new_page()
    conversation = await server.conversation()
    await page.goto(f"/dev/c/{conversation}")
    await expect(page.locator("[data-ready=true]")).to_be_visible()
    return page, conversation


async def take_turns(
    server: LiveServer, proxy: Proxy, page: Page, conversation: str, turns: list[int], found: list[str]
) -> None:
    """Take turns from the list until it is empty."""
    while turns:
        differs = await one_turn(server, proxy, page, conversation, turns.pop())
        if differs:
            found.append(differs)
            print(differs, file=sys.stderr, flush=True)
        if len(turns) % 10 == 0:
            print(
                f"{len(turns)} turns to begin, {proxy.cuts} cuts, {len(found)} shown otherwise",
                file=sys.stderr,
                flush=True,
            )


async def run(asked: argparse.Namespace) -> dict[str, Any]:
    chance = random.Random(asked.seed)
    found: list[str] = []
    expect.set_options(timeout=30_000)
    with tempfile.TemporaryDirectory() as place, FakeModels() as fake:
        (Path(place) / "workspace").mkdir()
        fake.answer(answer)
        async with live_server(Path(place), fake) as server, async_playwright() as playwright:
            proxy = Proxy(int(server.address.rsplit(":", 1)[1]))
            port = await proxy.start()
            chromium = shutil.which("chromium") or shutil.which("chromium-browser")
            browser = await playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
            context = await browser.new_context(base_url=f"http://127.0.0.1:{port}", reduced_motion="reduce")
            chats = [await opened(server, context) for _ in range(asked.pages)]
            turns = list(range(asked.first + asked.turns - 1, asked.first - 1, -1))
            began = perf_counter()
            cutting = asyncio.create_task(proxy.cut(asked.every, chance))
            await asyncio.gather(*(take_turns(server, proxy, *chat, turns, found) for chat in chats))
            cutting.cancel()
            await browser.close()
    return {
        "turns": asked.turns,
        "cuts": proxy.cuts,
        "calm": proxy.waited,
        "seconds": round(perf_counter() - began),
        "differ": found,
    }


def main() -> int:
    """Run, print, return the exit code."""
    parser = argparse.ArgumentParser(description="A page whose connections are cut at random.")
    parser.add_argument("--turns", type=int, default=500)
    parser.add_argument("--first", type=int, default=1, metavar="TURN")
    parser.add_argument("--pages", type=int, default=6)
    parser.add_argument("--every", type=float, default=0.4)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    found = asyncio.run(run(asked))
    if asked.json:
        print(json.dumps(found))
    else:
        print(
            f"{found['turns']} turns, {found['cuts']} cuts (paused {found['calm']} times) in {found['seconds']} s: {len(found['differ'])} shown otherwise"
        )
    return 1 if found["differ"] else 0


if __name__ == "__main__":
    sys.exit(main())
