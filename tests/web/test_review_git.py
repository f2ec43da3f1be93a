"""The review page of a branch whose agent used git (GI-2, GI-3)."""

import asyncio
from pathlib import Path

import pytest
from playwright.async_api import Page, expect
from support.fake_models import FakeModels
from support.git_project import GitProject
from support.live_server import LiveServer
from support.patience import patience
from support.web_actions import serious_findings

pytestmark = pytest.mark.timeout(patience(60))


async def test_what_happened_in_git_stands_beside_the_files(
    page: Page, server: LiveServer, fake: FakeModels, workspace: Path, tmp_path: Path
) -> None:
    """GI-2, GI-3: commits with their subjects; they arrive with the files."""
    place = tmp_path / "git"
    place.mkdir()
    project = GitProject(place, workspace, tmp_path / "data")
    edit = {"path": "/report.py", "old": "found = 0", "new": "found = 1"}
    tools = [{"name": "edit_file", "input": edit}]
    fake.script({"tools": tools}, {"text": "Done."})
    conversation = await server.conversation()
    done = await server.http.post(
        f"/api/conversations/{conversation}/messages", params={"wait": 60}, json={"content": "Do it"}
    )
    assert done.status_code == 200, done.text
    (info,) = project.workspace.branches()
    branch = project.workspace.open(info.id)
    await asyncio.to_thread(project.agent, branch, ["commit", "-qam", "Count from one"])
    project.close()
    await page.goto(f"/dev/c/{conversation}/diff")
    told = page.get_by_test_id("git-story")
    await expect(told).to_contain_text("main: 1 commit")
    await expect(told).to_contain_text("Count from one")
    await expect(page.get_by_role("article", name="report.py", exact=True)).to_be_visible()
    assert await serious_findings(page) == []
    await page.get_by_role("button", name="Land 1 file").click()
    await expect(told).to_contain_text("landed")
    kept = project.git("for-each-ref", "--format=%(subject)", "refs/bowerbird")
    assert kept == "Count from one"
