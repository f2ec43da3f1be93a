"""The review page for itself: what a diff shows, keys, comments, size, landings (UI-26 … UI-31).

Not here: the whole story of one review (`test_developer_story.py`), the pure parts (web/tests).
"""

import asyncio
import struct
import zlib
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser, Locator, Page, expect
from support.fake_models import FakeModels
from support.live_server import LiveServer, live_server
from support.patience import HANG_S, patience
from support.web_actions import log, serious_findings

from bowerbird.core.events import LandingProgress
from bowerbird.sessions.live.hub import Published

pytestmark = pytest.mark.timeout(patience(60))


def edit(path: str, old: str, new: str) -> dict[str, Any]:
    return {"name": "edit_file", "input": {"path": path, "old": old, "new": new}}


def write(path: str, content: str) -> dict[str, Any]:
    return {"name": "write_file", "input": {"path": path, "content": content}}


def picture(width: int, height: int) -> bytes:
    """A grey PNG."""
    rows = b"".join(b"\0" + b"\x88" * width for _ in range(height))

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + chunk(b"IDAT", zlib.compress(rows))
        + chunk(b"IEND", b"")
    )


async def worked(server: LiveServer, fake: FakeModels, *steps: dict[str, Any], **asked: Any) -> str:
    """A conversation whose agent has done `steps`; its id."""
    fake.script(*steps)
    conversation = await server.conversation(**asked)
    done = await server.http.post(
        f"/api/conversations/{conversation}/messages", params={"wait": 60}, json={"content": "Do it"}
    )
    assert done.status_code == 200, done.text
    return conversation


def file(page: Page, path: str) -> Locator:
    return page.get_by_role("article", name=path, exact=True)


async def test_a_diff_shows_words_pictures_moves_and_what_lies_between(
    page: Page, server: LiveServer, fake: FakeModels, workspace: Path
) -> None:
    """UI-26: every kind of change, in one and in two columns, with and without white space."""
    (workspace / "logo.png").write_bytes(picture(30, 20))
    (workspace / "old_name.txt").write_text("the same words\n" * 5)
    (workspace / "gone.txt").write_text("first words\nlast words\n")
    (workspace / "was.txt").write_text("".join(f"line {number}\n" for number in range(60)))
    tools = [
        edit("/report.py", "found = 0", "found = 1"),
        edit("/report.py", "    print(report(", "    print( report("),
        {"name": "move_file", "input": {"src": "/old_name.txt", "dst": "/new_name.txt"}},
        {"name": "delete_file", "input": {"path": "/gone.txt"}},
        {"name": "move_file", "input": {"src": "/was.txt", "dst": "/is.txt"}},
        edit("/is.txt", "line 30", "line thirty"),
    ]
    conversation = await worked(server, fake, {"tools": tools}, {"text": "Done."})
    uploaded = await server.http.post(
        "/api/workspace/upload",
        params={"conversation": conversation},
        files=[("files", ("logo.png", picture(60, 40))), ("files", ("data.bin", b"\0\1\2" * 500))],
    )
    assert uploaded.status_code == 200, uploaded.text
    await page.goto(f"/dev/c/{conversation}/diff")

    report = file(page, "report.py")
    await expect(report.locator(".edit")).to_have_text(["0", "1", ""])  # the last one is a blank
    await expect(report.locator(".diff-line.insert")).to_have_count(2)
    await report.get_by_role("button", name="unchanged lines").first.click()
    await expect(report.get_by_text('"""Counts orders."""')).to_be_visible()
    await page.get_by_role("button", name="Hide whitespace changes").click()
    await expect(report.locator(".diff-line.insert")).to_have_count(1)
    await page.get_by_role("button", name="Side by side").click()
    await expect(report.locator(".lines.split .code.insert")).to_have_count(1)

    pictures = file(page, "logo.png").locator("img")
    await expect(pictures).to_have_count(2)
    widths = [await pictures.nth(at).evaluate("i => i.decode().then(() => i.naturalWidth)") for at in (0, 1)]
    assert widths == [30, 60]
    await expect(file(page, "data.bin")).to_contain_text("A binary file of 1.5 KB.")
    moved = file(page, "new_name.txt")
    await expect(moved).to_contain_text("renamed")
    await expect(moved).to_contain_text("Only the name changed.")
    await expect(file(page, "old_name.txt")).to_have_count(0)
    edited = file(page, "is.txt")
    await expect(edited).to_contain_text("was.txt")
    await expect(edited.locator(".code.insert")).to_have_text("+line thirty")
    await expect(edited.get_by_role("button", name="Accepted")).to_have_count(0)  # it lands whole
    await expect(file(page, "was.txt")).to_have_count(0)
    await file(page, "gone.txt").get_by_role("button", name="Show what is in it").click()
    await expect(file(page, "gone.txt").get_by_text("last words")).to_be_visible()

    # A file that moved lands with both its paths (UI-27).
    await expect(page.get_by_test_id("land-summary")).to_have_text("6 of 6 files, 3 hunks")
    await page.get_by_role("button", name="Land 6 files").click()
    await expect(page.get_by_test_id("outcome")).to_contain_text("Landed")
    assert (workspace / "new_name.txt").exists() and not (workspace / "old_name.txt").exists()
    assert "line thirty" in (workspace / "is.txt").read_text() and not (workspace / "was.txt").exists()
    assert (workspace / "logo.png").read_bytes() == picture(60, 40)


