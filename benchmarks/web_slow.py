"""A long session over a slow network: what is seen in the first seconds, replay, memory, search (issue 14, UI-16, UI-24, UI-93).

Here: the slowed browser, what it shows at each second, the printed table. Not here: the session
(benchmarks/web_scroll.py), how smoothly it scrolls (there, too), the pages (`web/`).

    python benchmarks/web_slow.py [--messages 2000] [--files 200] [--kbits 400] [--latency 400] [--keep DIR] [--json]

The network is slowed by Chromium itself: `--kbits` a second and `--latency` milliseconds for each answer; 400 and
400 are slow 3G. `paint` is the first paint of words (a chat and a review show an empty frame that breathes before), `here` the moment the history, the diff or the message box
can be used, `bytes` what came until then. With `--keep`, pictures are taken after 1, 2, 3, 5, 8 and 12 seconds.
Without a slow network, on a page that is loaded: `replay` until the slider is there, `first turn` until it shows the
first turn, `to the top` until the first message is read, `search` until the session is found, and the heap after
each. Exit code 1 where no word is painted within eight seconds.
"""

import argparse
import asyncio
import json
import os
import shutil
import sys
import tempfile
from pathlib import Path
from time import perf_counter
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))
sys.path.insert(0, str(ROOT / "benchmarks"))

from playwright.async_api import Browser, CDPSession, Page, async_playwright, expect  # noqa: E402 - after the path
from support.fake_models import FakeModels  # noqa: E402
from support.live_server import LiveServer, live_server  # noqa: E402
from web_scroll import HERE, PAINTED, STEPS_A_TURN, Row, filled, path_of, source, table  # noqa: E402

SECONDS = (1, 2, 3, 5, 8, 12)
LATEST_PAINT_MS = 8000.0
BYTES = "performance.getEntriesByType('resource').reduce((sum, one) => sum + one.transferSize, 0)"
LINES = 20_000


async def slowed(page: Page, asked: argparse.Namespace) -> None:
    """Slow the network of a page down."""
    session = await page.context.new_cdp_session(page)
    speed = asked.kbits * 1000 / 8
    await session.send("Network.enable")
    await session.send(
        "Network.emulateNetworkConditions",
        {"offline": False, "latency": asked.latency, "downloadThroughput": speed, "uploadThroughput": speed},
    )


async def pictures(page: Page, name: str, keep: str) -> None:
    """What is seen after each of some seconds."""
    began = perf_counter()
    for second in SECONDS:
        await asyncio.sleep(max(0.0, second - (perf_counter() - began)))
        await page.screenshot(path=Path(keep) / f"{name}-{second:02}.png")


async def first_seconds(
    browser: Browser, server: LiveServer, conversation: str, asked: argparse.Namespace
) -> list[Row]:
    """The first visit of each page, as on a phone."""
    rows: list[Row] = []
    for name, path, here in (
        ("home", "/", "textarea"),
        ("chat", f"/c/{conversation}", "[data-ready=true] .turn-row"),
        ("review", f"/dev/c/{conversation}/diff", ".file-diff .diff-line"),
    ):
        context = await browser.new_context(
            base_url=server.address, viewport={"width": 412, "height": 823}, is_mobile=True, has_touch=True
        )
        page = await context.new_page()
        await slowed(page, asked)
        taking = asyncio.create_task(pictures(page, name, asked.keep)) if asked.keep else None
        await page.goto(path, wait_until="commit", timeout=120_000)
        there = float(await page.evaluate(HERE, here))
        row: Row = {"what": name, "paint": round(float(await page.evaluate(PAINTED))), "here": round(there)}
        rows.append({**row, "bytes": int(await page.evaluate(BYTES))})
        print(rows[-1], file=sys.stderr, flush=True)
        if taking is not None:
            await taking
        await context.close()
    return rows


async def heap(session: CDPSession) -> float:
    """Megabytes in use after a collection."""
    await session.send("HeapProfiler.collectGarbage")
    metrics = {one["name"]: one["value"] for one in (await session.send("Performance.getMetrics"))["metrics"]}
    return round(metrics["JSHeapUsedSize"] / (1 << 20), 1)


async def long_session(browser: Browser, server: LiveServer, conversation: str) -> list[Row]:
    """Replay, the way to the top, search; each with the heap after it."""
    context = await browser.new_context(base_url=server.address, viewport={"width": 1280, "height": 860})
    page = await context.new_page()
    session = await context.new_cdp_session(page)
    await session.send("Performance.enable")
    rows: list[Row] = []
    began = perf_counter()

    async def done(what: str) -> None:
        nonlocal began
        ms = round(1000 * (perf_counter() - began))
        rows.append({"what": what, "ms": ms, "heap MB": await heap(session)})
        print(rows[-1], file=sys.stderr, flush=True)
        began = perf_counter()

    log = page.get_by_role("log")
    await page.goto(f"/c/{conversation}")
    await expect(page.locator("[data-ready=true] .turn-row").first).to_be_visible()
    await done("open")
    scroller = page.locator("[data-virtuoso-scroller]")
    await scroller.hover()
    first = log.get_by_text("Go on with part 1, please.")
    while not await first.is_visible():  # as somebody who pulls the bar up
        await page.mouse.wheel(0, -200)
        await scroller.evaluate("list => { list.scrollTop = 0 }")
        await asyncio.sleep(0.05)
    await done("to the top")
    await page.get_by_role("button", name="Look back").click()
    await page.get_by_role("slider").focus()
    await done("replay")
    await page.keyboard.press("Home")
    await expect(log.get_by_text(f"Step {STEPS_A_TURN - 1}:")).to_be_visible()
    await done("first turn")
    await page.get_by_label("Search").first.fill("part 37")
    await expect(page.get_by_role("navigation", name="Sessions").get_by_role("link").first).to_be_visible()
    await done("search")
    await context.close()
    return rows


async def run(asked: argparse.Namespace) -> dict[str, list[Row]]:
    """Make the session and look at it."""
    with tempfile.TemporaryDirectory() as place, FakeModels() as fake:
        for number in range(asked.files - 1):
            path = Path(place) / "workspace" / path_of(number)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(source(number, "as it was"))
        async with live_server(Path(place), fake) as server, async_playwright() as playwright:
            conversation = await filled(server, fake, asked.files, asked.messages, LINES)
            chromium = shutil.which("chromium") or shutil.which("chromium-browser")
            browser = await playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
            found = {
                "first seconds": await first_seconds(browser, server, conversation, asked),
                "long session": await long_session(browser, server, conversation),
            }
            await browser.close()
    return found


def main() -> int:
    """Measure, print, return the exit code."""
    parser = argparse.ArgumentParser(description="A long session over a slow network.")
    parser.add_argument("--messages", type=int, default=2000)
    parser.add_argument("--files", type=int, default=200)
    parser.add_argument("--kbits", type=float, default=400)
    parser.add_argument("--latency", type=float, default=400, help="milliseconds")
    parser.add_argument("--keep", default="", metavar="DIR")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    expect.set_options(timeout=120_000)
    if asked.keep:
        Path(asked.keep).mkdir(parents=True, exist_ok=True)
    found: dict[str, Any] = asyncio.run(run(asked))
    if asked.json:
        print(json.dumps(found))
    else:
        print(f"{asked.messages} messages, {asked.files} files; load {os.getloadavg()[0]:.1f}; milliseconds")
        print(*(table(rows) for rows in found.values()), sep="\n\n")
    latest = max(float(row["paint"]) for row in found["first seconds"])
    return 0 if 0 <= latest <= LATEST_PAINT_MS else 1


if __name__ == "__main__":
    sys.exit(main())
