"""Back and forward find chat and review as they were left: the place that was read, the open file (UI-16, UI-26)."""

import asyncio

import pytest
from playwright.async_api import Page, expect
from support.fake_models import FakeModels
from support.live_server import LiveServer
from support.patience import HANG_S, patience
from support.web_actions import is_idle, log

pytestmark = pytest.mark.timeout(patience(60))

PARAGRAPHS = "\n\n".join(f"Paragraph {number} of the answer." for number in range(80))
FILES = 30
TOP = "(one) => Math.round(one.getBoundingClientRect().top)"


async def made(server: LiveServer, fake: FakeModels) -> str:
    """A conversation with a long answer in the middle and thirty new files."""
    files = [
        {"name": "write_file", "input": {"path": f"part{number:02}.txt", "content": "line\n" * 40}}
        for number in range(FILES)
    ]
    fake.script({"tools": files}, {"text": PARAGRAPHS}, {"text": "The last words.\n\n" * 40})
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


async def test_back_and_forward_find_the_place_that_was_read_and_the_open_file(
    page: Page, server: LiveServer, fake: FakeModels
) -> None:
    """UI-16, UI-26, UI-33."""
    conversation = await made(server, fake)
    await page.goto(f"/c/{conversation}")
    await is_idle(page)
    await expect(log(page).get_by_text("The last words.").last).to_be_in_viewport()

    # The chat: up to the middle of the long answer, and a file beside it.
    await page.get_by_role("button", name="Files", exact=True).click()
    panel = page.get_by_role("complementary", name="Files")
    await panel.get_by_role("button", name="part03.txt").click()
    await expect(panel.get_by_role("heading", name="part03.txt")).to_be_visible()
    await wheel(page, "[data-virtuoso-scroller]", -2700)

    # The review: some way down.
    await page.get_by_role("link", name="Changes").first.click()
    diffs = page.locator(".window-list")
    await expect(diffs.locator(".diff-line").first).to_be_visible()
    await wheel(page, ".window-list", 4000)
    review_row, review_top = await seen_top(page, ".window-list", "article.file-diff")
    in_review = f'article.file-diff[aria-label="{review_row}"]'

    await page.go_back()
    await is_idle(page)
    await expect(panel.get_by_role("heading", name="part03.txt")).to_be_visible()

    await page.go_forward()
    await is_at(page, in_review, review_top)

    # Who follows a link begins anew, at the end and at the first file.
    await page.get_by_role("link", name="To the chat").first.click()
    await is_idle(page)
    await expect(log(page).get_by_text("The last words.").last).to_be_in_viewport()
    await expect(panel).to_have_count(0)
