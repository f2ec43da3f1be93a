"""A long conversation: its end is here first, its beginning comes above what is read (UI-16, issue 6)."""

import asyncio
import re

import pytest
from playwright.async_api import Page, WebSocketRoute, expect
from support.fake_models import FakeModels
from support.live_server import LiveServer
from support.patience import HANG_S, patience
from support.web_actions import is_idle, log

pytestmark = pytest.mark.timeout(patience(60))

CALLS = 40
STEPS = 18
TOP_OF_ROW = """(name) => {
  const list = document.querySelector("[data-virtuoso-scroller]");
  const edge = list.getBoundingClientRect().top;
  const rows = [...list.querySelectorAll("details.tool")];
  const found = rows.find((row) => name ? row.innerText.trim() === name : row.getBoundingClientRect().top > edge + 40);
  if (!found) return ["", 1 << 20];
  return [found.innerText.trim(), Math.round(found.getBoundingClientRect().top)];
}"""


async def long_conversation(server: LiveServer, fake: FakeModels) -> str:
    """One with more records than a page asks for at first; each call can be told from the others."""

    def step(number: int) -> dict[str, object]:
        calls = [
            {"name": "list_files", "input": {"pattern": f"none-{number:02}-{call:02}*"}}
            for call in range(CALLS)
        ]
        return {"text": f"Part {number}.", "tools": calls}

    usage = {"input": 10, "output": 10}
    fake.script(*({**step(number), "usage": usage} for number in range(STEPS)), {"text": "All is done."})
    conversation = await server.conversation()
    asked = await server.http.post(
        f"/api/conversations/{conversation}/messages",
        params={"wait": 120},
        json={"content": "Begin, please."},
    )
    assert asked.status_code == 200, asked.text
    told = (await server.http.get(f"/api/conversations/{conversation}")).json()
    assert told["cursor"] > 600, "the history must be longer than what a page asks for at once"
    return conversation


async def at_rest(page: Page, row: str = "") -> tuple[str, int]:
    """Return a row, the first that is read, and where it stands, as soon as the list has drawn what is in view."""
    seen: list[str | int] = []
    async with asyncio.timeout(HANG_S):
        while True:
            now = await page.evaluate(TOP_OF_ROW, row)
            if now == seen and now[1] < page.viewport_size["height"]:
                return now[0], now[1]
            seen = now
            await asyncio.sleep(0.1)


async def test_the_end_of_a_long_history_comes_first_and_reading_it_is_not_disturbed(
    page: Page, server: LiveServer, fake: FakeModels
) -> None:
    conversation = await long_conversation(server, fake)
    may_come = asyncio.Event()

    async def lead(socket: WebSocketRoute) -> None:
        await may_come.wait()
        socket.connect_to_server()

    await page.route_web_socket(re.compile(r"[?&]after=0(&|$)"), lead)
    await page.goto(f"/dev/c/{conversation}")
    await is_idle(page)
    await expect(log(page).get_by_text("All is done.")).to_be_visible()
    scroller = page.locator("[data-virtuoso-scroller]")
    await scroller.hover()
    await page.mouse.wheel(0, -100)
    await scroller.evaluate("list => { list.scrollTop = 0 }")
    await expect(page.get_by_text("Earlier messages are being loaded")).to_be_visible()
    assert await log(page).get_by_text("Begin, please.").count() == 0
    before = await at_rest(page)

    may_come.set()
    await expect(page.get_by_text("Earlier messages are being loaded")).to_have_count(0)
    # A few pixels more may put another row first: what is read is where it was, and stays there. A starved
    # browser may draw the rows above one frame before it moves the list.
    top = -1
    try:
        async with asyncio.timeout(HANG_S):
            while abs(top - before[1]) >= 60:
                _, top = await at_rest(page, before[0])
    except TimeoutError:
        pytest.fail(f"what was read has moved: {before} is at {top}")
    await asyncio.sleep(0.5)
    _, stays = await at_rest(page, before[0])
    assert stays == top
    await scroller.evaluate("list => { list.scrollTop = 0 }")
    await expect(log(page).get_by_text("Begin, please.")).to_be_visible()
    shown = await log(page).inner_text()
    assert shown.count("Begin, please.") == 1 and shown.count("Part 0.") == 1


async def test_who_comes_back_to_an_early_part_finds_it_however_late_it_comes(
    page: Page, server: LiveServer, fake: FakeModels
) -> None:
    """UI-16: and who reads on meanwhile is not taken away from there."""
    conversation = await long_conversation(server, fake)
    may_come = asyncio.Event()
    may_come.set()

    async def lead(socket: WebSocketRoute) -> None:
        await may_come.wait()
        socket.connect_to_server()

    await page.route_web_socket(re.compile(r"[?&]after=0(&|$)"), lead)
    await page.goto(f"/dev/c/{conversation}")
    await is_idle(page)
    scroller = page.locator("[data-virtuoso-scroller]")
    earlier = page.get_by_text("Earlier messages are being loaded")
    await scroller.hover()
    await page.mouse.wheel(0, -100)
    async with asyncio.timeout(HANG_S):
        while not await log(page).get_by_text("Begin, please.").is_visible():
            await scroller.evaluate("list => { list.scrollTop = 0 }")  # more comes above meanwhile
            await asyncio.sleep(0.1)
    await scroller.evaluate("list => { list.scrollTop = 2000 }")
    row, top = await at_rest(page)

    may_come.clear()
    await page.reload()
    await is_idle(page)
    await expect(log(page).get_by_text("All is done.")).to_be_visible()
    may_come.set()
    async with asyncio.timeout(HANG_S):
        while abs((await at_rest(page, row))[1] - top) > 3:
            await asyncio.sleep(0.1)

    # Nobody who has gone elsewhere before the place came is taken there.
    may_come.clear()
    await page.reload()
    await is_idle(page)
    await expect(log(page).get_by_text("All is done.")).to_be_visible()
    await scroller.hover()
    await page.mouse.wheel(0, -600)
    await expect(log(page).get_by_text("All is done.")).not_to_be_in_viewport()
    now, here = await at_rest(page)
    may_come.set()
    await scroller.evaluate("list => { list.scrollTop -= 1 }")
    await expect(earlier).to_have_count(0)
    async with asyncio.timeout(HANG_S):
        while abs((await at_rest(page, now))[1] - here) >= 60:
            await asyncio.sleep(0.1)
