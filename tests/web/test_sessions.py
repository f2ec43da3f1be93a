"""The list of sessions: state, search, rename, delete and undo, fork, replay (UI-23, UI-24)."""

import pytest
from playwright.async_api import Page, expect
from support.fake_models import FakeModels
from support.live_server import LiveServer
from support.patience import patience
from support.web_actions import conversation_of, is_idle, log, say

pytestmark = pytest.mark.timeout(patience(60))


async def test_sessions_are_renamed_found_deleted_and_brought_back(
    page: Page, server: LiveServer, fake: FakeModels
) -> None:
    """UI-23."""
    fake.script({"text": "Yes."})
    for title in ("Apples", "Pears"):
        await server.conversation(title=title)
    await page.goto("/dev")
    list_ = page.get_by_role("navigation", name="Sessions")
    await list_.get_by_role("button", name="Actions for Apples").click()
    await page.get_by_role("menuitem", name="Rename").click()
    await page.get_by_label("Title").fill("Quinces")
    await page.get_by_role("button", name="Save").click()
    await expect(list_.get_by_text("Quinces")).to_be_visible()
    await page.get_by_label("Search sessions").fill("quin")
    await expect(list_.get_by_role("link")).to_have_count(1)
    await page.get_by_label("Search sessions").fill("")
    await list_.get_by_role("button", name="Actions for Pears").click()
    await page.get_by_role("menuitem", name="Delete").click()
    await expect(list_.get_by_text("Pears")).to_have_count(0)
    await page.get_by_role("button", name="Undo").click()
    await expect(list_.get_by_text("Pears")).to_be_visible()


async def test_sessions_are_found_by_what_was_said_in_them(
    page: Page, server: LiveServer, fake: FakeModels
) -> None:
    """UI-82: the search box looked at titles only."""
    fake.script({"text": "The **Marmelade** is on the shelf."}, {"text": "Yes."})
    for title, said in (("Apples", "Where is it?"), ("Pears", "Are they ripe?")):
        conversation = await server.conversation(title=title)
        sent = await server.http.post(
            f"/api/conversations/{conversation}/messages", params={"wait": 60}, json={"content": said}
        )
        assert sent.status_code == 200
    await page.goto("/dev")
    list_ = page.get_by_role("navigation", name="Sessions")
    await expect(list_.get_by_role("link")).to_have_count(2)
    await page.get_by_label("Search sessions").fill("MARMELADE shelf")
    await expect(list_.get_by_role("link")).to_have_count(1)
    await expect(list_.get_by_role("link")).to_contain_text("The **Marmelade** is on the shelf.")
    await expect(list_.get_by_role("link")).to_contain_text("Apples")
    await page.get_by_label("Search sessions").fill("marmelade pears")
    await expect(list_.get_by_text("Nothing found")).to_be_visible()


async def test_a_session_that_waits_stands_first_and_in_the_title(
    page: Page, server: LiveServer, fake: FakeModels
) -> None:
    """UI-23: one waiting for an answer is seen from anywhere."""
    fake.script(
        {"tools": [{"name": "write_file", "input": {"path": "/a", "content": "a"}}]}, {"text": "Thanks."}
    )
    waiting = await server.conversation(enable_approval=True, title="Waiting")
    await server.conversation(title="Newer")
    await server.http.post(f"/api/conversations/{waiting}/messages", json={"content": "Write"})
    await page.goto("/dev")
    list_ = page.get_by_role("navigation", name="Sessions")
    await expect(page).to_have_title("(1) Bowerbird")
    await expect(list_.get_by_role("link").first).to_contain_text("Waiting")
    await expect(list_.get_by_text("waits for you", exact=True)).to_be_visible()
    (question,) = (await server.http.get("/api/approvals")).json()
    await server.http.post(f"/api/approvals/{question['request_id']}", json={"decision": "deny"})
    await expect(page).to_have_title("Bowerbird")


async def test_a_finished_session_is_replayed_by_turn_and_forked_from_there(
    page: Page, fake: FakeModels
) -> None:
    """UI-24."""
    note = {"name": "write_file", "input": {"path": "/one.txt", "content": "as it was first\n"}}
    more = [
        {"name": "write_file", "input": {"path": "/two.txt", "content": "two\n"}},
        {"name": "edit_file", "input": {"path": "/one.txt", "old": "first", "new": "later"}},
    ]
    fake.script({"tools": [note]}, {"text": "Answer one."}, {"tools": more}, {"text": "Answer two."})
    await page.goto("/")
    await say(page, "One")
    await expect(log(page).get_by_text("Answer one.")).to_be_visible()
    await is_idle(page)
    await say(page, "Two")
    await expect(log(page).get_by_text("Answer two.")).to_be_visible()
    await is_idle(page)
    first = conversation_of(page)
    await page.goto(f"/dev/c/{first}")
    await is_idle(page)
    await page.get_by_role("button", name="More actions").click()
    await page.get_by_role("menuitem", name="Replay").click()
    await page.get_by_role("button", name="Files then").click()
    files = page.get_by_role("complementary", name="Files")
    await expect(files.get_by_text("two.txt")).to_be_visible()
    await page.get_by_label("Turn 2 of 2").press("ArrowLeft")
    await expect(log(page).get_by_text("Answer one.")).to_be_visible()
    await expect(log(page).get_by_text("Answer two.")).to_have_count(0)
    await expect(files.get_by_text("two.txt")).to_have_count(0)
    await files.get_by_role("button", name="one.txt").click()
    await expect(files.get_by_text("as it was first")).to_be_visible()
    await page.get_by_role("button", name="Fork from here").first.click()
    await page.wait_for_url(lambda address: "/c/" in address and first not in address)
    await expect(log(page).get_by_text("Answer one.")).to_be_visible()
    await is_idle(page)
    await expect(log(page).get_by_text("Answer two.")).to_have_count(0)

    # Edit and resend: a fork before that turn, with its words to be changed.
    await page.goto(f"/dev/c/{first}")
    await is_idle(page)
    await page.get_by_role("button", name="More actions").click()
    await page.get_by_role("menuitem", name="Replay").click()
    await page.get_by_role("group", name="Replay").get_by_role("button", name="Edit and resend").click()
    await page.wait_for_url(lambda address: "/c/" in address and first not in address)
    await expect(page.get_by_label("Your message")).to_have_value("Two")
    await expect(log(page).get_by_text("Answer one.")).to_be_visible()
    await expect(log(page).get_by_text("Answer two.")).to_have_count(0)

    # The user face looks back in plain words, and goes on from there.
    await page.goto(f"/c/{first}")
    await is_idle(page)
    await page.get_by_role("button", name="Look back").click()
    await page.get_by_label("Message 2 of 2").press("ArrowLeft")
    await expect(log(page).get_by_text("Answer two.")).to_have_count(0)
    await page.get_by_role("button", name="Go on from here").click()
    await page.wait_for_url(lambda address: "/c/" in address and first not in address)
    await is_idle(page)
    await expect(log(page).get_by_text("Answer one.")).to_be_visible()
    await expect(log(page).get_by_text("Answer two.")).to_have_count(0)
