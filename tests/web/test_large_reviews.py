"""Reviews of shapes that are hard to draw, made by an agent on a real server (UI-26, UI-87, UI-88, UI-90)."""

import pytest
from playwright.async_api import Page, expect
from support.fake_models import FakeModels
from support.large_reviews import conflicts, long_line, made, many_files, many_lines, renames
from support.live_server import LiveServer
from support.patience import patience

pytestmark = pytest.mark.timeout(patience(90))

MOST_ELEMENTS = 4000


async def test_large_reviews_are_drawn_as_far_as_they_are_seen_and_say_what_cannot_land_at_once(
    page: Page, server: LiveServer, fake: FakeModels
) -> None:
    """UI-26, UI-87, UI-88: thousands of lines, a line of 1 MB, renames with edits, conflicts in many files."""
    at = {
        review.name: await made(server, fake, review)
        for review in (many_files(120), many_lines(20_000), long_line(1_000_000), renames(40), conflicts(20))
    }
    summary = page.get_by_test_id("land-summary")
    tree = page.get_by_role("complementary", name="Changed files")

    async def opened(name: str, words: str) -> None:
        await page.goto(f"/dev/c/{at[name]}/diff")
        await expect(summary).to_have_text(words)
        await expect(page.locator(".section-row").first).to_be_visible()
        assert await page.evaluate("document.querySelectorAll('*').length") < MOST_ELEMENTS, name

    await opened("many files", "120 of 120 files, 240 hunks")
    await opened("many lines", "1 of 1 file, 1 hunk")
    await expect(page.get_by_role("article")).to_contain_text("+20,000 −20,000")
    await page.get_by_role("button", name="Show it").click()
    await page.locator(".window-list").evaluate("list => { list.scrollTop = list.scrollHeight }")
    await expect(page.get_by_role("cell", name="+ 19999,two,993")).to_be_visible()
    await opened("long line", "0 of 1 file")
    await expect(page.get_by_role("article")).to_contain_text("from character 500,001")
    await opened("renames", "40 of 40 files, 40 hunks")
    first = page.get_by_role("article").first
    await expect(first).to_contain_text("moved/old/module_000.py")
    await expect(first.locator(".edit")).to_have_text(["plain", "changed"])
    await opened("conflicts", "0 of 20 files")
    await expect(tree).to_contain_text("20 files, each ticked by itself")
    await expect(tree.get_by_role("checkbox", name="All ")).to_have_count(0)


async def test_the_user_face_names_lines_and_both_ticks(
    page: Page, server: LiveServer, fake: FakeModels
) -> None:
    """UI-84, UI-88: no `@@`; which tick is a note and which one keeps is written beside it, on a phone by an eye."""
    conversation = await made(server, fake, many_files(1))
    await page.goto(f"/c/{conversation}/diff")
    file = page.get_by_role("article")
    await expect(file.locator(".hunk-head").first).to_contain_text("Lines 16 to 22")
    await expect(file.get_by_text("@@")).to_have_count(0)
    await expect(file.locator(".viewed")).to_have_text("Viewed")
    await expect(file.locator(".mark")).to_have_text("Keep")
    await page.set_viewport_size({"width": 390, "height": 800})
    await expect(file.locator(".viewed svg")).to_be_visible()
