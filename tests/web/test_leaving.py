"""What lies over the page on a phone is left by Escape, as by the phone's Back, wherever the focus is (UI-95, UI-19).

Back itself is Android's: browsers ask the same watcher for both, and only the key can be pressed here.
"""

import pytest
from playwright.async_api import Page, expect
from support.fake_models import FakeModels
from support.patience import patience
from support.web_actions import is_idle, say

pytestmark = pytest.mark.timeout(patience(60))

# A browser that has no watcher has the key alone.
WITHOUT = "delete window.CloseWatcher"


@pytest.mark.parametrize("asks", ["watcher", "key"])
async def test_each_sheet_is_left_by_escape_the_topmost_first(
    page: Page, fake: FakeModels, asks: str
) -> None:
    """Files, a file, the sessions and looking back stayed, unless the focus happened to be inside."""
    await page.set_viewport_size({"width": 390, "height": 844})
    if asks == "key":
        await page.add_init_script(WITHOUT)
    write = {"name": "write_file", "input": {"path": "list.md", "content": "milk\n"}}
    fake.script({"tools": [write]}, {"text": "It is written."})
    await page.goto("/")
    await say(page, "write a list")
    await is_idle(page)
    files = page.get_by_role("complementary", name="Files")
    await page.get_by_role("button", name="Files", exact=True).click()
    await files.get_by_role("button", name="list.md").click()
    await expect(files.get_by_role("heading", name="list.md")).to_be_visible()
    await page.evaluate("document.activeElement.blur()")
    await page.keyboard.press("Escape")
    await expect(files.get_by_role("heading", name="Files")).to_be_visible()
    await page.evaluate("document.activeElement.blur()")
    await page.keyboard.press("Escape")
    await expect(files).to_have_count(0)

    sessions = page.get_by_role("complementary", name="Sessions")
    await page.get_by_role("button", name="Show or hide sessions").click()
    await expect(sessions).to_be_visible()
    await page.keyboard.press("Escape")
    await expect(sessions).to_have_count(0)

    await page.get_by_role("button", name="Show or hide sessions").click()
    await sessions.get_by_role("button", name="Actions for").first.click()
    await page.get_by_role("menuitem", name="Rename").click()
    await expect(page.get_by_role("dialog")).to_be_visible()
    await page.keyboard.press("Escape")
    await expect(page.get_by_role("dialog")).to_have_count(0)
    await expect(sessions).to_be_visible()  # one key leaves one thing
    await page.keyboard.press("Escape")
    await expect(sessions).to_have_count(0)

    back = page.get_by_role("group", name="Look back")
    await page.get_by_role("button", name="Look back").click()
    await back.get_by_role("button", name="Files then").click()
    await expect(files).to_be_visible()
    await page.evaluate("document.activeElement.blur()")
    await page.keyboard.press("Escape")
    await expect(files).to_have_count(0)
    await expect(back).to_be_visible()
    await page.keyboard.press("Escape")
    await expect(back).to_have_count(0)

    await page.get_by_role("link", name="Changes").first.click()
    tree = page.get_by_role("complementary", name="Changed files")
    await page.get_by_role("button", name="Changed files").click()
    await expect(tree).to_be_visible()
    await page.evaluate("document.activeElement.blur()")
    await page.keyboard.press("Escape")
    await expect(tree).not_to_be_visible()
