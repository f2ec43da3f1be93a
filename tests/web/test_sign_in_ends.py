"""A sign-in that ends while somebody works: in the middle of a turn, in another tab, for somebody else (UI-38, UI-94).

Here: the page's part. Not here: who may come in (tests/server/access/).
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser, BrowserContext, Page, expect
from support.fake_models import FakeModels
from support.live_server import LiveServer, live_server
from support.patience import HANG_S, patience
from support.web_actions import is_idle, log, say

from bowerbird.store.rows.tokens import make_token, revoke

pytestmark = [pytest.mark.timeout(patience(60)), pytest.mark.usefixtures("built_ui")]

WORDS = "".join(f"word{n} " for n in range(40))
Made = Callable[..., Awaitable[tuple[Any, str]]]


@asynccontextmanager
async def guarded(
    directory: Path, fake: FakeModels, browser: Browser
) -> AsyncIterator[tuple[LiveServer, BrowserContext]]:
    """A server that wants tokens, and a browser that has none."""
    async with live_server(directory, fake, server__auth="token") as server:
        context = await browser.new_context(base_url=server.address)
        context.set_default_timeout(HANG_S * 1000)
        yield server, context
        await context.close()


def maker(server: LiveServer) -> Made:
    async def made(name: str, user: str = "ann") -> tuple[Any, str]:
        return await server.context.store.write(lambda c: make_token(c, name, "user", user=user), flush=True)

    return made


async def end(server: LiveServer, row: Any) -> None:
    await server.context.store.write(lambda c: revoke(c, row.token_id), flush=True)


async def sign_in(page: Page, secret: str) -> None:
    await page.get_by_label("Token").fill(secret)
    await page.get_by_role("button", name="Sign in").click()


async def chat(server: LiveServer, secret: str, **flags: Any) -> str:
    return await server.conversation(headers={"Authorization": f"Bearer {secret}"}, **flags)


async def test_a_sign_in_that_ends_in_a_turn_is_said_and_the_same_turn_goes_on(
    tmp_path: Path, fake: FakeModels, browser: Browser
) -> None:
    """UI-38: typed words and the page stay as they were; while nobody is in, nothing is asked for."""
    fake.script({"text": WORDS, "deltas": 40, "gap_s": 0.1})
    async with guarded(tmp_path, fake, browser) as (server, context):
        made = maker(server)
        (row, secret), (_, second) = await made("one"), await made("two")
        page = await context.new_page()
        await page.goto(f"/c/{await chat(server, secret)}")
        await sign_in(page, secret)
        await is_idle(page)
        await say(page, "Count")
        await expect(log(page).get_by_text("word1 ")).to_be_visible()
        await page.get_by_label("Your message").fill("half a thou")
        await page.evaluate("window.sameDocument = true")
        await end(server, row)
        await expect(page.get_by_text("Your sign-in has ended.")).to_be_visible()
        await page.keyboard.press("Escape")
        await page.keyboard.press("Escape")
        await page.get_by_label("Token").fill("bb_wrong")
        await page.get_by_role("button", name="Sign in").click()
        await expect(page.get_by_role("alert")).to_contain_text("This token is not valid")
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        await sign_in(page, second)
        await expect(page.get_by_text("Your sign-in has ended.")).to_have_count(0)
        await expect(log(page).get_by_text("word38 word39")).to_be_visible()
        await is_idle(page)
        await expect(page.get_by_label("Your message")).to_have_value("half a thou")
        assert await page.evaluate("window.sameDocument") is True
        assert await log(page).get_by_text("word0 ").count() == 1
        assert asked[0].endswith("/api/auth/me")
        assert fake.request_count == 1


async def test_an_open_dialog_does_not_lock_the_sign_in_and_is_there_afterwards(
    tmp_path: Path, fake: FakeModels, browser: Browser
) -> None:
    """UI-38: what stands over the page stays below the sign-in, with what was typed in it."""
    async with guarded(tmp_path, fake, browser) as (server, context):
        made = maker(server)
        (row, secret), (_, second) = await made("one"), await made("two")
        page = await context.new_page()
        await page.goto("/dev/skills")
        await sign_in(page, secret)
        await page.get_by_role("button", name="New skill").click()
        await page.get_by_role("dialog").get_by_label("Name").fill("half-a-na")
        await end(server, row)
        await expect(page.get_by_text("Your sign-in has ended.")).to_be_visible()
        await sign_in(page, second)
        await expect(page.get_by_label("Token")).to_have_count(0)
        await expect(page.get_by_role("dialog").get_by_label("Name")).to_have_value("half-a-na")


async def test_whoever_signs_in_or_out_does_so_in_every_tab(
    tmp_path: Path, fake: FakeModels, browser: Browser
) -> None:
    """UI-94: a tab that waits is let in with another, and none stays behind when one leaves."""
    async with guarded(tmp_path, fake, browser) as (server, context):
        _, secret = await maker(server)("one")
        first, second = await context.new_page(), await context.new_page()
        for page in (first, second):
            await page.goto("/")
            await expect(page.get_by_label("Token")).to_be_visible()
        await sign_in(first, secret)
        await expect(second.get_by_label("Your message")).to_be_visible()
        await second.get_by_label("Your message").fill("not yet sent")
        await first.get_by_role("button", name="Signed in as").click()
        await first.get_by_role("menuitem", name="Sign out").click()
        await expect(second.get_by_text("You signed out in another tab.")).to_be_visible()
        await expect(second.get_by_label("Your message")).to_have_count(0)
        await sign_in(second, secret)
        await expect(second.get_by_label("Your message")).to_have_value("not yet sent")
        await expect(first.get_by_label("Your message")).to_be_visible()


async def test_somebody_else_who_signs_in_sees_nothing_of_the_one_before(
    tmp_path: Path, fake: FakeModels, browser: Browser
) -> None:
    """UI-38: the page is another's; it begins anew."""
    fake.script({"text": "Only for Ann."})
    async with guarded(tmp_path, fake, browser) as (server, context):
        made = maker(server)
        (row, secret), (_, bobs) = await made("one"), await made("two", "bob")
        page = await context.new_page()
        await page.goto(f"/c/{await chat(server, secret)}")
        await sign_in(page, secret)
        await is_idle(page)
        await say(page, "Hello")
        await expect(log(page).get_by_text("Only for Ann.")).to_be_visible()
        await is_idle(page)
        await end(server, row)
        await expect(page.get_by_text("Your sign-in has ended.")).to_be_visible()
        await sign_in(page, bobs)
        await expect(page.get_by_role("heading", name="This chat is not here")).to_be_visible()
        await expect(page.get_by_text("Only for Ann.")).to_have_count(0)


