"""Pages where there is more than a thousand of something: all of it can be reached (UI-23)."""

import pytest
from playwright.async_api import Page, expect
from sqlalchemy import Connection
from support.live_server import LiveServer
from support.patience import patience

from bowerbird.core.ids import new_thread_id
from bowerbird.store.rows.sessions import SessionRow, insert_session

pytestmark = pytest.mark.timeout(patience(90))

MANY = 1_010


async def test_all_of_many_sessions_are_listed_and_said_to_be_there(page: Page, server: LiveServer) -> None:
    """The overview ended after 60 cards, the list after 1,000 rows, both without a word."""

    def insert(connection: Connection) -> None:
        for number in range(MANY):
            moment = f"2026-01-01T00:{number // 60:02}:{number % 60:02}.000000+00:00"
            row = SessionRow(
                thread_id=new_thread_id(),
                kind="web",
                title=f"number {number}.",
                created_at=moment,
                updated_at=moment,
            )
            insert_session(connection, row)

    await server.context.store.write(insert)
    await page.goto("/dev")
    list_ = page.get_by_role("navigation", name="Sessions").get_by_role("link")
    cards = page.get_by_role("main").get_by_role("link", name="number")
    await expect(list_).to_have_count(MANY)
    await expect(list_.last).to_contain_text("number 0.")
    await expect(cards).to_have_count(60)
    for left in (950, 650, 350, 50):
        await page.get_by_role("button", name=f"Show more ({left} left)").click()
    await expect(cards).to_have_count(MANY)
    await expect(cards.last).to_contain_text("number 0.")


async def test_all_of_many_landings_are_listed(page: Page, server: LiveServer) -> None:
    """The list ended after 100."""
    for number in range(103):
        made = await server.http.post("/api/workspace/upload", files={"files": (f"{number}.txt", b"new\n")})
        assert made.status_code == 200, made.text
    await page.goto("/dev/landings")
    await expect(page.locator(".landings > li")).to_have_count(60)
    await page.get_by_role("button", name="Show more (43 left)").click()
    await expect(page.locator(".landings > li")).to_have_count(103)
