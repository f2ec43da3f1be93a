"""What axe finds on every page and state: both faces, both themes, five widths, zoom 200 % (UI-36, UI-37).

Here: going through the states and judging them. Not here: the states (tests/support/page_states.py), what the
server holds (tests/support/page_stories.py), the small part of this that every test run does
(tests/web/test_quality.py).

    python benchmarks/web_axe.py [--only PATTERN] [--face user|dev] [--theme light|dark] [--widths 320,1440] [--json]

Each state is brought about once per face, then looked at in every theme and width, which change in place; zoom 200 %
is a window of 720 by 450 points. Counted are findings of the impact serious or critical, and pages that are wider
than their window. Each is printed as it is found. Exit code 1 for
any of them, or a state that cannot be reached. About ten minutes for everything on an idle machine.
"""

import argparse
import asyncio
import json
import shutil
import sys
import tempfile
from pathlib import Path
from time import perf_counter

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from playwright.async_api import Browser, Error, async_playwright, expect  # noqa: E402 - after the path
from support.page_states import State, wanted  # noqa: E402
from support.page_stories import Stage, filled_server  # noqa: E402
from support.web_actions import serious_findings  # noqa: E402

WIDTHS = (320, 390, 768, 1024, 1440)
ZOOMED = (720, 450)
# What another theme of the same page in the same width can change.
COLOURS = ("color-contrast", "link-in-text-block")
Found = list[str]


async def judged(browser: Browser, stage: Stage, state: State, face: str, asked: argparse.Namespace) -> Found:
    """One state in one face, in every theme and width; themes and widths are changed in place."""
    sizes = [(width, 800) for width in asked.widths if state.phone or width > 860] + [ZOOMED]
    where = f"{state.name} {'dev' if face else 'user'}"
    found: Found = []
    context = await browser.new_context(
        base_url=stage.server.address, viewport={"width": sizes[0][0], "height": sizes[0][1]},
        color_scheme=asked.themes[0], reduced_motion="reduce",
    )  # fmt: skip
    context.set_default_timeout(20_000)
    page = await context.new_page()
    try:
        # What is opened on a wide page stays open on a narrow one; a phone's own places are reached on a phone.
        await page.set_viewport_size({"width": 1440, "height": 900})
        await state.reach(page, stage, face)
        for width, height in reversed(sizes):
            await page.set_viewport_size({"width": width, "height": height})
            for at, theme in enumerate(asked.themes):
                await page.emulate_media(color_scheme=theme)
                await expect(page.locator("html")).to_have_attribute("data-theme", theme)
                now = await serious_findings(page, COLOURS if at else ())
                found += [f"{where} {theme} {width}x{height}: {one}" for one in now]
            wide = await page.evaluate("document.documentElement.scrollWidth")
            if wide > width:
                found.append(f"{where} {width}x{height}: {wide} wide")
    except (Error, AssertionError) as error:
        found.append(f"{where}: not reached: {str(error).splitlines()[0]}")
    await context.close()
    return found


async def run(asked: argparse.Namespace) -> tuple[int, Found]:
    """Go through everything that was asked for; how many states, and what was found."""
    found: Found = []
    count = 0
    asked.themes = (asked.theme,) if asked.theme else ("light", "dark")
    with tempfile.TemporaryDirectory() as place:
        async with filled_server(Path(place)) as stage, async_playwright() as playwright:
            chromium = shutil.which("chromium") or shutil.which("chromium-browser")
            browser = await playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
            for state in wanted(asked.only)[asked.skip :]:
                for face in state.faces:
                    if asked.face and (asked.face == "dev") != bool(face):
                        continue
                    count += 1
                    began = perf_counter()
                    now = await judged(browser, stage, state, face, asked)
                    found += now
                    said = f"{count} {state.name} {face or '/'} {perf_counter() - began:.0f} s"
                    print(said, *now, sep="\n  ", file=sys.stderr, flush=True)
            await browser.close()
    return count, found


def main() -> int:
    """Judge, print what was found, return the exit code."""
    parser = argparse.ArgumentParser(description="axe on every page and state.")
    parser.add_argument("--only", default="", metavar="PATTERN")
    parser.add_argument("--skip", type=int, default=0, help="so many states, that are done")
    parser.add_argument("--face", choices=("user", "dev"), default=None)
    parser.add_argument("--theme", choices=("light", "dark"), default=None)
    parser.add_argument(
        "--widths", type=lambda text: [int(one) for one in text.split(",")], default=list(WIDTHS)
    )
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    expect.set_options(timeout=20_000)  # what is not there then is said, and the others go on
    began = perf_counter()
    count, found = asyncio.run(run(asked))
    if asked.json:
        print(json.dumps({"states": count, "found": found}))
    else:
        print(f"{count} states in {perf_counter() - began:.0f} s, {len(found)} findings")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