async def test_a_server_that_is_away_is_no_wrong_token(
    tmp_path: Path, fake: FakeModels, browser: Browser
) -> None:
    """UI-38: what cannot be asked is not said to be refused."""
    async with guarded(tmp_path, fake, browser) as (server, context):
        _, secret = await maker(server)("one")
        page = await context.new_page()
        await page.goto("/")
        await expect(page.get_by_label("Token")).to_be_visible()
        await context.set_offline(True)
        await sign_in(page, secret)
        await expect(page.get_by_role("alert")).to_contain_text("cannot be reached")
        await context.set_offline(False)
        await page.get_by_role("button", name="Sign in").click()
        await expect(page.get_by_label("Your message")).to_be_visible()


DAYS_OFF = "const real = Date.now; Date.now = () => real.call(Date) - 49 * 3600e3;"


async def test_a_device_whose_clock_is_hours_off_shows_the_servers_time(
    page: Page, server: LiveServer, fake: FakeModels
) -> None:
    """UI-22, UI-39: a limit was shown as days longer, and what was just done as days ahead."""
    fake.script(
        {"tools": [{"name": "write_file", "input": {"path": "/a", "content": "a"}}]}, {"text": "Yes."}
    )
    await server.conversation(title="Done")
    await page.add_init_script(DAYS_OFF)
    asking = await server.conversation(title="Asking", enable_approval=True)
    await server.http.post(f"/api/conversations/{asking}/messages", json={"content": "Write"})
    await page.goto(f"/c/{asking}")
    await expect(page.get_by_role("timer")).to_be_visible()
    await expect(page.get_by_role("timer")).to_have_text("7 days left to answer")
    row = page.get_by_role("navigation", name="Sessions").get_by_role("link", name="Done")
    await expect(row).to_contain_text("now")
