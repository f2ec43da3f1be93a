"""A picture of every page and state of both faces, and sheets of them to look at.

Here: going through the states (tests/support/page_states.py) at some size and theme. Not here: the manual's
own pictures (docs_pictures.py), what axe says of the states (benchmarks/web_axe.py).

    .venv/bin/python scripts/page_pictures.py DIR [--only PATTERN] [--size 1440x900] [--theme dark]
        [--face user|dev] [--zoom 1] [--print]

Wants Chromium (`chromium` on the path) and built pages (`make web`). A state that cannot be reached is named
at the end, and the exit code is 1. `--zoom 2` is a window of half the size at twice the dots, as a browser's
zoom is.
"""

import argparse
import asyncio
import html
import shutil
import sys
import tempfile
from pathlib import Path

from playwright.async_api import Browser, Error, Page, async_playwright, expect

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from support.page_states import State, wanted  # noqa: E402 - the path is known only now
from support.page_stories import Stage, filled_server  # noqa: E402

A_SHEET = 12
QUIET = """document.fonts.ready.then(() => new Promise((done) => {
  let timer = setTimeout(done, 600);
  new MutationObserver(() => { clearTimeout(timer); timer = setTimeout(done, 600); })
    .observe(document.body, { childList: true, subtree: true });
  setTimeout(done, 5000);
}))"""


async def picture(browser: Browser, stage: Stage, state: State, face: str, asked: argparse.Namespace) -> str:
    """Take one; what went wrong, or nothing."""
    width, height = (int(int(side) / asked.zoom) for side in asked.size.split("x"))
    context = await browser.new_context(
        base_url=stage.server.address, viewport={"width": width, "height": height}, color_scheme=asked.theme,
        reduced_motion="reduce", device_scale_factor=asked.zoom, has_touch=width < 500,
    )  # fmt: skip
    context.set_default_timeout(15_000)
    page = await context.new_page()
    name = f"{state.name}-{'dev' if face else 'user'}"
    said = ""
    try:
        await state.reach(page, stage, face)
        await quiet(page)
    except (Error, AssertionError) as error:
        said = f"{name}: {str(error).splitlines()[0]}"
    if asked.print:
        await page.emulate_media(media="print")
    await page.screenshot(path=asked.directory / f"{name}.png", full_page=asked.print)
    wide = await page.evaluate("document.documentElement.scrollWidth")
    if wide > width:
        said = f"{name}: {wide} wide in {width}"
    await context.close()
    return said


async def quiet(page: Page) -> None:
    """Fonts and lazy parts are there, and nothing has changed for a moment."""
    await page.wait_for_load_state("load")
    await page.evaluate(QUIET)


async def sheets(browser: Browser, directory: Path, names: list[str], width: int) -> None:
    """Put the pictures beside each other, so many on a sheet."""
    for at in range(0, len(names), A_SHEET):
        some = [name for name in names[at : at + A_SHEET] if (directory / f"{name}.png").exists()]
        columns = 6 if width < 600 else 3
        each = "".join(
            f'<figure style="margin:0"><figcaption>{html.escape(name)}</figcaption>'
            f'<img style="width:100%" src="{(directory / name).as_uri()}.png"></figure>'
            for name in some
        )
        style = f"font:13px sans-serif;display:grid;gap:8px;grid-template-columns:repeat({columns},1fr)"
        sheet = directory / "sheet.html"
        sheet.write_text(f'<body style="margin:8px;background:#999;{style}">{each}')
        page = await browser.new_page(viewport={"width": 2000, "height": 800})
        await page.goto(sheet.as_uri())
        await page.screenshot(path=directory / f"sheet-{at // A_SHEET + 1}.png", full_page=True)
        await page.close()
        sheet.unlink()


async def run(asked: argparse.Namespace) -> list[str]:
    problems: list[str] = []
    names: list[str] = []
    width = int(asked.size.split("x")[0])
    with tempfile.TemporaryDirectory() as place:
        async with filled_server(Path(place)) as stage, async_playwright() as playwright:
            browser = await playwright.chromium.launch(
                executable_path=shutil.which("chromium"), args=["--no-sandbox", "--force-color-profile=srgb"]
            )
            for state in wanted(asked.only):
                if width < 900 and not state.phone:
                    continue
                for face in state.faces:
                    if asked.face and (asked.face == "dev") != bool(face):
                        continue
                    problems.append(await picture(browser, stage, state, face, asked))
                    names.append(f"{state.name}-{'dev' if face else 'user'}")
            await sheets(browser, asked.directory, names, width)
            await browser.close()
    return [problem for problem in problems if problem]


def main() -> int:
    """Take the pictures, say what could not be reached, return the exit code."""
    parser = argparse.ArgumentParser(description="A picture of every page and state.")
    parser.add_argument("directory", type=Path)
    parser.add_argument("--only", default="", metavar="PATTERN")
    parser.add_argument("--size", default="1440x900")
    parser.add_argument("--theme", choices=("light", "dark"), default="light")
    parser.add_argument("--face", choices=("user", "dev"), default=None)
    parser.add_argument("--zoom", type=float, default=1.0)
    parser.add_argument("--print", action="store_true")
    asked = parser.parse_args()
    asked.directory = asked.directory.resolve()
    asked.directory.mkdir(parents=True, exist_ok=True)
    expect.set_options(timeout=15_000)  # what is not there then is said, and the others go on
    problems = asyncio.run(run(asked))
    print(*problems, sep="\n")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
