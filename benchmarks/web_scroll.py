"""How soon a large session is seen in the browser, and how smoothly it scrolls (issue 6, UI-16, UI-26).

Here: the measurement and its printed table. Not here: the pages (`web/`), the server, the model
(tests/support/fake_models.py).

    python benchmarks/web_scroll.py [--messages 2000] [--files 500] [--lines 50000] [--seconds 3] [--json]

A session with so many messages and a diff of so many files, one of them with so many lines, is made on a real
server, then opened in Debian's Chromium. `paint` is the first paint with content and `here` the moment the
history, or the diff, is on the page, both in milliseconds after the navigation began, with nothing cached. Frames
are measured while the page is scrolled by 240 pixels in each of them; `long` counts tasks over 50 ms. Headless
Chromium paints by the processor, so frames are slower than on a screen. Exit code 1 when a first paint comes
later than 1 s.
"""

import argparse
import asyncio
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from playwright.async_api import Browser, Page, async_playwright  # noqa: E402 - after the path to tests/support
from support.fake_models import FakeModels  # noqa: E402
from support.live_server import LiveServer, live_server  # noqa: E402

LATEST_PAINT_MS = 1000.0
STEPS_A_TURN = 20
FRAMES = """([selector, seconds]) => new Promise((resolve) => {
  const all = [...document.querySelectorAll(selector)];
  const place = all.find((one) => one.scrollHeight > one.clientHeight) ?? all[0];
  const long = [];
  new PerformanceObserver((list) => long.push(...list.getEntries())).observe({ entryTypes: ["longtask"] });
  const frames = [];
  const begin = performance.now();
  let last = begin;
  let by = place.scrollTop > place.scrollHeight / 2 ? -240 : 240;
  const step = (now) => {
    frames.push(now - last);
    last = now;
    if (now - begin > seconds * 1000) return resolve({ frames: frames.slice(2), long: long.length });
    if (place.scrollTop + place.clientHeight >= place.scrollHeight - 2) by = -240;
    if (place.scrollTop <= 2 && by < 0) by = 240;
    place.scrollTop += by;
    requestAnimationFrame(step);
  };
  requestAnimationFrame(step);
})"""
PAINTED = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? -1"
HERE = """(selector) => new Promise((resolve) => {
  const look = () => document.querySelector(selector) ? resolve(performance.now()) : requestAnimationFrame(look);
  look();
})"""
Row = dict[str, float | int | str]


def source(number: int, changed: str) -> str:
    """A module of about 60 lines; every tenth function says `changed`."""
    parts = [f'"""Module {number}."""\n']
    for at in range(20):
        word = changed if at % 10 == 5 else "plain"
        parts.append(f'\ndef function_{at}(value):\n    return "{word}", value + {at}\n')
    return "".join(parts)


def path_of(number: int) -> str:
    return f"package_{number // 25:02}/module_{number:04}.py"


