"""What cannot be drawn takes nothing with it: one message, one page, never the whole window (UI-96, security 10)."""

import json

import pytest
from playwright.async_api import Page, WebSocketRoute, expect
from support.fake_models import FakeModels
from support.live_server import LiveServer
from support.patience import patience
from support.web_actions import log

pytestmark = pytest.mark.timeout(patience(60))

NO_ADDRESSES = (
    "Look: ![boom](http://) and ![bang](https://[) and [a link](http://[::) and ![pix](http:// x)\n\nThe end."
)


@pytest.mark.parametrize("prefix", ["", "/dev"])
async def test_an_address_that_is_none_leaves_the_conversation_readable(
    page: Page, server: LiveServer, fake: FakeModels, prefix: str
) -> None:
    """security 10: `![boom](http://)` made the page white for good, reload included."""
    fake.script({"text": NO_ADDRESSES})
    conversation = await server.conversation()
    await server.http.post(
        f"/api/conversations/{conversation}/messages", params={"wait": 60}, json={"content": "Look"}
    )
    wrong: list[str] = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    for _ in range(2):
        await page.goto(f"{prefix}/c/{conversation}")
        await expect(log(page).get_by_text("The end.")).to_be_visible()
        await expect(log(page).get_by_text("[boom]")).to_be_visible()
        await expect(page.get_by_role("textbox", name="Message")).to_be_visible()
    assert wrong == []


async def test_a_message_that_cannot_be_drawn_is_only_itself_missing(
    page: Page, server: LiveServer, fake: FakeModels
) -> None:
    """security 10: the boundary of one message."""
    fake.script({"text": "All is well."})
    conversation = await server.conversation()

    def between(socket: WebSocketRoute) -> None:
        upstream = socket.connect_to_server()

        def pass_on(frame: str | bytes) -> None:
            socket.send(frame)
            if '"turn_started"' in str(frame):
                socket.send(json.dumps({"type": "plan_ready", "plan": {"not": "text"}, "request_id": "r_x"}))

        upstream.on_message(pass_on)

    await page.route_web_socket("**/ws*", between)
    await page.goto(f"/c/{conversation}")
    await page.get_by_role("textbox", name="Message").fill("hello")
    await page.keyboard.press("Enter")
    await expect(log(page).get_by_text("This part cannot be shown.")).to_be_visible()
    await expect(log(page).get_by_text("All is well.")).to_be_visible()


async def test_a_page_that_cannot_be_drawn_leaves_the_way_out(page: Page, server: LiveServer) -> None:
    """security 10: the boundary of one page; the sidebar and the other pages go on."""
    conversation = await server.conversation()
    await page.route("**/api/landings*", lambda route: route.fulfill(json=[None]))
    await page.goto("/landings")
    await expect(page.get_by_text("This page cannot be shown.")).to_be_visible()
    await page.get_by_role("link", name="Go to the start page").click()
    await expect(page.get_by_role("heading", name="What shall we work on?")).to_be_visible()
    await page.goto(f"/c/{conversation}")
    await expect(page.get_by_role("textbox", name="Message")).to_be_visible()
