"""What each face shows and the other does not (UI-7 … UI-14); fails when the faces are swapped (UI-5).

Not here: UI-8, for which the server has no subagents yet; UI-6, which is in `test_quality.py`.
"""

import pytest
from playwright.async_api import Page, expect
from support.fake_models import FakeModels
from support.live_server import LiveServer
from support.patience import patience
from support.web_actions import is_idle, log

pytestmark = pytest.mark.timeout(patience(60))


async def test_each_face_shows_its_own_and_not_the_others(
    page: Page, server: LiveServer, fake: FakeModels
) -> None:
    """UI-5, UI-7, UI-9 … UI-14, UI-18."""
    note = {"name": "write_file", "input": {"path": "/notes.md", "content": "# Notes\n"}}
    fake.script({"thinking": "Hm.", "text": "I write.", "tools": [note]}, {"text": "Written."})
    conversation = await server.conversation()
    await server.http.post(
        f"/api/conversations/{conversation}/messages", params={"wait": 60}, json={"content": "Write"}
    )
    for face, prefix in (("dev", "/dev"), ("user", "")):
        dev, user = int(face == "dev"), int(face == "user")
        await page.goto(f"{prefix}/c/{conversation}")
        await expect(log(page).get_by_text("Written.")).to_be_visible()
        await is_idle(page)
        await expect(log(page).locator("details.tool")).to_have_count(dev)  # UI-7
        await expect(log(page).get_by_text("write_file")).to_have_count(dev)
        await expect(log(page).locator("details.thinking")).to_have_count(dev)  # UI-18
        await expect(page.get_by_test_id("activity")).to_have_count(2 * user)
        await expect(page.get_by_role("button", name="Traffic")).to_have_count(dev)  # UI-10
        await expect(page.get_by_role("button", name="Files", exact=True)).to_have_count(1)  # UI-11
        await expect(page.get_by_test_id("cost")).to_have_count(dev)  # UI-12
        for switch in ("Plan", "Approval", "Teams"):  # UI-13
            await expect(page.get_by_role("button", name=switch, exact=True)).to_have_count(dev)
        await expect(page.get_by_role("region", name="Changes ready")).to_have_count(user)  # UI-14
        await page.get_by_role("button", name="New chat").click()  # UI-9
        await expect(page.get_by_role("dialog", name="New chat")).to_have_count(dev)
        if user:
            await expect(page.get_by_role("heading", name="What shall we work on?")).to_be_visible()
