"""A review that can be trusted: nothing is said to be unchanged, no decision takes more than its place (UI-87 … UI-91)."""

from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Locator, Page, expect
from support.fake_models import FakeModels
from support.live_server import LiveServer
from support.patience import patience
from support.web_actions import serious_findings

pytestmark = pytest.mark.timeout(patience(90))

LINES = "".join(f"line {number}\n" for number in range(1, 41))


def edit(path: str, old: str, new: str) -> dict[str, Any]:
    return {"name": "edit_file", "input": {"path": path, "old": old, "new": new}}


def write(path: str, content: str) -> dict[str, Any]:
    return {"name": "write_file", "input": {"path": path, "content": content}}


async def more(server: LiveServer, fake: FakeModels, conversation: str, *tools: dict[str, Any]) -> None:
    """One more turn that calls `tools`."""
    fake.script({"tools": list(tools)}, {"text": "Done."})
    done = await server.http.post(
        f"/api/conversations/{conversation}/messages", params={"wait": 60}, json={"content": "More"}
    )
    assert done.status_code == 200, done.text


async def worked(server: LiveServer, fake: FakeModels, *tools: dict[str, Any]) -> str:
    """A conversation whose agent has called `tools`; its id."""
    conversation = await server.conversation()
    await more(server, fake, conversation, *tools)
    return conversation


def file(page: Page, path: str) -> Locator:
    return page.get_by_role("article", name=path, exact=True)


def tick(page: Page, path: str) -> Locator:
    return file(page, path).get_by_role("checkbox", name=f"Accept {path}")


async def test_nothing_that_changed_is_said_to_be_unchanged(
    page: Page, server: LiveServer, fake: FakeModels, workspace: Path
) -> None:
    """UI-87, UI-88, web finding W1, W5, W6: long lines, large files, links, permissions, directories."""
    (workspace / "app.min.js").write_text("a=1;" * 100_000 + "old()" + "b=2;" * 100_000)
    (workspace / "data.csv").write_text("".join(f"{n},one\n" for n in range(20_000)))
    (workspace / "huge.txt").write_text("x\n" * 9_000_000)
    (workspace / "run.sh").write_text("echo\n")
    for name in ("a", "b", "sub/c"):
        (workspace / "old" / name).parent.mkdir(parents=True, exist_ok=True)
        (workspace / "old" / name).write_text("gone\n")
    conversation = await worked(
        server, fake,
        edit("/app.min.js", "old()", "evil()"),
        {"name": "read_file", "input": {"path": "/data.csv"}},
        write("/data.csv", "".join(f"{n},two\n" for n in range(20_000))),
        write("/small.txt", "small\n"),
    )  # fmt: skip
    branch = await server.context.sessions.branch(conversation)
    (workspace.parent / "huge").write_text("y\n" * 9_000_000)
    branch.take([("huge.txt", workspace.parent / "huge")])
    await branch.set_executable("run.sh", True)
    await branch.delete("old", recursive=True)
    await page.goto(f"/dev/c/{conversation}/diff")

    minified = file(page, "app.min.js")
    await expect(minified).to_contain_text("from character 400,001")
    await expect(minified.locator("pre.del")).to_have_text("− old")
    await expect(tick(page, "app.min.js")).not_to_be_checked()
    await expect(tick(page, "small.txt")).to_be_checked()

    await page.get_by_role("complementary").get_by_role("button", name="data.csv").click()
    large = file(page, "data.csv")
    await large.get_by_role("button", name="Show it").click()
    await expect(large.get_by_role("cell", name="− 0,one", exact=True)).to_be_visible()

    await page.get_by_role("complementary").get_by_role("button", name="huge.txt").click()
    huge = file(page, "huge.txt")
    await expect(huge).to_contain_text("Too large to compare line by line: 17.2 MB")
    await expect(tick(page, "huge.txt")).not_to_be_checked()
    await huge.get_by_role("button", name="Show the first 500 lines").click()
    await expect(huge.locator("pre").first).to_contain_text("x\nx\n")
    await expect(huge.locator("pre").last).to_contain_text("y\ny\n")
    async with page.expect_download() as saved:
        await huge.get_by_role("button", name="Download before").click()
    assert (await saved.value).suggested_filename == "before-huge.txt"

    await page.get_by_role("complementary").get_by_role("button", name="run.sh").click()
    await expect(file(page, "run.sh")).to_contain_text("it can be run as a program now")
    await page.get_by_role("complementary").get_by_role("button", name="old", exact=True).click()
    gone = file(page, "old")
    await gone.get_by_text("This directory and its 3 files will be deleted.").click()
    await expect(gone).to_contain_text("old/sub/c")
    assert await page.get_by_text("Nothing in the text changed").count() == 0