async def test_a_large_diff_is_drawn_as_far_as_it_is_seen(
    page: Page, server: LiveServer, fake: FakeModels
) -> None:
    """UI-26: 300 files and one of 50,000 lines; what is not on the screen is not in the page."""
    fake.script({"text": "Nothing."})
    conversation = await server.conversation()
    files = [(f"module_{number:03}.py", f"x = {number}\n" * 40) for number in range(300)]
    files.append(("aa_long.txt", "".join(f"line {number} of it\n" for number in range(50_000))))
    for at in range(0, len(files), 50):
        sent = [("files", (name, text.encode())) for name, text in files[at : at + 50]]
        done = await server.http.post(
            "/api/workspace/upload", params={"conversation": conversation}, files=sent
        )
        assert done.status_code == 200, done.text
    await page.goto(f"/dev/c/{conversation}/diff")
    await expect(page.get_by_test_id("land-summary")).to_contain_text("301 of 301 files")
    tree = page.get_by_role("complementary", name="Changed files")
    await tree.get_by_label("Filter changed files").fill("module_299")
    await tree.get_by_role("button", name="module_299.py").click()
    await expect(file(page, "module_299.py").get_by_text("x = 299").first).to_be_visible()
    assert await page.locator(".file-diff").count() < 40

    await tree.get_by_label("Filter changed files").fill("aa_long")
    await tree.get_by_role("button", name="aa_long.txt").click()
    await file(page, "aa_long.txt").get_by_role("button", name="Show it").click()
    await expect(file(page, "aa_long.txt").get_by_text("line 3 of it")).to_be_visible()
    await page.locator(".window-list").evaluate("list => { list.scrollTop = 20 * 49990 }")
    await expect(file(page, "aa_long.txt").get_by_text("line 49985 of it")).to_be_visible()
    assert await page.locator(".diff-line").count() < 1500


async def test_keys_go_through_hunks_and_tick_a_red_file_by_itself(
    page: Page, server: LiveServer, fake: FakeModels
) -> None:
    """UI-27, UI-28."""
    tools = [
        edit("/report.py", "found = 0", "found = 1"),
        edit("/report.py", "    print(report(", "    print('=>', report("),
        write("/.github/workflows/ci.yml", "on: push\n"),
    ]
    conversation = await worked(server, fake, {"tools": tools}, {"text": "Done."})
    await page.goto(f"/dev/c/{conversation}/diff")
    summary = page.get_by_test_id("land-summary")
    current = page.locator(".hunk-head.current")
    await expect(summary).to_have_text("1 of 2 files, 2 hunks")
    for key, heading in (("j", "@@ -7,"), ("j", "@@ -18,"), ("k", "@@ -7,")):
        await page.keyboard.press(key)
        await expect(current).to_contain_text(heading)
    await page.keyboard.press("x")
    await expect(summary).to_have_text("1 of 2 files, 1 hunk")
    await page.keyboard.press("a")
    await expect(summary).to_have_text("1 of 2 files, 2 hunks")
    await page.get_by_role("checkbox", name="All 1 file").uncheck()
    await page.get_by_role("checkbox", name="All 1 file").check()
    await expect(summary).to_have_text("1 of 2 files, 2 hunks")
    for key in "jja":
        await page.keyboard.press(key)
    await expect(summary).to_contain_text("2 of 2 files, 3 hunks1 reviewed one by one")
    await page.keyboard.press("?")
    await expect(page.get_by_role("dialog", name="Keyboard")).to_be_visible()


