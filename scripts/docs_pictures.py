"""The manual's pictures, taken of a real server's pages with a scripted model.

Here: the story that is played and the pictures taken of it. Not here: the pages (web/), their tests.

    .venv/bin/python scripts/docs_pictures.py            # writes docs/images/*.png

Wants Chromium (`chromium` on the path) and built pages (`scripts/build_web.py`).
"""

import asyncio
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.async_api import Browser, Page, async_playwright, expect

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from support.fake_models import FakeModels  # noqa: E402 - the path is known only now
from support.live_server import LiveServer, live_server  # noqa: E402

IMAGES = ROOT / "docs" / "images"
REPORT = '''"""Counts orders."""


def load(path):
    with open(path) as handle:
        return handle.read().splitlines()


def total(rows):
    found = 0
    for row in rows:
        found += int(row)
    return found


def main():
    print(f"total {total(load('orders.txt'))}")
'''
TEST = "from report import total\n\n\ndef test_total():\n    assert total(['1', '2']) == 3\n"
ANSWER = """The total is now summed in one expression.

- `report.py`: `total` uses `sum`
- `tests/test_report.py`: a first test, which **passes**

I also added a CI workflow; it is listed apart, because it runs with the project's secrets.
"""
CALLS = [
    {"name": "read_file", "input": {"path": "/report.py"}},
    {
        "name": "edit_file",
        "input": {
            "path": "/report.py",
            "old": "    found = 0\n    for row in rows:\n        found += int(row)\n    return found\n",
            "new": "    return sum(int(row) for row in rows)\n",
        },
    },
    {
        "name": "edit_file",
        "input": {"path": "/report.py", "old": "open(path)", "new": 'open(path, encoding="utf-8")'},
    },
    {"name": "write_file", "input": {"path": "/tests/test_report.py", "content": TEST}},
    {"name": "write_file", "input": {"path": "/.github/workflows/ci.yml", "content": "on: push\n"}},
    {"name": "bash", "input": {"command": "ls tests && wc -l report.py"}},
]


TASKS = [
    {
        "prompt": "Read calendar.md and tell me what is due today.", "type": "cron", "value": "0 8 * * 1-5",
        "tz": "Europe/Rome", "notify": "loud",
    },
    {"prompt": "Look at the inbox folder and sort what is new.", "type": "interval", "value": "21600"},
    {"prompt": "Remind me of the invitation.", "type": "once", "value": "2031-06-01T09:00"},
]  # fmt: skip


async def main() -> None:
    """Play the story and write the pictures."""
    expect.set_options(timeout=60_000)  # a hang, not a machine that has other work
    IMAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as name, FakeModels() as fake:
        directory = Path(name)
        _project(directory / "workspace")
        async with (
            live_server(directory, fake, scheduler__enabled=True) as server,
            async_playwright() as playwright,
        ):
            browser = await playwright.chromium.launch(
                executable_path=shutil.which("chromium"), args=["--no-sandbox", "--force-color-profile=srgb"]
            )
            await _developer(browser, server, fake)
            await _user(browser, server, fake)
            await _schedules(browser, server, fake)
            await browser.close()


def _project(workspace: Path) -> None:
    workspace.mkdir()
    (workspace / "report.py").write_text(REPORT)
    (workspace / "orders.txt").write_text("3\n4\n5\n")
    subprocess.run(["git", "init", "-q"], cwd=workspace, check=True)


async def _developer(browser: Browser, server: LiveServer, fake: FakeModels) -> None:
    page = await _page(browser, server, 1440, 900, dark=True)
    for title in ("Why is the import slow?", "Rename the settings module"):
        fake.script({"text": "Because of the certificates; they are loaded once now."})
        await server.http.post(
            f"/api/conversations/{await server.conversation()}/messages?wait=60", json={"content": title}
        )
    fake.script(
        {"text": "I look first, then change.", "tools": CALLS},
        {"text": ANSWER, "usage": {"input": 9200, "output": 410, "cache_read": 5100}},
    )
    conversation = await server.conversation(title="Simplify the report")
    await page.goto(f"/dev/c/{conversation}")
    await _say(page, "Simplify report.py and add a test")
    await expect(page.get_by_role("log").get_by_text("I also added a CI workflow")).to_be_visible()
    await expect(page.locator("[data-state=idle][data-ready=true]")).to_be_visible()
    await page.screenshot(path=IMAGES / "developer.png")
    await page.goto(f"/dev/c/{conversation}/diff")
    await expect(page.get_by_test_id("land-summary")).to_be_visible()
    await expect(page.locator(".lines .token").first).to_be_visible()  # they come last
    await page.screenshot(path=IMAGES / "review.png")
    await page.context.close()


async def _user(browser: Browser, server: LiveServer, fake: FakeModels) -> None:
    for name, width, height in (("user", 1024, 720), ("phone", 390, 760)):
        page = await _page(browser, server, width, height, dark=False)
        note = {
            "path": f"/invitation-{name}.md",
            "content": "# Summer party\n\nSaturday, 4 pm, in the garden.\n",
        }
        fake.script(
            {"tools": [{"name": "write_file", "input": note}]},
            {"text": "The invitation is written. Have a look, then keep it or throw it away."},
        )
        await page.goto("/")
        await _say(page, "Write an invitation to our summer party")
        await expect(page.get_by_text("The invitation is written.").first).to_be_visible()
        await expect(page.locator("[data-state=idle][data-ready=true]")).to_be_visible()
        await page.screenshot(path=IMAGES / f"{name}.png")
        await page.context.close()


async def _schedules(browser: Browser, server: LiveServer, fake: FakeModels) -> None:
    fake.script({"text": "Nothing is due today. The garage wrote that the car is ready."})
    for task in TASKS:
        made = await server.http.post("/api/schedules", json=task)
        made.raise_for_status()
        if task["type"] == "once":
            continue
        await server.http.post(f"/api/schedules/{made.json()['id']}/run")
    page = await _page(browser, server, 1024, 720, dark=False)
    await page.goto("/schedules")
    await expect(page.get_by_text("calendar.md").first).to_be_visible()
    await expect(page.get_by_text("done").first).to_be_visible()
    await page.screenshot(path=IMAGES / "schedules.png")
    await page.context.close()


async def _page(browser: Browser, server: LiveServer, width: int, height: int, *, dark: bool) -> Page:
    context = await browser.new_context(
        base_url=server.address,
        viewport={"width": width, "height": height},
        color_scheme="dark" if dark else "light",
        reduced_motion="reduce",
    )
    return await context.new_page()


async def _say(page: Page, words: str) -> None:
    box = page.get_by_label("Your message")
    await box.fill(words)
    await box.press("Enter")


if __name__ == "__main__":
    asyncio.run(main())
