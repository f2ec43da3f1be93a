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


async def test_what_git_ignores_is_one_line_that_can_be_ticked_and_settings_are_accepted_there(
    page: Page, server: LiveServer, fake: FakeModels, workspace: Path, tmp_path: Path
) -> None:
    """GI-7, GI-2: the page shows what the terminal shows; `--include` and `--accept` are ticks."""
    (workspace / ".gitignore").write_text("build/\n*.log\n")
    (tmp_path / "git").mkdir()
    project = GitProject(tmp_path / "git", workspace, tmp_path / "data")
    written = {
        "/src/__pycache__/a.pyc": "12345",
        "/src/__pycache__/b.pyc": "1",
        "/run.log": "1",
        "/notes.txt": "n\n",
    }
    tools = [{"name": "write_file", "input": {"path": p, "content": text}} for p, text in written.items()]
    fake.script({"tools": tools}, {"text": "Done."})
    conversation = await server.conversation()
    done = await server.http.post(
        f"/api/conversations/{conversation}/messages", params={"wait": 60}, json={"content": "Do it"}
    )
    assert done.status_code == 200, done.text
    (info,) = project.workspace.branches()
    branch = project.workspace.open(info.id)
    await asyncio.to_thread(project.agent, branch, ["config", "core.sshCommand", "x"])
    project.close()
    url = f"/api/conversations/{conversation}"
    diff = (await server.http.get(f"{url}/diff")).json()
    assert [row["path"] for row in diff["written"]] == ["/notes.txt"]
    assert diff["folded"] == [
        {"path": "/run.log", "files": 1, "bytes": 1}, {"path": "/src/__pycache__/", "files": 2, "bytes": 6},
    ]  # fmt: skip
    assert "pyc" not in (await server.http.get(f"{url}/patch")).text
    assert (await server.http.get(url)).json()["changed_files"] == 1
    await page.goto(f"/dev/c/{conversation}/diff")
    folded = page.get_by_test_id("folded")
    await expect(folded).to_contain_text("src/__pycache__/ 2 files, 6 B, stays on the branch")
    await expect(folded).to_contain_text("run.log 1 file")
    assert await serious_findings(page) == []
    await page.get_by_role("checkbox", name="Land src/__pycache__/, too").check()
    await page.get_by_role("checkbox", name="Accept .git/config").check()
    await expect(page.get_by_test_id("land-summary")).to_contain_text("and src/__pycache__/, .git/config")
    await page.get_by_role("button", name="Land 1 file").click()
    await expect(page.get_by_test_id("outcome")).to_contain_text("Landed 4 files")
    assert (workspace / "src/__pycache__/a.pyc").read_text() == "12345"
    assert "sshCommand" in (workspace / ".git/config").read_text()
    assert not (workspace / "run.log").exists()
    await expect(folded).not_to_contain_text("src/")


async def test_what_lands_is_a_commit_where_it_is_ticked_or_only_a_commit_on_another_branch(
    page: Page, server: LiveServer, fake: FakeModels, workspace: Path, tmp_path: Path
) -> None:
    """UI-78: the tick, its words, and a git branch that is not checked out."""
    (tmp_path / "git").mkdir()
    project = GitProject(tmp_path / "git", workspace, tmp_path / "data")
    project.git("config", "user.name", "Ann")
    project.git("config", "user.email", "ann@example.org")
    edit = {"path": "/report.py", "old": "found = 0", "new": "found = 1"}
    fake.script({"tools": [{"name": "edit_file", "input": edit}]}, {"text": "Done."})
    conversation = await server.conversation()
    done = await server.http.post(
        f"/api/conversations/{conversation}/messages", params={"wait": 60}, json={"content": "Do it"}
    )
    assert done.status_code == 200, done.text
    project.close()
    before = project.git("rev-parse", "HEAD")
    await page.goto(f"/dev/c/{conversation}/diff")
    await page.get_by_role("checkbox", name="Commit", exact=True).check()
    await page.get_by_label("Commit message").fill("Count from one")
    await page.get_by_label("Git branch").fill("agent/count")
    assert await serious_findings(page) == []
    await page.get_by_role("button", name="Commit 1 file").click()
    outcome = page.get_by_test_id("outcome")
    await expect(outcome).to_contain_text("Committed on agent/count:")
    await expect(outcome).to_contain_text("No file has changed")
    await expect(outcome.get_by_role("button", name="Undo")).to_have_count(0)
    assert project.git("log", "-1", "--format=%s", "agent/count") == "Count from one"
    assert project.git("status", "--short") == "" and project.git("rev-parse", "HEAD") == before
    await page.get_by_label("Git branch").fill("")
    await page.get_by_label("Commit message").fill("Count from one, here")
    await page.get_by_role("button", name="Land 1 file").click()
    await expect(outcome).to_contain_text("Committed on main:")
    assert project.git("log", "-1", "--format=%s") == "Count from one, here"
    assert project.git("status", "--short") == ""
