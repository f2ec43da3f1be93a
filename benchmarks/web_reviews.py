"""Large reviews in the browser: how soon they are there, what they weigh, how they scroll (issue 14, UI-26, UI-87).

Here: the measurement, its table and its pictures. Not here: the reviews (tests/support/large_reviews.py), the page
(`web/`), the server, the model (tests/support/fake_models.py).

    python benchmarks/web_reviews.py [--pictures DIR] [--only NAME] [--seconds 3] [--json]

An agent makes each review by its own calls on a real server: 500 changed files, one file of 50,000 changed lines, a
line of 2 MB, 200 renames with edits, conflicts in 20 files. Debian's Chromium then opens it with nothing cached:
`head` is the first file's head on the page, `row` its first lines (or what stands for them), `quiet` the end of the
last task over 50 ms (from there on a click is answered at once), all in milliseconds since the navigation began;
`heap` is what the page's script holds after a collection, in MB, `nodes` its elements. `shown` is what a click on
*Show it*, or on *Decide*, takes. Frames are those while it is scrolled by 240 pixels in each; headless Chromium
paints by the processor, so they are slower than on a screen. Exit code 1 when a review is not quiet within 5 s.
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

from playwright.async_api import Browser, Page, async_playwright, expect  # noqa: E402 - after the path
from support.fake_models import FakeModels  # noqa: E402
from support.large_reviews import (  # noqa: E402
    LargeReview,
    conflicts,
    long_line,
    made,
    many_files,
    many_lines,
    renames,
)
from support.live_server import LiveServer, live_server  # noqa: E402
from support.patience import HANG_S  # noqa: E402
from web_scroll import FRAMES, HERE, Row, frame_row, table  # noqa: E402

LATEST_QUIET_MS = 5000.0
REVIEWS = (many_files(500), many_lines(50_000), long_line(2_000_000), renames(200), conflicts(20))
LONG_TASKS = """
window.lastLong = 0;
new PerformanceObserver((list) => {
  for (const task of list.getEntries()) window.lastLong = Math.max(window.lastLong, task.startTime + task.duration);
}).observe({ type: "longtask", buffered: true });
"""


async def loaded(page: Page, path: str) -> dict[str, float]:
    """Go there with nothing cached; when its parts were there."""
    await page.goto(path, wait_until="commit")
    async with asyncio.timeout(HANG_S):
        head = float(await page.evaluate(HERE, ".file-diff .section-head"))
        row = float(await page.evaluate(HERE, ".section-row"))
    await page.wait_for_load_state("networkidle")
    quiet = max(row, float(await page.evaluate("window.lastLong")))
    return {"head": round(head), "row": round(row), "quiet": round(quiet)}


async def weight(page: Page) -> dict[str, float]:
    """What the page holds once what it does not need is gone."""
    cdp = await page.context.new_cdp_session(page)
    await cdp.send("HeapProfiler.collectGarbage")
    await cdp.send("Performance.enable")
    found = {one["name"]: one["value"] for one in (await cdp.send("Performance.getMetrics"))["metrics"]}
    return {"heap": round(found["JSHeapUsedSize"] / 1e6, 1), "nodes": round(found["Nodes"])}


async def asked_for(page: Page, review: LargeReview, pictures: Path | None) -> float | str:
    """What is shown only on a click; how long it takes in milliseconds."""
    show = page.get_by_role("button", name="Show it").first
    decide = page.get_by_role("button", name="Decide").first
    began = perf_counter()
    if review.name == "conflicts":
        await decide.click()
        await expect(page.get_by_role("dialog").get_by_role("group").first).to_be_visible()
        took = perf_counter() - began
        await picture(page, pictures, "conflicts-decide")
        await page.keyboard.press("Escape")
    elif await show.count():
        await show.click()
        await expect(page.locator(".diff-line").first).to_be_visible()
        took = perf_counter() - began
        await picture(page, pictures, f"{review.name}-shown")
    else:
        return ""
    return round(took * 1000)


async def picture(page: Page, pictures: Path | None, name: str) -> None:
    if pictures is not None:
        await page.wait_for_load_state("networkidle")
        await page.screenshot(path=pictures / f"{name.replace(' ', '-')}.png")


async def measure(
    browser: Browser, server: LiveServer, conversation: str, review: LargeReview, asked: argparse.Namespace
) -> tuple[Row, Row]:
    """One review opened, clicked and scrolled."""
    pictures: Path | None = asked.pictures
    context = await browser.new_context(
        base_url=server.address, viewport={"width": 1440, "height": 900}, color_scheme="dark"
    )
    await context.add_init_script(LONG_TASKS)
    page = await context.new_page()
    times = await loaded(page, f"/dev/c/{conversation}/diff")
    await picture(page, pictures, review.name)
    shown = await asked_for(page, review, pictures)
    frames: dict[str, Any] = await page.evaluate(FRAMES, [".window-list", asked.seconds])
    await picture(page, pictures, f"{review.name}-scrolled")
    held = await weight(page)
    if pictures is not None:
        await page.set_viewport_size({"width": 390, "height": 800})
        await page.goto(f"/c/{conversation}/diff")
        await page.locator(".section-row").first.wait_for()
        await picture(page, pictures, f"{review.name}-phone")
    await context.close()
    return {"review": review.name, **times, "shown": shown, **held}, frame_row(review.name, frames)


async def run(asked: argparse.Namespace) -> dict[str, list[Row]]:
    loads: list[Row] = []
    scrolls: list[Row] = []
    with tempfile.TemporaryDirectory() as place, FakeModels() as fake:
        (Path(place) / "workspace").mkdir()
        async with live_server(Path(place), fake) as server, async_playwright() as playwright:
            chromium = shutil.which("chromium") or shutil.which("chromium-browser")
            browser = await playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
            for review in REVIEWS:
                if asked.only not in review.name:
                    continue
                conversation = await made(server, fake, review)
                load, scroll = await measure(browser, server, conversation, review, asked)
                loads.append(load)
                scrolls.append(scroll)
            await browser.close()
    return {"loads": loads, "scrolls": scrolls}


def main() -> int:
    """Measure, print, return the exit code."""
    parser = argparse.ArgumentParser(description="Large reviews in the browser: times, memory, frames.")
    parser.add_argument("--pictures", type=Path, default=None, metavar="DIR")
    parser.add_argument("--only", default="", metavar="NAME")
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    if asked.pictures is not None:
        asked.pictures.mkdir(parents=True, exist_ok=True)
    found = asyncio.run(run(asked))
    if asked.json:
        print(json.dumps(found))
    else:
        print(f"load {os.getloadavg()[0]:.1f}; milliseconds, heap in MB")
        print(table(found["loads"]), table(found["scrolls"]), sep="\n\n")
    latest = max(float(row["quiet"]) for row in found["loads"])
    return 0 if latest <= LATEST_QUIET_MS else 1


if __name__ == "__main__":
    sys.exit(main())
