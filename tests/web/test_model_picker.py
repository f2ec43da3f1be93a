"""The model below the composer: chosen before a chat begins, and in it (UI-75)."""

import pytest
from playwright.async_api import Page, expect
from support.fake_models import FakeModels
from support.live_server import LiveServer
from support.patience import patience
from support.web_actions import is_idle, log, say, serious_findings

pytestmark = pytest.mark.timeout(patience(60))


async def test_the_model_of_a_new_chat_and_of_one_that_runs_is_chosen_below_the_box(
    page: Page, server: LiveServer, fake: FakeModels
) -> None:
    """UI-75: what is configured, with price and window; the next request goes to what was chosen."""
    fake.script({"text": "First."}, {"text": "Second."})
    other = "anthropic:claude-haiku-4-5"
    usual = server.context.offers.models()[0].name
    await page.goto("/")
    picker = page.get_by_role("combobox", name="Model of this chat")
    await picker.focus()
    await expect(picker.locator("option").filter(has_text="in, $")).not_to_have_count(0)
    await picker.select_option(usual)
    await say(page, "one")
    await expect(log(page).get_by_text("First.")).to_be_visible()
    await is_idle(page)
    await expect(picker).to_have_value(usual)
    assert await serious_findings(page) == []
    conversation = page.url.rstrip("/").rpartition("/")[2]
    answer = await server.http.patch(f"/api/conversations/{conversation}", json={"model": other})
    assert answer.status_code == 200, answer.text
    await page.reload()
    await expect(picker).to_have_value(other)
    await picker.focus()
    await expect(picker.locator("option")).not_to_have_count(1)
    async with page.expect_response(lambda made: made.request.method == "PATCH"):
        await picker.select_option(usual)
    await say(page, "two")
    await expect(log(page).get_by_text("Second.")).to_be_visible()
    assert [body["model"] for body in fake.requests[-1:]] == [usual.partition(":")[2]]
