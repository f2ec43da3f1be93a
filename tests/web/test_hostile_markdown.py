"""Markdown that is made to be slow: the page goes on, and what is not laid out can be read (UI-17, UI-92)."""

import pytest
from playwright.async_api import Page, expect
from support.fake_models import FakeModels
from support.patience import patience
from support.web_actions import is_idle, log, say

pytestmark = pytest.mark.timeout(patience(90))

LINKS = 10_000
PARAGRAPHS = 3000


async def test_ten_thousand_links_and_thousands_of_blocks_leave_the_page_usable(
    page: Page, fake: FakeModels
) -> None:
    """UI-92: what is laid out is bounded; the rest is there as text, a piece at a time."""
    links = " ".join(f"[link {number}](https://a.example/{number})" for number in range(LINKS))
    many = "\n\n".join(f"Paragraph {number}." for number in range(PARAGRAPHS))
    fake.script(
        {"text": f"{'> ' * 10_000}deep\n\n{links}\n\nThe end of the links.", "deltas": 40, "gap_s": 0.01},
        {"text": many},
    )
    await page.goto("/")
    await say(page, "Go")
    await is_idle(page)
    said = log(page)
    await expect(said.get_by_text("The end of the links.")).to_be_visible()
    assert await said.locator("a").count() < 2000
    assert await said.locator("blockquote").count() == 0
    await expect(said.get_by_text("Shown as plain text")).to_have_count(2)
    shown = said.locator("pre.as-written").last
    before = len(await shown.inner_text())
    await said.get_by_role("button", name="Show more").last.click()
    assert len(await shown.inner_text()) > before

    await say(page, "More")
    await is_idle(page)
    # All of them come, and the end is what is read.
    await expect(said.get_by_text(f"Paragraph {PARAGRAPHS - 1}.", exact=True)).to_be_in_viewport()
