"""Two people land the same conversation at once: each is told what happened, nothing lands twice, no text is lost."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser, Page, Route, expect
from support.fake_models import FakeModels
from support.live_server import LiveServer
from support.patience import HANG_S, patience

pytestmark = pytest.mark.timeout(patience(60))

LINES = "".join(f"line {number}\n" for number in range(1, 21))


def edit(path: str, old: str, new: str) -> dict[str, Any]:
    return {"name": "edit_file", "input": {"path": path, "old": old, "new": new}}


def write(path: str, content: str) -> dict[str, Any]:
    return {"name": "write_file", "input": {"path": path, "content": content}}


async def worked(server: LiveServer, fake: FakeModels, *tools: dict[str, Any]) -> str:
    """A conversation whose agent has called `tools`; its id."""
    fake.script({"tools": list(tools)}, {"text": "Done."})
    conversation = await server.conversation()
    done = await server.http.post(
        f"/api/conversations/{conversation}/messages", params={"wait": 60}, json={"content": "Do it"}
    )
    assert done.status_code == 200, done.text
    return conversation


async def two(browser: Browser, server: LiveServer, path: str) -> list[Page]:
    """Two people's browsers at a place; neither's landing leaves before both have asked for it."""
    both = asyncio.Barrier(2)

    async def together(route: Route) -> None:
        async with asyncio.timeout(HANG_S):
            await both.wait()
        await route.continue_()

    pages = [await (await browser.new_context(base_url=server.address)).new_page() for _ in range(2)]
    for page in pages:
        page.set_default_timeout(HANG_S * 1000)
        await page.route("**/land", together)
        await page.goto(path)
    return pages


async def press_both(pages: list[Page], name: str) -> tuple[Page, Page]:
    """Press a button in both at once; the one whose landing was done, and the other."""
    buttons = [page.get_by_role("button", name=name) for page in pages]
    for button in buttons:
        await expect(button).to_be_enabled()
    answers = [asyncio.ensure_future(page.wait_for_event("response", is_landing)) for page in pages]
    await asyncio.gather(*(button.click() for button in buttons))
    states = [(await answer).status for answer in answers]
    assert sorted(states) == [200, 409]
    first, second = pages if states[0] == 200 else reversed(pages)
    return first, second


def is_landing(response: Any) -> bool:
    return response.url.endswith("/land")


async def landings(server: LiveServer) -> int:
    return len((await server.http.get("/api/landings")).json())


async def test_both_press_land_and_it_lands_once(
    browser: Browser, server: LiveServer, fake: FakeModels, workspace: Path
) -> None:
    """UI-30, UI-67: the second is told that it landed, by whom, and has nothing left to press."""
    conversation = await worked(server, fake, write("/b.txt", "b\n"), write("/c.txt", "c\n"))
    pages = await two(browser, server, f"/dev/c/{conversation}/diff")
    first, second = await press_both(pages, "Land 2 files")
    await expect(first.get_by_test_id("outcome")).to_contain_text("Landed 2 files.")
    await expect(second.get_by_test_id("elsewhere")).to_contain_text(
        "2 files landed meanwhile, by somebody in another window."
    )
    await expect(second.get_by_text("Nothing to review")).to_be_visible()
    assert (await landings(server), (workspace / "c.txt").read_text()) == (1, "c\n")


async def test_both_keep_in_the_chat_and_the_second_is_told_in_plain_words(
    browser: Browser, server: LiveServer, fake: FakeModels
) -> None:
    """UI-14, faces finding C5: no names of records, and no card that goes away without a word."""
    conversation = await worked(server, fake, write("/b.txt", "b\n"), write("/c.txt", "c\n"))
    pages = await two(browser, server, f"/c/{conversation}")
    first, second = await press_both(pages, "Keep 2 files")
    await expect(second.get_by_role("status").filter(has_text="kept in another window")).to_be_visible()
    for page in (first, second):
        await expect(page.get_by_text("2 files are in your folder now.")).to_be_visible()
        assert await page.get_by_text("l_0").count() == 0
    await expect(first.get_by_role("button", name="Undo")).to_be_visible()
    await expect(second.get_by_role("button", name="Keep")).to_have_count(0)
    assert await landings(server) == 1


async def test_a_conflict_that_another_decides_first_keeps_what_the_second_wrote(
    browser: Browser, server: LiveServer, fake: FakeModels, workspace: Path
) -> None:
    """UI-89: the text of the second is shown to them; the file holds what the first decided."""
    (workspace / "a.txt").write_text(LINES)
    conversation = await worked(server, fake, edit("/a.txt", "line 5\n", "agent 5\n"))
    (workspace / "a.txt").write_text(LINES.replace("line 5\n", "mine 5\n"))
    pages = await two(browser, server, f"/dev/c/{conversation}/diff")
    for number, page in enumerate(pages):
        await page.get_by_role("button", name="Decide").click()
        dialog = page.get_by_role("dialog")
        await dialog.get_by_role("radio", name="Write it myself").check()
        await dialog.get_by_role("textbox", name="Your text").fill(f"decided {number}\n")
    _, second = await press_both(pages, "Land this file")
    lost = pages.index(second)
    dialog = second.get_by_role("dialog")
    await expect(dialog).to_contain_text("needs no decision any more")
    await expect(dialog.get_by_text(f"decided {lost}")).to_be_visible()
    await dialog.get_by_role("button", name="Close").last.click()
    await expect(second.get_by_test_id("elsewhere")).to_contain_text("1 file landed meanwhile")
    assert (workspace / "a.txt").read_text() == LINES.replace("line 5\n", f"decided {1 - lost}\n")


async def test_a_file_that_changes_while_it_is_decided_keeps_the_decisions(
    browser: Browser, server: LiveServer, fake: FakeModels, workspace: Path
) -> None:
    """UI-89, UI-90: places that are the same stay decided; a dialog that was closed comes back as it was."""
    (workspace / "a.txt").write_text(LINES)
    conversation = await worked(
        server, fake, edit("/a.txt", "line 5\n", "agent 5\n"), edit("/a.txt", "line 15\n", "agent 15\n")
    )
    mine = LINES.replace("line 5\n", "mine 5\n").replace("line 15\n", "mine 15\n")
    (workspace / "a.txt").write_text(mine)
    page = await (await browser.new_context(base_url=server.address)).new_page()
    await page.goto(f"/dev/c/{conversation}/diff")
    decide = page.get_by_role("button", name="Decide")
    await decide.click()
    dialog = page.get_by_role("dialog")
    first = dialog.get_by_role("group", name="Place 1 of 2")
    await first.get_by_role("radio", name="Write it myself").check()
    await first.get_by_role("textbox").fill("both of us\n")
    await dialog.get_by_role("group", name="Place 2 of 2").get_by_role("radio", name="Yours now").check()
    await page.keyboard.press("Escape")
    await decide.click()
    await expect(first.get_by_role("textbox")).to_have_value("both of us\n")

    (workspace / "a.txt").write_text(mine.replace("mine 15\n", "mine again 15\n"))
    await dialog.get_by_role("button", name="Land this file").click()
    await expect(dialog).to_contain_text("The file changed while you decided.")
    await expect(first.get_by_role("textbox")).to_have_value("both of us\n")
    await dialog.get_by_role("group", name="Place 2 of 2").get_by_role("radio", name="Yours now").check()
    await dialog.get_by_role("button", name="Land this file").click()
    await expect(page.get_by_test_id("outcome")).to_contain_text("Landed 1 file.")
    landed = (workspace / "a.txt").read_text()
    assert "both of us\n" in landed and "mine again 15\n" in landed
