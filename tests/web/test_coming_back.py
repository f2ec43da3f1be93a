"""Who comes back finds chat and review as they were left: the place that was read, the open file, the ticks (UI-16, UI-26).

Neither the speed of the machine nor that of the network changes where they are found.
"""

import asyncio
import re

import pytest
from playwright.async_api import Page, Route, WebSocketRoute, expect
from support.fake_models import FakeModels
from support.live_server import LiveServer
from support.patience import HANG_S, patience
from support.web_actions import is_idle, log, say

pytestmark = pytest.mark.timeout(patience(60))

PARAGRAPHS = "\n\n".join(f"Paragraph {number} of the answer." for number in range(80))
LAST = "\n\n".join(f"The last words, part {number}." for number in range(40))
FILES = 30
TOP = "(one) => Math.round(one.getBoundingClientRect().top)"


async def made(server: LiveServer, fake: FakeModels) -> str:
    """A conversation with a long answer in the middle and thirty new files."""
    files = [
        {"name": "write_file", "input": {"path": f"part{number:02}.txt", "content": "line\n" * 40}}
        for number in range(FILES)
    ]
    fake.script({"tools": files}, {"text": PARAGRAPHS}, {"text": LAST})
    conversation = await server.conversation()
    for words in ("Begin", "And now?"):
        done = await server.http.post(
            f"/api/conversations/{conversation}/messages", params={"wait": 60}, json={"content": words}
        )
        assert done.status_code == 200, done.text
    return conversation


async def is_at(page: Page, selector: str, top: int) -> None:
    """Wait until something stands where it stood, and look again a little later: it stays there."""
    place = page.locator(selector).first
    at = -1
    async with asyncio.timeout(HANG_S):
        while True:
            before, at = at, int(await place.evaluate(TOP))
            if at == before and abs(at - top) <= 3:
                return
            await asyncio.sleep(0.1)


async def seen_top(page: Page, list_: str, row: str) -> tuple[str, int]:
    """The first row below the edge of a list, and where it stands, once the list stands still."""
    script = """([list, row]) => {
      const edge = document.querySelector(list).getBoundingClientRect().top;
      const one = [...document.querySelectorAll(row)].find((each) => each.getBoundingClientRect().top > edge + 40);
      return one ? [one.getAttribute("aria-label") ?? one.innerText, Math.round(one.getBoundingClientRect().top)] : ["", 0];
    }"""
    before: list[str | int] = []
    async with asyncio.timeout(HANG_S):
        while True:
            now = await page.evaluate(script, [list_, row])
            if now == before and now[0]:
                return str(now[0]), int(now[1])
            before = now
            await asyncio.sleep(0.1)


async def wheel(page: Page, list_: str, by: int) -> None:
    """Turn the wheel over a list, and wait until the list has gone along."""
    place = page.locator(list_)
    before = int(await place.evaluate("list => list.scrollTop"))
    await place.hover()
    await page.mouse.wheel(0, by)
    await page.wait_for_function(
        "([list, before, by]) => Math.abs(document.querySelector(list).scrollTop - before) > Math.abs(by) / 2",
        arg=[list_, before, by],
    )


async def slowed(page: Page, times: int) -> None:
    """Let the page's processor be so many times slower; 1 is its own speed."""
    session = await page.context.new_cdp_session(page)
    await session.send("Emulation.setCPUThrottlingRate", {"rate": times})
    await session.detach()


@pytest.mark.parametrize("slower", [1, 12])
async def test_back_and_forward_find_the_place_that_was_read_and_the_open_file(
    page: Page, server: LiveServer, fake: FakeModels, slower: int
) -> None:
    """UI-16, UI-26, UI-33: on a machine that is twelve times slower, too."""
    conversation = await made(server, fake)
    await page.goto(f"/c/{conversation}")
    await is_idle(page)
    await expect(log(page).get_by_text("The last words, part 39.")).to_be_in_viewport()

    # The chat: up to the middle of the long answer, and a file beside it.
    await page.get_by_role("button", name="Files", exact=True).click()
    panel = page.get_by_role("complementary", name="Files")
    await panel.get_by_role("button", name="part03.txt").click()
    await expect(panel.get_by_role("heading", name="part03.txt")).to_be_visible()
    await wheel(page, "[data-virtuoso-scroller]", -2700)
    chat_row, chat_top = await seen_top(page, "[data-virtuoso-scroller]", "[role=log] .prose p")
    in_chat = f'[role=log] .prose p:text-is("{chat_row}")'

    # The review: some way down.
    await page.get_by_role("link", name="Changes").first.click()
    diffs = page.locator(".window-list")
    await expect(diffs.locator(".diff-line").first).to_be_visible()
    await wheel(page, ".window-list", 4000)
    review_row, review_top = await seen_top(page, ".window-list", "article.file-diff")
    in_review = f'article.file-diff[aria-label="{review_row}"]'

    await slowed(page, slower)
    await page.go_back()
    await is_idle(page)
    await is_at(page, in_chat, chat_top)
    await expect(panel.get_by_role("heading", name="part03.txt")).to_be_visible()

    await page.go_forward()
    await is_at(page, in_review, review_top)

    # Who follows a link begins anew, at the end and at the first file.
    await page.get_by_role("link", name="To the chat").first.click()
    await is_idle(page)
    await expect(log(page).get_by_text("The last words, part 39.")).to_be_in_viewport()
    await expect(panel).to_have_count(0)