async def test_a_link_that_points_elsewhere_says_where(
    page: Page, server: LiveServer, fake: FakeModels, workspace: Path
) -> None:
    """Web finding W5: "This is no file with text: symlink" would look the same for a link to anything."""
    status = await server.context.sandbox_status()
    if status.tier == "none":
        pytest.skip(f"no commands can run here: {status.reasons}")
    (workspace / "link").symlink_to("report.py")
    conversation = await worked(server, fake, write("/small.txt", "small\n"))
    base = f"/api/conversations/{conversation}"
    done = await server.http.post(
        f"{base}/command", json={"command": "ln -sfn orders.txt link; ln -s /etc out"}
    )
    assert done.status_code == 200, done.text
    await page.goto(f"/dev/c/{conversation}/diff")
    await expect(file(page, "link")).to_contain_text("It pointed to report.py and now points to orders.txt")
    await expect(file(page, "out")).to_contain_text("A link to /etc")
    await expect(tick(page, "out")).not_to_be_checked()  # it leads out of the project


async def in_conflict(server: LiveServer, fake: FakeModels, workspace: Path) -> str:
    """The agent changed lines 5, 20 and 35, the user 5 and 30; two other files stand beside."""
    (workspace / "a.txt").write_text(LINES)
    conversation = await worked(
        server, fake,
        edit("/a.txt", "line 5\n", "agent 5\n"), edit("/a.txt", "line 20\n", "agent 20\n"),
        edit("/a.txt", "line 35\n", "agent 35\n"), write("/b.txt", "b\n"), write("/c.txt", "c\n"),
    )  # fmt: skip
    (workspace / "a.txt").write_text(LINES.replace("line 5\n", "mine 5\n").replace("line 30\n", "mine 30\n"))
    return conversation


async def test_a_conflict_is_decided_place_by_place_and_takes_nothing_else(
    page: Page, server: LiveServer, fake: FakeModels, workspace: Path
) -> None:
    """UI-89, web findings W2, W3: the user's line 30, which nobody else touched, is there afterwards."""
    conversation = await in_conflict(server, fake, workspace)
    before = (workspace / "a.txt").read_text()
    await page.goto(f"/dev/c/{conversation}/diff")
    await expect(tick(page, "a.txt")).not_to_be_checked()
    await file(page, "a.txt").get_by_role("button", name="Decide").click()
    dialog = page.get_by_role("dialog")
    place = dialog.get_by_role("group", name="You both changed this place")
    await expect(place).to_contain_text("mine 5")
    await expect(place).to_contain_text("agent 5")
    await expect(dialog.get_by_role("button", name="1 place to decide")).to_be_disabled()
    assert await serious_findings(page) == []

    await place.get_by_role("radio", name="Write it myself").check()
    await place.get_by_role("textbox").fill("ours 5\n")
    await place.get_by_role("radio", name="Both, yours first").check()
    await place.get_by_role("radio", name="The agent's").check()
    assert (workspace / "a.txt").read_text() == before
    await dialog.get_by_role("button", name="Land this file").click()
    outcome = page.get_by_test_id("outcome")
    await expect(outcome).to_contain_text("Landed 1 file.")
    wanted = before.replace("mine 5", "agent 5").replace("line 20", "agent 20").replace("line 35", "agent 35")
    assert (workspace / "a.txt").read_text() == wanted and "mine 30" in wanted
    # What else was ticked is ticked still, and the undo is one of this file.
    await expect(page.get_by_test_id("land-summary")).to_contain_text("2 of 2 files")
    await outcome.get_by_role("button", name="Undo").click()
    await expect(page.get_by_test_id("land-summary")).to_contain_text("of 3 files")
    assert (workspace / "a.txt").read_text() == before


async def test_replacing_a_whole_file_says_what_is_lost_and_is_not_the_first_choice(
    page: Page, server: LiveServer, fake: FakeModels, workspace: Path
) -> None:
    """UI-89: with a diff of what would be lost."""
    conversation = await in_conflict(server, fake, workspace)
    await page.goto(f"/dev/c/{conversation}/diff")
    await file(page, "a.txt").get_by_role("button", name="Decide").click()
    dialog = page.get_by_role("dialog")
    await expect(dialog.locator(".button.primary")).to_have_text("1 place to decide")
    whole = dialog.locator("details.whole-file")
    await whole.locator("summary").click()
    await expect(whole).to_contain_text("2 lines of yours will be gone:")
    await expect(whole.locator("pre")).to_contain_text("mine 30")
    await whole.get_by_role("button", name="Replace my whole file").click()
    await expect(page.get_by_test_id("outcome")).to_contain_text("Landed 1 file.")
    assert "mine" not in (workspace / "a.txt").read_text()


