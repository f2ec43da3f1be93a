"""How smoothly a long answer is drawn while it streams, on a slow device (UI-92).

Here: the measurement and its printed table. Not here: the pages (`web/`), the server, the model
(tests/support/fake_models.py).

    python benchmarks/web_stream.py [--kilobytes 250] [--tokens 200] [--seconds 40] [--slower 6] [--json]

A model says so much Markdown in so many seconds, so many pieces in each of them; the user's face draws it in
Debian's Chromium, whose processor is made slower by a factor. Frames are counted from one `requestAnimationFrame`
to the next. The row `nothing` is the same page at rest in the same run: what this machine gives a page that does
nothing. `script`, `style` and `layout` are milliseconds of each second. Exit code 1 when the p95 of frames is
over 50 ms and over twice that of the page at rest.
"""

import argparse
import asyncio
import json
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))
sys.path.insert(0, str(ROOT / "benchmarks"))

from playwright.async_api import CDPSession, Page, async_playwright, expect  # noqa: E402 - after the path
from support.fake_models import FakeModels  # noqa: E402
from support.live_server import LiveServer, live_server  # noqa: E402
from web_scroll import Row, frame_row, table  # noqa: E402

LATEST_FRAME_MS = 50.0
WATCH = """() => {
  window.frames_ = [];
  window.long_ = 0;
  new PerformanceObserver((list) => { window.long_ += list.getEntries().length; }).observe({ entryTypes: ["longtask"] });
  let last = performance.now();
  const step = (now) => { window.frames_.push(now - last); last = now; requestAnimationFrame(step); };
  requestAnimationFrame(step);
}"""
TAKE = """() => {
  const taken = { frames: window.frames_, long: window.long_ };
  window.frames_ = []; window.long_ = 0;
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
    return row


async def measure(server: LiveServer, seconds: float, slower: float, parts: int) -> list[Row]:
    async with async_playwright() as playwright:
        chromium = shutil.which("chromium") or shutil.which("chromium-browser")
        browser = await playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        context = await browser.new_context(base_url=server.address, viewport={"width": 1280, "height": 860})
        page = await context.new_page()
        conversation = await server.conversation()
        await page.goto(f"/c/{conversation}")
        await expect(page.locator("[data-ready=true]")).to_be_visible()
        cdp = await context.new_cdp_session(page)
        await cdp.send("Performance.enable")
        await cdp.send("Emulation.setCPUThrottlingRate", {"rate": slower})
        await page.evaluate(WATCH)
        rows = [await span(page, cdp, "nothing", 4)]
        await page.get_by_label("Your message").fill("Write much.")
        await page.get_by_label("Your message").press("Enter")
        await expect(page.get_by_role("heading", name="Part 0")).to_be_visible(timeout=60_000)
        for part in range(parts):
            row = await span(page, cdp, f"part {part + 1} of {parts}", (seconds - 2) / parts)
            row["shown"] = await page.evaluate("document.querySelector('.prose')?.textContent.length ?? 0")
            rows.append(row)
        await browser.close()
        return rows


async def run(characters: int, tokens: int, seconds: float, slower: float) -> list[Row]:
    with tempfile.TemporaryDirectory() as place, FakeModels() as fake:
        (Path(place) / "workspace").mkdir()
        gap = 1 / tokens
        fake.script({"text": markdown(characters), "deltas": round(seconds * tokens), "gap_s": gap})
        async with live_server(Path(place), fake) as server:
            return await measure(server, seconds, slower, 5)


def main() -> int:
    """Measure, print, return the exit code."""
    parser = argparse.ArgumentParser(description="A long answer in the browser while it streams: frames.")
    parser.add_argument("--kilobytes", type=int, default=250)
    parser.add_argument("--tokens", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=40.0)
    parser.add_argument("--slower", type=float, default=6.0)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    rows = asyncio.run(run(asked.kilobytes * 1000, asked.tokens, asked.seconds, asked.slower))
    if asked.json:
        print(json.dumps(rows))
    else:
        print(f"{asked.kilobytes} kB, {asked.tokens} pieces a second, {asked.slower}x slower; load {os.getloadavg()[0]:.1f}; ms")  # fmt: skip
        print(table([{"shown": "", **row} for row in rows]))
    limit = max(LATEST_FRAME_MS, 2 * float(rows[0]["p95"]))
    return 0 if all(float(row["p95"]) <= limit for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