async def test_a_comment_goes_with_its_line_and_its_answer_leads_back(
    page: Page, server: LiveServer, fake: FakeModels
) -> None:
    """UI-29: after the next turn one comment has moved, one is outdated; chat and review lead to each other."""
    first = {"tools": [edit("/report.py", "found = 0", "found = 1"), write("/a.txt", "will go away\n")]}
    answer = {
        "tools": [
            edit("/report.py", '"""Counts orders."""', '"""Counts orders."""\n\nimport sys'),
            write("/a.txt", "something else\n"),
        ]
    }
    conversation = await worked(
        server, fake, first, {"text": "Done."}, answer, {"text": "One it is, and gone."}
    )
    await page.goto(f"/dev/c/{conversation}/diff")
    for path, line, words in (("a.txt", 1, "Why this?"), ("report.py", 10, "Why one?")):
        await file(page, path).get_by_role("button", name=f"Comment on line {line}", exact=True).last.click()
        await page.get_by_role("textbox", name="Comment on line").fill(words)
        await page.get_by_role("button", name="Add comment").click()
    await page.get_by_role("button", name="Send 2 comments to the agent").click()
    moved = file(page, "report.py").locator(".comment-box")
    await expect(moved).to_contain_text("One it is, and gone.")
    await expect(file(page, "a.txt").locator(".comment-box")).to_contain_text("outdated")
    await expect(moved).not_to_contain_text("outdated")
    below = page.locator("tr.below", has=page.get_by_text("Why one?"))
    await expect(below.locator("xpath=preceding-sibling::tr[1]")).to_contain_text("found = 1")

    await moved.get_by_role("link", name="Answer in the chat").click()
    await page.wait_for_url(f"**/dev/c/{conversation}#t_*")
    await expect(log(page).get_by_text("2 review comments")).to_be_visible()
    await expect(log(page).get_by_text("Answers 2 comments:")).to_be_visible()
    await log(page).get_by_role("link", name="report.py:10").last.click()
    await page.wait_for_url("**/diff#/report.py:10")
    await expect(page.locator(".file-diff.current")).to_have_attribute("data-path", "/report.py")


async def test_what_moved_while_reviewing_is_said_before_it_lands(
    page: Page, server: LiveServer, fake: FakeModels, workspace: Path
) -> None:
    """UI-30: marks on what did not change stay."""
    tools = [edit("/report.py", "found = 0", "found = 1"), write("/note.txt", "a note\n")]
    conversation = await worked(server, fake, {"tools": tools}, {"text": "Done."})
    await page.goto(f"/dev/c/{conversation}/diff")
    await page.get_by_role("checkbox", name="Accept note.txt").first.uncheck()
    await expect(page.get_by_test_id("land-summary")).to_contain_text("1 of 2 files")
    # A page that is looked at asks every two seconds what moved: here the landing is the first to find it.
    await page.evaluate("Object.defineProperty(document, 'visibilityState', { get: () => 'hidden' })")
    await page.wait_for_timeout(500)  # one such question may be on its way
    mine = (workspace / "report.py").read_text().replace("handle.read()", "handle.read(99)")
    (workspace / "report.py").write_text(mine)
    await page.get_by_role("button", name="Land 1 file").click()
    outcome = page.get_by_test_id("outcome")
    await expect(outcome).to_contain_text("Not landed yet.")
    await expect(outcome).to_contain_text("report.py")
    assert (workspace / "report.py").read_text() == mine
    await expect(page.get_by_test_id("land-summary")).to_contain_text("1 of 2 files")
    await page.get_by_role("button", name="Land 1 file").click()
    await expect(outcome).to_contain_text("Landed 1 file.")
    landed = (workspace / "report.py").read_text()
    assert "found = 1" in landed and "handle.read(99)" in landed


async def test_what_lands_elsewhere_while_it_is_reviewed_is_said(
    page: Page, server: LiveServer, fake: FakeModels
) -> None:
    """UI-67: the view follows, and says by whom; what is gone cannot be landed again."""
    tools = [edit("/report.py", "found = 0", "found = 1"), write("/note.txt", "a note\n")]
    conversation = await worked(server, fake, {"tools": tools}, {"text": "Done."})
    async with page.expect_response("**/api/landings?conversation=*"):
        await page.goto(f"/dev/c/{conversation}/diff")
    await expect(page.get_by_test_id("land-summary")).to_have_text("2 of 2 files, 2 hunks")
    branch = await server.sessions.branch(conversation)
    # No event tells of it, as while a page has no connection.
    await asyncio.to_thread(branch.land, ["/note.txt"], actor="ann", door="telegram")
    said = page.get_by_test_id("elsewhere")
    await expect(said).to_contain_text("1 file landed meanwhile, by ann through telegram.")
    await expect(page.get_by_test_id("land-summary")).to_have_text("1 of 1 file, 1 hunk")
    await page.get_by_role("button", name="Land 1 file").click()
    await expect(page.get_by_test_id("outcome")).to_contain_text("Landed 1 file.")
    await expect(said).to_have_count(0)