async def test_a_file_that_comes_into_conflict_does_not_keep_the_others_from_landing(
    page: Page, server: LiveServer, fake: FakeModels, workspace: Path
) -> None:
    """Web finding W10: it stayed ticked, so that every further click failed, too."""
    (workspace / "a.txt").write_text(LINES)
    conversation = await worked(server, fake, edit("/a.txt", "line 5\n", "agent 5\n"), write("/b.txt", "b\n"))
    await page.goto(f"/dev/c/{conversation}/diff")
    await expect(page.get_by_test_id("land-summary")).to_contain_text("2 of 2 files")
    (workspace / "a.txt").write_text(LINES.replace("line 5\n", "mine 5\n"))
    await more(server, fake, conversation, write("/c.txt", "c\n"))
    await expect(page.get_by_test_id("land-summary")).to_contain_text("2 of 3 files")
    await expect(tick(page, "a.txt")).not_to_be_checked()
    await page.get_by_role("button", name="Land 2 files").click()
    await expect(page.get_by_test_id("outcome")).to_contain_text("Landed 2 files.")
    assert (workspace / "b.txt").exists() and "mine 5" in (workspace / "a.txt").read_text()


async def test_what_is_being_typed_about_a_line_outlives_the_agents_next_change(
    page: Page, server: LiveServer, fake: FakeModels, workspace: Path
) -> None:
    """UI-91, web finding W4b: the box was open and empty after the branch had changed."""
    (workspace / "a.txt").write_text(LINES)
    conversation = await worked(server, fake, edit("/a.txt", "line 20\n", "a line of the agent\n"))
    await page.goto(f"/dev/c/{conversation}/diff")
    await file(page, "a.txt").get_by_role("button", name="Comment on line 20").last.click()
    box = page.get_by_placeholder("What should be different here?")
    await box.fill("please fix this line")

    await more(
        server, fake, conversation, edit("/a.txt", "line 1\n", "line 0\nline 1\n"), write("/b.txt", "b\n")
    )
    await expect(file(page, "b.txt")).to_be_visible()
    await expect(box).to_have_value("please fix this line")
    await expect(page.get_by_text("Comment on line 21")).to_be_visible()  # where its line is now
    await more(server, fake, conversation, edit("/a.txt", "a line of the agent\n", "another\n"))
    await expect(page.get_by_text("Your comment is kept as a draft")).to_be_visible()
    await expect(page.get_by_role("button", name="Send 1 comment")).to_be_visible()


async def test_an_edit_in_the_directory_is_seen_while_a_review_is_open(
    page: Page, server: LiveServer, fake: FakeModels, workspace: Path
) -> None:
    """UI-90, web finding W10: nothing happened until the landing was refused."""
    (workspace / "a.txt").write_text(LINES)
    conversation = await worked(server, fake, edit("/a.txt", "line 5\n", "agent 5\n"), write("/b.txt", "b\n"))
    await page.goto(f"/dev/c/{conversation}/diff")
    await expect(page.get_by_test_id("land-summary")).to_contain_text("2 of 2 files")
    (workspace / "a.txt").write_text(LINES.replace("line 5\n", "the user's 5\n"))
    await expect(file(page, "a.txt").get_by_role("button", name="Decide")).to_be_visible()
    await expect(page.get_by_test_id("land-summary")).to_contain_text("1 of 2 files")
    (workspace / "a.txt").write_text(LINES)
    await expect(file(page, "a.txt").get_by_role("button", name="Decide")).to_have_count(0)


async def test_seen_and_chosen_are_two_things(
    page: Page, server: LiveServer, fake: FakeModels, workspace: Path
) -> None:
    """UI-88: a seen file folds and is counted, on this device, until the agent changes it."""
    conversation = await worked(server, fake, write("/a.txt", "first\n"), write("/b.txt", "b\n"))
    await page.goto(f"/dev/c/{conversation}/diff")
    box = file(page, "a.txt").get_by_role("checkbox", name="Viewed a.txt")
    await box.check()
    summary = page.get_by_test_id("land-summary")
    await expect(summary).to_contain_text("1 of 2 viewed")
    await expect(summary).to_contain_text("2 of 2 files")
    await expect(file(page, "a.txt").get_by_text("first")).to_have_count(0)
    await page.reload()
    await expect(summary).to_contain_text("1 of 2 viewed")
    await expect(file(page, "a.txt").get_by_text("first")).to_have_count(0)
    await more(server, fake, conversation, write("/a.txt", "second\n"))
    await expect(file(page, "a.txt").get_by_text("second")).to_be_visible()
    await expect(box).not_to_be_checked()
    await expect(summary).not_to_contain_text("viewed")
