"""How smoothly a long answer is drawn while it streams, on a slow device (UI-92).

Here: the measurement and its printed tables. Not here: the pages (`web/`), the server, the model
(tests/support/fake_models.py).

    python benchmarks/web_stream.py [--kilobytes 250] [--tokens 200] [--seconds 40] [--slower 6] [--only WHAT] [--json]

A model says Markdown; the user's face draws it in Debian's Chromium, whose processor is made slower by a factor.
Two ways:

- `tokens`: so many tokens of a real size (4.5 characters) a second, for some seconds each, where the text has a
  fifth, two fifths … of its kilobytes already, all at once: 250 kB of tokens would take over four minutes.
- `pieces`: the whole text in so many seconds, so many pieces in each: several times what a model says.

Frames are counted from one `requestAnimationFrame` to the next. The row `nothing` is the same page at rest in the
same run: what this machine gives a page that does nothing. `script`, `style` and `layout` are milliseconds of each
second, `frames` of the socket are those that came in each. Exit code 1 when the p95 of frames is over 50 ms and over
twice that of the page at rest.
"""

import argparse
import asyncio
import json
import os
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))
sys.path.insert(0, str(ROOT / "benchmarks"))

from playwright.async_api import Browser, CDPSession, Page, async_playwright, expect  # noqa: E402 - after the path
from support.fake_models import FakeModels  # noqa: E402
from support.live_server import LiveServer, live_server  # noqa: E402
from web_scroll import Row, frame_row, table  # noqa: E402

LATEST_FRAME_MS = 50.0
TOKEN = 4.5  # characters of a token of English Markdown and code
PARTS = 5
SETTLE_S = 3.0
STRETCH_S = 15.0
COUNT = """() => {
  window.received_ = 0;
  const Plain = window.WebSocket;
  window.WebSocket = class extends Plain {
    constructor(...given) {
      super(...given);
      this.addEventListener("message", () => { window.received_ += 1; });
    }
  };
}"""
WATCH = """() => {
  window.frames_ = [];
  window.long_ = 0;
  new PerformanceObserver((list) => { window.long_ += list.getEntries().length; }).observe({ entryTypes: ["longtask"] });
  let last = performance.now();
  const step = (now) => { window.frames_.push(now - last); last = now; requestAnimationFrame(step); };
  requestAnimationFrame(step);
}"""
TAKE = """() => {
  const taken = { frames: window.frames_, long: window.long_, received: window.received_ };
  window.frames_ = []; window.long_ = 0; window.received_ = 0;
  return taken;
}"""
PART = """## Part {n}

A paragraph with **strong words**, `code` and a [link](https://example.org/{n}); it goes on for a while, as
paragraphs of answers do, and says nothing that matters to whoever measures how soon it is drawn.

- one thing to do, number {n}
- another one, with `more_code({n})`

```python
def function_{n}(value):
    return "plain", value + {n}
```

| name | value |
| --- | --- |
| part | {n} |

"""


def markdown(characters: int) -> str:
    """An answer of so many characters, as models write them."""
    parts: list[str] = []
    total = 0
    while total < characters:
        parts.append(PART.format(n=len(parts)))
        total += len(parts[-1])
    return "".join(parts)[:characters]


async def counters(cdp: CDPSession) -> dict[str, float]:
    found = await cdp.send("Performance.getMetrics")
    return {one["name"]: one["value"] for one in found["metrics"]}


async def span(page: Page, cdp: CDPSession, what: str, seconds: float) -> Row:
    """Frames and work of the coming seconds."""
    before = await counters(cdp)
    await page.evaluate(TAKE)
    await asyncio.sleep(seconds)  # measured is what happens in this time
    taken: dict[str, Any] = await page.evaluate(TAKE)
    after = await counters(cdp)
    row = frame_row(what, {**taken, "frames": taken["frames"][1:] or [seconds * 1000]})
    passed = after["Timestamp"] - before["Timestamp"]
    for name, counter in (("script", "ScriptDuration"), ("style", "RecalcStyleDuration"), ("layout", "LayoutDuration")):  # fmt: skip
        row[name] = round((after[counter] - before[counter]) * 1000 / passed)
    row["nodes"] = round(after["Nodes"])
    row["heap MB"] = round(after["JSHeapUsedSize"] / 1e6, 1)
    row["received"] = round(taken["received"] / passed)
    return row