def script(files: int, messages: int, lines: int) -> list[dict[str, Any]]:
    """What the model says: most steps write a file, the rest think aloud."""
    steps: list[dict[str, Any]] = []
    for number in range(messages // 2):
        if number < files - 1:
            write = {"path": f"/{path_of(number)}", "content": source(number, "changed")}
            tools = [{"name": "write_file", "input": write}]
        elif number == files - 1:
            long = "".join(f"line {at}\n" for at in range(lines))
            tools = [{"name": "write_file", "input": {"path": "/generated.txt", "content": long}}]
        else:
            tools = [{"name": "list_files", "input": {"pattern": f"package_{number % 9:02}/*"}}]
        text = (
            f"Step {number}: **module {number % files}** is next.\n\n- read\n- change\n\n`module_{number:04}`"
        )
        steps.append({"text": text, "tools": tools})
        if number % STEPS_A_TURN == STEPS_A_TURN - 1:
            steps.append({"text": "That was this part."})
    usage = {"input": 100, "output": 20}  # or the budget of a turn ends it
    return [{**step, "usage": usage} for step in [*steps, {"text": "All is done."}]]


async def filled(server: LiveServer, fake: FakeModels, files: int, messages: int, lines: int) -> str:
    """Make the session; its id."""
    fake.script(*script(files, messages, lines))
    conversation = await server.conversation(title="A long session")
    turns = messages // 2 // STEPS_A_TURN + 1
    for turn in range(turns):
        asked = await server.http.post(
            f"/api/conversations/{conversation}/messages",
            params={"wait": 120},
            json={"content": f"Go on with part {turn + 1}, please."},
            timeout=150,
        )
        asked.raise_for_status()
    return conversation


def frame_row(what: str, measured: dict[str, Any]) -> Row:
    frames = sorted(measured["frames"])

    def at(share: float) -> float:
        return round(frames[min(len(frames) - 1, int(len(frames) * share))], 1)

    slow = sum(frame > 50 for frame in frames)
    return {"what": what, "frames": len(frames), "median": at(0.5), "p95": at(0.95), "p99": at(0.99),
            "max": round(frames[-1], 1), "over 50": slow, "long": measured["long"]}  # fmt: skip


async def opened(browser: Browser, address: str, path: str, here: str) -> tuple[Page, float, float]:
    """A fresh browser on a page; the page, first paint and when `here` was there, in milliseconds."""
    context = await browser.new_context(base_url=address, viewport={"width": 1280, "height": 860})
    page = await context.new_page()
    await page.goto(path, wait_until="commit")
    there = float(await page.evaluate(HERE, here))
    painted = float(await page.evaluate(PAINTED))
    await page.wait_for_load_state("networkidle")
    return page, painted, there


async def measure(server: LiveServer, conversation: str, seconds: float) -> tuple[list[Row], list[Row]]:
    """Loads and scrolls of the chat and the review."""
    loads: list[Row] = []
    scrolls: list[Row] = []
    pages = (
        ("chat", f"/dev/c/{conversation}", "[data-ready=true] .turn-row", "[data-virtuoso-scroller]"),
        ("chat, user face", f"/c/{conversation}", "[data-ready=true] .turn-row", "[data-virtuoso-scroller]"),
        ("review", f"/dev/c/{conversation}/diff", ".file-diff .diff-line", ".window-list"),
    )
    async with async_playwright() as playwright:
        chromium = shutil.which("chromium") or shutil.which("chromium-browser")
        browser = await playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for name, path, here, scroller in pages:
            page, painted, there = await opened(browser, server.address, path, here)
            loads.append({"what": name, "paint": round(painted), "here": round(there)})
            scrolls.append(frame_row(name, await page.evaluate(FRAMES, [scroller, seconds])))
            if name == "review":
                scrolls.append(await long_file(page, seconds))
            await page.context.close()
        await browser.close()
    return loads, scrolls


async def long_file(page: Page, seconds: float) -> Row:
    """The file with most lines, which is loaded when somebody asks for it."""
    await page.get_by_role("button", name="generated.txt", exact=True).click()
    await page.get_by_role("button", name="Show it").click()
    await page.locator(".diff-line", has_text="line 10").first.wait_for()
    return frame_row("one long file", await page.evaluate(FRAMES, [".window-list", seconds]))


def table(rows: Sequence[Row]) -> str:
    heads = list(rows[0])
    cells = [heads, *([str(row[head]) for head in heads] for row in rows)]
    widths = [max(len(line[at]) for line in cells) for at in range(len(heads))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in cells
    )


async def run(messages: int, files: int, lines: int, seconds: float) -> dict[str, list[Row]]:
    with tempfile.TemporaryDirectory() as place, FakeModels() as fake:
        workspace = Path(place) / "workspace"
        for number in range(files - 1):
            path = workspace / path_of(number)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(source(number, "as it was"))
        async with live_server(Path(place), fake) as server:
            conversation = await filled(server, fake, files, messages, lines)
            loads, scrolls = await measure(server, conversation, seconds)
    return {"loads": loads, "scrolls": scrolls}


def main() -> int:
    """Measure, print, return the exit code."""
    parser = argparse.ArgumentParser(description="A large session in the browser: first paint and frames.")
    parser.add_argument("--messages", type=int, default=2000)
    parser.add_argument("--files", type=int, default=500)
    parser.add_argument("--lines", type=int, default=50_000)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    found = asyncio.run(run(asked.messages, asked.files, asked.lines, asked.seconds))
    if asked.json:
        print(json.dumps(found))
    else:
        load = os.getloadavg()[0]
        print(f"{asked.messages} messages, {asked.files} files; load {load:.1f}; milliseconds")
        print(table(found["loads"]), table(found["scrolls"]), sep="\n\n")
    latest = max(float(row["paint"]) for row in found["loads"])
    return 0 if 0 <= latest <= LATEST_PAINT_MS else 1


if __name__ == "__main__":
    sys.exit(main())