async def test_the_land_bar_says_how_far_a_landing_is(
    page: Page, server: LiveServer, fake: FakeModels
) -> None:
    """Reliability 7: whoever asked for it, and until it is over."""
    conversation = await worked(server, fake, {"tools": [write("/note.txt", "a note\n")]}, {"text": "Done."})
    await page.goto(f"/dev/c/{conversation}/diff")
    await expect(page.get_by_test_id("land-summary")).to_be_visible()

    said = page.locator(".land-bar").get_by_test_id("how-far")

    async def happening(*progress: Any) -> None:
        """Say it as often as a landing says how far it is, from before the page listens."""
        while True:
            server.sessions.live.publish(Published(conversation, None, None, LandingProgress(*progress)))
            await asyncio.sleep(0.25)

    for progress, words in (
        (("land", "writing", 1200, 100_000), "Landing: writing 1,200 of 100,000 files"),
        (("undo", "placing", 7, 101, "l_1"), "Taking back: putting in place 7 of 101 files"),
    ):
        repeated = asyncio.create_task(happening(*progress))
        await expect(said).to_contain_text(words)
        await expect(said.get_by_role("progressbar")).to_have_attribute("value", str(progress[2]))
        repeated.cancel()
    over = LandingProgress("undo", "over", 101, 101, "l_1")
    server.sessions.live.publish(Published(conversation, None, None, over))
    await expect(said).to_have_count(0)


async def test_landings_are_listed_with_their_diffs_and_a_refused_undo_names_files(
    page: Page, server: LiveServer, fake: FakeModels, workspace: Path
) -> None:
    """UI-31."""
    tools = [edit("/report.py", "found = 0", "found = 1"), write("/note.txt", "a note\n")]
    conversation = await worked(server, fake, {"tools": tools}, {"text": "Done."})
    landed = await server.http.post(f"/api/conversations/{conversation}/land", json={})
    assert landed.status_code == 200
    await page.goto("/landings")
    row = page.locator(f"[data-landing={landed.json()['id']}]")
    await row.get_by_role("button", name="Changes of").click()
    await expect(row.get_by_role("article", name="report.py").locator(".edit")).to_have_text(["0", "1"])
    await expect(row.get_by_role("article", name="note.txt")).to_contain_text("a note")
    changed = (workspace / "report.py").read_text().replace("found = 1", "found = 2")
    (workspace / "report.py").write_text(changed)
    await row.get_by_role("button", name="Undo", exact=True).click()
    await expect(row.get_by_text("Not taken back")).to_be_visible()
    await expect(row.locator(".problem")).to_contain_text("report.py")
    assert (workspace / "note.txt").exists()
    await row.get_by_role("button", name="Take it back anyway").click()
    await expect(page.locator(".landing-row")).to_have_count(2)
    assert not (workspace / "note.txt").exists()


async def test_the_land_bar_says_what_the_check_found(
    tmp_path: Path, workspace: Path, fake: FakeModels, browser: Browser, built_ui: Path
) -> None:
    """UI-27: `landing.check` runs when it is asked for; after a change its result is said to be old."""
    del workspace, built_ui
    command = "grep -q 'found = 1' report.py && echo counted"
    async with live_server(tmp_path, fake, landing__check=command) as server:
        status = await server.context.sandbox_status()
        if status.tier == "none":
            pytest.skip(f"no checks can run here: {status.reasons}")
        again = {"tools": [edit("/report.py", "found = 1", "found = 2")]}
        first = {"tools": [edit("/report.py", "found = 0", "found = 1")]}
        conversation = await worked(server, fake, first, {"text": "Done."}, again, {"text": "Changed."})
        page = await browser.new_page(base_url=server.address)
        page.set_default_timeout(HANG_S * 1000)
        await page.goto(f"/dev/c/{conversation}/diff")
        check = page.get_by_test_id("landing-check")
        await check.get_by_role("button", name="Check", exact=True).click()
        await check.get_by_role("button", name="Check passed").click()
        await expect(page.get_by_role("dialog")).to_contain_text("counted")
        await page.keyboard.press("Escape")
        asked = {"content": "Again"}
        await server.http.post(f"/api/conversations/{conversation}/messages", params={"wait": 60}, json=asked)
        await expect(check).to_contain_text("Checked before the last change")
        await check.get_by_role("button", name="Check again").click()
        await expect(check.get_by_role("button", name="Check failed")).to_be_visible()
        await expect(check).not_to_contain_text("Checked before")
        assert await serious_findings(page) == []
        await page.close()


