"""The page of agents: how they are, a run, the link to its review (PR-8, UI-35)."""

import pytest
from playwright.async_api import Page, expect
from support.fake_models import FakeModels
from support.live_server import LiveServer
from support.patience import patience
from support.web_actions import serious_findings

pytestmark = pytest.mark.timeout(patience(60))


async def test_agents_are_shown_with_their_state_and_their_last_runs(
    page: Page, server: LiveServer, fake: FakeModels
) -> None:
    """PR-8: a run over REST is on the page, with what it cost and said."""
    fake.script({"text": "Hello."})
    await page.goto("/dev/agents")
    row = page.get_by_role("row").filter(has=page.get_by_text("perplexity", exact=True))
    await expect(row.get_by_text("no key", exact=True)).to_be_visible()
    await expect(page.get_by_text("No agent was run yet")).to_be_visible()
    assert await serious_findings(page) == []
    answer = await page.request.post(
        "/api/agents/claude/run", data={"prompt": "say hello"}, timeout=patience(30) * 1000
    )
    assert answer.ok and '"kind":"done"' in await answer.text()
    await page.reload()
    run = page.get_by_role("region", name="Last runs").get_by_role("row").filter(has_text="say hello")
    await expect(run).to_be_visible()
    await expect(run.get_by_text("no files")).to_be_visible()
    assert await serious_findings(page) == []