async def test_a_page_that_is_loaded_again_is_where_it_was_read(
    page: Page, server: LiveServer, fake: FakeModels
) -> None:
    """UI-16, UI-26: place, open file and ticks are found, and whoever moves the list is not moved back."""
    conversation = await made(server, fake)
    await page.goto(f"/c/{conversation}")
    await is_idle(page)
    await page.get_by_role("button", name="Files", exact=True).click()
    panel = page.get_by_role("complementary", name="Files")
    await panel.get_by_role("button", name="part03.txt").click()
    await expect(panel.get_by_role("heading", name="part03.txt")).to_be_visible()
    await wheel(page, "[data-virtuoso-scroller]", -2700)
    row, top = await seen_top(page, "[data-virtuoso-scroller]", "[role=log] .prose p")
    in_chat = f'[role=log] .prose p:text-is("{row}")'

    # What stands beside the chat takes its room only when it is there.
    may_come = asyncio.Event()

    async def late(route: Route) -> None:
        await may_come.wait()
        await route.continue_()

    await page.route(re.compile(r"/assets/panel-"), late)
    await page.reload()
    await is_idle(page)
    await expect(page.locator(in_chat)).to_be_visible()
    may_come.set()
    await expect(panel.get_by_role("heading", name="part03.txt")).to_be_visible()
    await is_at(page, in_chat, top)

    await wheel(page, "[data-virtuoso-scroller]", 400)
    row, top = await seen_top(page, "[data-virtuoso-scroller]", "[role=log] .prose p")
    await page.get_by_role("button", name="Files", exact=True).click()
    await expect(panel).to_have_count(0)
    in_chat = f'[role=log] .prose p:text-is("{row}")'
    await page.reload()
    await is_idle(page)
    await expect(page.locator(in_chat)).to_be_visible()
    await expect(panel).to_have_count(0)

    # Who speaks sees it, wherever they read.
    fake.script({"text": "Gladly."})
    await say(page, "Thank you")
    await expect(log(page).get_by_text("Gladly.")).to_be_in_viewport()


async def test_a_place_is_found_however_slowly_the_history_comes(
    page: Page, server: LiveServer, fake: FakeModels
) -> None:
    """The page has the history when its newest record is there, not when the connection is."""
    conversation = await made(server, fake)
    await page.goto(f"/c/{conversation}")
    await is_idle(page)
    await wheel(page, "[data-virtuoso-scroller]", -2700)
    row, top = await seen_top(page, "[data-virtuoso-scroller]", "[role=log] .prose p")
    may_come, passed, kept = asyncio.Event(), 0, list[tuple[WebSocketRoute, str | bytes]]()

    async def piecemeal(socket: WebSocketRoute) -> None:
        def take(piece: str | bytes) -> None:
            nonlocal passed
            passed += 1
            if passed > 3 and not may_come.is_set():  # the greeting and the first records
                kept.append((socket, piece))
            else:
                socket.send(piece)

        socket.connect_to_server().on_message(take)

    await page.route_web_socket(re.compile(r"/ws\?"), piecemeal)
    await page.reload()
    async with asyncio.timeout(HANG_S):
        while len(kept) < 3:
            await asyncio.sleep(0.1)
    await expect(page.locator("[data-ready=false]")).to_be_visible()
    may_come.set()
    for socket, piece in kept:
        socket.send(piece)
    await is_idle(page)
    await is_at(page, f'[role=log] .prose p:text-is("{row}")', top)


@pytest.mark.parametrize("by", [-1000, -1250, -1400])
async def test_a_list_that_was_come_back_to_is_as_tall_as_it_was(
    page: Page, server: LiveServer, fake: FakeModels, by: int
) -> None:
    """Rows whose heights were guessed out of sight had others each time, and let the list be laid out without end."""
    conversation = await made(server, fake)
    await page.goto(f"/c/{conversation}")
    await is_idle(page)
    scroller = page.locator("[data-virtuoso-scroller]")
    row = ("[data-virtuoso-scroller]", "[role=log] .prose p")
    await seen_top(page, *row)
    await wheel(page, row[0], by)
    await seen_top(page, *row)
    height = await scroller.evaluate("list => list.scrollHeight")
    await page.reload()
    await is_idle(page)
    await seen_top(page, *row)
    assert await scroller.evaluate("list => list.scrollHeight") == height


async def test_the_ticks_of_a_review_outlive_it(page: Page, server: LiveServer, fake: FakeModels) -> None:
    """UI-27, UI-88: back and forward, the way over the chat, and a reload leave chosen and seen as they were."""
    conversation = await made(server, fake)
    await page.goto(f"/c/{conversation}/diff")
    summary = page.get_by_test_id("land-summary")
    await expect(summary).to_contain_text("30 of 30 files")
    await page.get_by_role("checkbox", name="Accept part01.txt").first.uncheck()
    await page.get_by_role("checkbox", name="Viewed part00.txt").check()
    await expect(summary).to_contain_text("29 of 30 files")

    async def is_as_left() -> None:
        await expect(summary).to_contain_text("29 of 30 files")
        await expect(page.get_by_role("checkbox", name="Accept part01.txt").first).not_to_be_checked()
        await expect(page.get_by_role("checkbox", name="Viewed part00.txt")).to_be_checked()

    await page.get_by_role("link", name="To the chat").first.click()
    await is_idle(page)
    await page.go_back()
    await is_as_left()
    await page.go_forward()
    await is_idle(page)
    await page.get_by_role("link", name="Changes").first.click()
    await is_as_left()
    await page.reload()
    await is_as_left()