async def test_the_card_of_the_user_face_shows_before_and_after(
    page: Page, server: LiveServer, fake: FakeModels
) -> None:
    """UI-14."""
    conversation = await worked(
        server, fake, {"tools": [edit("/report.py", "found = 0", "found = 1")]}, {"text": "Done."}
    )
    await page.goto(f"/c/{conversation}")
    card = page.get_by_role("region", name="Changes ready")
    await card.get_by_role("button", name="report.py").click()
    lines = page.get_by_role("dialog", name="report.py").locator(".lines.split")
    await expect(lines.locator(".code.delete")).to_contain_text("found = 0")
    await expect(lines.locator(".code.insert")).to_contain_text("found = 1")


async def test_both_faces_show_a_mark_and_take_what_carries_it_but_leave_the_red_lane(
    page: Page, server: LiveServer, fake: FakeModels, workspace: Path
) -> None:
    """D-5: a person's plain landing takes `held` paths after seeing the mark; `needs_accept` is ticked apart."""
    tools = [
        write("/note.txt", "a note\n"),
        write("/Makefile", "all:\n\ttrue\n"),
        write("/.github/workflows/ci.yml", "on: push\n"),
    ]
    conversation = await worked(server, fake, {"tools": tools}, {"text": "Done."})
    await page.goto(f"/dev/c/{conversation}/diff")
    await expect(page.get_by_test_id("land-summary")).to_have_text("2 of 3 files, 2 hunks")
    why = "Runs when the project is built, tested or started. (make runs it)"
    await expect(file(page, "Makefile")).to_contain_text(why)
    tree = page.get_by_role("complementary", name="Changed files")
    await expect(tree.get_by_label("Marked: look at it")).to_have_count(1)

    await page.goto(f"/c/{conversation}")
    card = page.get_by_role("region", name="Changes ready")
    await expect(card.locator("li", has_text="Makefile")).to_contain_text("marked")
    await expect(card).to_contain_text("1 file is marked.")
    await expect(card).to_contain_text("Runs when the project is built, tested or started.")
    await expect(card.locator("li", has_text="note.txt")).not_to_contain_text("marked")
    await card.get_by_role("button", name="Keep 2 files").click()
    await expect(card.get_by_role("button", name="Undo")).to_be_visible()
    assert (workspace / "Makefile").exists() and (workspace / "note.txt").exists()
    assert not (workspace / ".github").exists()


@pytest.mark.parametrize("face", ["", "/dev"])
async def test_what_changed_after_it_was_drawn_is_not_kept_unseen(
    page: Page, server: LiveServer, fake: FakeModels, workspace: Path, face: str
) -> None:
    """By a background command, an upload or another door, and whoever keeps it has looked before."""
    tools = [write("/note.txt", "a note\n"), write("/other.txt", "another\n")]
    conversation = await worked(server, fake, {"tools": tools}, {"text": "Done."})
    await page.goto(f"{face}/c/{conversation}" if not face else f"{face}/c/{conversation}/diff")
    button = page.get_by_role("button", name="Land 2 files" if face else "Keep 2 files")
    await expect(button).to_be_visible()
    await page.evaluate("Object.defineProperty(document, 'visibilityState', { get: () => 'hidden' })")
    await page.wait_for_timeout(500)
    branch = await server.sessions.branch(conversation)
    await branch.write_file("/note.txt", "nobody saw this\n")  # no event tells of it
    await button.click()
    told = "These files changed while" if face else "It changed after it was shown here"
    await expect(page.get_by_text(told).first).to_be_visible()
    assert not (workspace / "note.txt").exists() and not (workspace / "other.txt").exists()
    await button.click()
    await expect(page.get_by_role("button", name="Undo").first).to_be_visible()
    assert (workspace / "note.txt").read_text() == "nobody saw this\n"


async def test_the_card_follows_what_others_change(page: Page, server: LiveServer, fake: FakeModels) -> None:
    conversation = await worked(server, fake, {"tools": [write("/note.txt", "a note\n")]}, {"text": "Done."})
    await page.goto(f"/c/{conversation}")
    await expect(page.get_by_role("button", name="Keep 1 file")).to_be_visible()
    branch = await server.sessions.branch(conversation)
    await branch.write_file("/more.txt", "more\n")
    await server.sessions.note_changes(conversation)
    await expect(page.get_by_role("button", name="Keep 2 files")).to_be_visible()