@asynccontextmanager
async def watched(
    browser: Browser, server: LiveServer, slower: float
) -> AsyncIterator[tuple[Page, CDPSession]]:
    """A new chat in a browser of its own, slow, its frames counted."""
    context = await browser.new_context(base_url=server.address, viewport={"width": 1280, "height": 860})
    page = await context.new_page()
    await page.add_init_script(f"({COUNT})()")
    await page.goto(f"/c/{await server.conversation()}")
    await expect(page.locator("[data-ready=true]")).to_be_visible()
    cdp = await context.new_cdp_session(page)
    await cdp.send("Performance.enable")
    await cdp.send("Emulation.setCPUThrottlingRate", {"rate": slower})
    await page.evaluate(WATCH)
    yield page, cdp
    await context.close()


async def ask(page: Page) -> None:
    await page.get_by_label("Your message").fill("Write much.")
    await page.get_by_label("Your message").press("Enter")
    await expect(page.locator(".prose h2").first).to_be_visible(timeout=60_000)


async def pieces(
    browser: Browser, server: LiveServer, fake: FakeModels, asked: argparse.Namespace
) -> list[Row]:
    """The whole text in so many seconds."""
    text = markdown(asked.kilobytes * 1000)
    fake.script({"text": text, "deltas": round(asked.seconds * asked.tokens), "gap_s": 1 / asked.tokens})
    async with watched(browser, server, asked.slower) as (page, cdp):
        rows = [await span(page, cdp, "nothing", 4)]
        await ask(page)
        for part in range(PARTS):
            row = await span(page, cdp, f"part {part + 1} of {PARTS}", (asked.seconds - 2) / PARTS)
            rows.append(row)
        return rows


async def tokens(
    browser: Browser, server: LiveServer, fake: FakeModels, asked: argparse.Namespace
) -> list[Row]:
    """Stretches of real tokens, where much of the text is there."""
    rows: list[Row] = []
    for part in range(PARTS):
        there = round(asked.kilobytes * 1000 * (part + 1) / PARTS)
        count = round(asked.tokens * (STRETCH_S + SETTLE_S + 5))
        text = markdown(there + round(count * TOKEN))
        fake.script({"text": text, "first": there, "deltas": count, "gap_s": 1 / asked.tokens})
        async with watched(browser, server, asked.slower) as (page, cdp):
            if not rows:
                rows.append(await span(page, cdp, "nothing", 4))
            await ask(page)
            await asyncio.sleep(SETTLE_S)  # what was there at once is drawn
            rows.append(await span(page, cdp, f"{there // 1000} kB and more", STRETCH_S))
    return rows


WAYS = {"tokens": tokens, "pieces": pieces}


async def run(asked: argparse.Namespace) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for name in asked.only or WAYS:
        with tempfile.TemporaryDirectory() as place, FakeModels() as fake:
            (Path(place) / "workspace").mkdir()
            async with live_server(Path(place), fake) as server, async_playwright() as playwright:
                chromium = shutil.which("chromium") or shutil.which("chromium-browser")
                browser = await playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
                found[name] = await WAYS[name](browser, server, fake, asked)
                await browser.close()
    return found


def is_smooth(rows: list[Row]) -> bool:
    limit = max(LATEST_FRAME_MS, 2 * float(rows[0]["p95"]))
    return all(float(row["p95"]) <= limit for row in rows)


def main() -> int:
    """Measure, print, return the exit code."""
    parser = argparse.ArgumentParser(description="A long answer in the browser while it streams: frames.")
    parser.add_argument("--kilobytes", type=int, default=250)
    parser.add_argument("--tokens", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=40.0)
    parser.add_argument("--slower", type=float, default=6.0)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--only", nargs="*", choices=list(WAYS))
    asked = parser.parse_args()
    found = asyncio.run(run(asked))
    if asked.json:
        print(json.dumps(found))
    else:
        for name, rows in found.items():
            print(f"{name}: {asked.kilobytes} kB, {asked.tokens} a second, {asked.slower}x slower; load {os.getloadavg()[0]:.1f}; ms")  # fmt: skip
            print(table(rows))
    return 0 if all(is_smooth(rows) for rows in found.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
