"""A chat on paper: what is read, black on white, without what is pressed (web findings, minor)."""

import pytest
from playwright.async_api import Page, expect
from support.fake_models import FakeModels
from support.patience import patience
from support.web_actions import is_idle, log, say

pytestmark = pytest.mark.timeout(patience(60))


async def test_a_chat_is_printed_without_buttons_and_in_light(page: Page, fake: FakeModels) -> None:
    fake.script({"text": "To be read on paper."})
    await page.emulate_media(color_scheme="dark")
    await page.goto("/")
    await say(page, "Hello")
    await is_idle(page)
    await page.emulate_media(media="print", color_scheme="dark")
    await expect(page.locator("html")).to_have_attribute("data-theme", "light")
    await expect(log(page).get_by_text("To be read on paper.")).to_be_visible()
    await expect(page.get_by_label("Your message")).to_be_hidden()
    await expect(page.locator(".sidebar")).to_be_hidden()
    await page.emulate_media(media="screen", color_scheme="dark")
    await expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    await expect(page.get_by_label("Your message")).to_be_visible()


async def test_all_of_a_long_chat_is_printed(page: Page, fake: FakeModels) -> None:
    """UI-16: the list draws what is near the screen; paper shows the rest, too, and the place is kept."""
    text = "\n\n".join(f"Paragraph number {at} of this answer." for at in range(600))
    fake.script({"text": text})
    await page.goto("/")
    await say(page, "Hello")
    await is_idle(page)
    await expect(log(page).get_by_text("Paragraph number 599 ")).to_be_in_viewport()
    await page.evaluate(
        """() => addEventListener("beforeprint", () => {
          window.printed_ = document.querySelector(".transcript").textContent;
        })"""
    )
    paper = await page.pdf()
    assert paper.startswith(b"%PDF")
    printed = str(await page.evaluate("window.printed_"))
    assert [at for at in range(600) if f"Paragraph number {at} of" not in printed] == []
    assert paper.count(b"/Type /Page\n") + paper.count(b"/Type /Page ") > 5
    await expect(page.locator(".on-paper")).to_have_count(0)
    await expect(log(page).get_by_text("Paragraph number 599 ")).to_be_in_viewport()
