"""Every page and state of both faces, as pictures and axe go through them.

Here: their names, addresses, and what is done on a page to bring a state about. Not here: what the server holds
(`page_stories.py`), what is made of a page that is in its state.
"""

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from playwright.async_api import Page, expect
from support.page_stories import Stage
from support.web_actions import is_idle

Act = Callable[[Page, Stage], Awaitable[object]]
BOTH = ("", "/dev")
USER = ("",)
DEV = ("/dev",)


@dataclass(frozen=True)
class State:
    """One state of a page: where it is, `{name}` for a conversation's id, and what brings it about."""

    name: str
    path: str = ""
    act: Act | None = None
    faces: tuple[str, ...] = BOTH
    shown: str = "h1"
    phone: bool = True

    async def reach(self, page: Page, stage: Stage, face: str) -> None:
        """Bring a page into this state."""
        await page.goto((face + self.path.format(**stage.at)) or "/")
        await expect(page.locator(self.shown).first).to_be_visible()
        await expect(page.locator(".skeleton")).to_have_count(0)
        if self.act is not None:
            await self.act(page, stage)


def press(*names: str, role: str = "button", inside: str = "body") -> Act:
    """Press buttons by their names, one after the other."""

    async def act(page: Page, _stage: Stage) -> None:
        for name in names:
            found = page.locator(inside).get_by_role(role, name=name)  # type: ignore[arg-type] - a role by its name
            await found.first.click()

    return act


async def settled(page: Page, _stage: Stage) -> None:
    await is_idle(page)
    await expect(page.locator(".turn-row").first).to_be_visible()


async def idle(page: Page, _stage: Stage) -> None:
    await is_idle(page)


async def open_tools(page: Page, _stage: Stage) -> None:
    await is_idle(page)
    closed = page.locator("details.tool:not([open]) summary")
    for _ in range(min(3, await closed.count())):
        await closed.first.click()


async def open_activity(page: Page, _stage: Stage) -> None:
    await is_idle(page)
    await page.get_by_test_id("activity").first.locator("summary").click()


async def write_mention(page: Page, _stage: Stage) -> None:
    box = page.get_by_label("Your message")
    await box.press_sequentially("Look at @or")
    await expect(page.get_by_role("option").first).to_be_visible()


async def open_file(page: Page, _stage: Stage) -> None:
    await page.get_by_role("button", name="Files", exact=True).click()
    await page.locator(".file-row", has_text="report.py").click()
    await expect(page.locator(".preview code")).to_be_visible()


async def open_picture(page: Page, _stage: Stage) -> None:
    await page.get_by_role("button", name="Files", exact=True).click()
    await page.locator(".file-row", has_text="logo.png").click()
    await expect(page.locator(".preview img")).to_be_visible()


async def upload_too_much(page: Page, _stage: Stage) -> None:
    await page.get_by_role("button", name="Files", exact=True).click()
    movie = {"name": "movie.mkv", "mimeType": "video/x-matroska", "buffer": bytes(2 << 20)}
    await page.get_by_test_id("upload").set_input_files(movie)  # type: ignore[arg-type] - a file of the page's
    await expect(page.get_by_role("alert")).to_be_visible()


async def traffic(page: Page, _stage: Stage) -> None:
    if not await page.get_by_role("button", name="Traffic").is_visible():
        await press("More actions")(page, _stage)
        await press("Traffic", role="menuitem")(page, _stage)
    else:
        await page.get_by_role("button", name="Traffic").click()
    await page.get_by_role("button", name="LLM traces").click()
    await expect(page.locator(".frame, .trace, [class*=frame]").first).to_be_visible()


async def replay(page: Page, _stage: Stage) -> None:
    if "/dev/" in page.url:
        await press("More actions")(page, _stage)
        await press("Replay", role="menuitem")(page, _stage)
    else:
        await press("Look back")(page, _stage)
    await page.get_by_role("slider").focus()
    for _ in range(5):
        await page.keyboard.press("ArrowLeft")


async def comment(page: Page, _stage: Stage) -> None:
    await page.keyboard.press("j")
    await page.keyboard.press("c")
    await page.get_by_role("textbox", name="Comment on line").fill("Why not `sum(map(int, rows))`?")


async def decide(page: Page, _stage: Stage) -> None:
    await page.get_by_role("button", name="Decide").first.click()
    await page.get_by_role("dialog").get_by_role("radio", name="Write it myself").check()


async def landing_changes(page: Page, _stage: Stage) -> None:
    await page.get_by_role("button", name="Changes of").nth(1).click()
    await expect(page.locator(".diff-line").first).to_be_visible()


async def undo_refused(page: Page, stage: Stage) -> None:
    from pathlib import Path

    (Path(stage.server.context.settings.workspace) / "notes/2.md").write_text("mine\n")
    row = page.locator(f"[data-landing={stage.at['landing 2']}]")
    await row.get_by_role("button", name="Undo", exact=True).click()
    await expect(row.get_by_text("Not taken back")).to_be_visible()


async def search(page: Page, _stage: Stage) -> None:
    await open_sidebar(page)
    await page.get_by_label("Search sessions").fill("quotation")
    await expect(page.get_by_role("navigation", name="Sessions").get_by_role("link").first).to_be_visible()


async def open_sidebar(page: Page) -> None:
    field = page.get_by_label("Search sessions")
    if not await field.is_visible():
        await page.get_by_role("button", name="Show or hide sessions").first.click()
    await expect(field).to_be_visible()


async def account(page: Page, _stage: Stage) -> None:
    await open_sidebar(page)
    await page.get_by_role("button", name="Account and settings").click()


async def further(page: Page, _stage: Stage) -> None:
    await open_sidebar(page)
    await page.get_by_role("button", name="Further pages").click()


async def offline(page: Page, _stage: Stage) -> None:
    await is_idle(page)
    await page.context.set_offline(True)
    await expect(page.get_by_text("No connection to the server")).to_be_visible()


async def gone(page: Page, _stage: Stage) -> None:
    await expect(page.get_by_text("This chat is not here")).to_be_visible()


async def subagent_transcript(page: Page, _stage: Stage) -> None:
    await is_idle(page)
    await page.get_by_role("button", name="Transcript").first.click()
    await expect(page.get_by_role("dialog")).to_be_visible()


async def attempt_changes(page: Page, _stage: Stage) -> None:
    await page.locator("article.attempt").first.get_by_role("button", name="Changes").click()
    await expect(page.get_by_role("dialog")).to_be_visible()


async def setting(page: Page, _stage: Stage) -> None:
    await page.get_by_label("Search settings").fill("agent.max_turns")
    await page.get_by_role("button", name="Change agent.max_turns").click()


CHAT = "textarea, .request, article"
STATES = (
    State("home"),
    State("home-search", act=search),
    State("home-account", act=account),
    State("home-further", act=further, faces=DEV),
    State("new-chat", act=press("New chat"), faces=DEV),
    State("chat-empty", "/c/{empty}", idle, shown=CHAT),
    State("chat", "/c/{words}", settled, shown=CHAT),
    State("chat-tools", "/c/{words}", open_tools, faces=DEV, shown=CHAT),
    State("chat-activity", "/c/{words}", open_activity, faces=USER, shown=CHAT),
    State("chat-mention", "/c/{words}", write_mention, shown=CHAT),
    State("chat-failed", "/c/{broken}", settled, shown=CHAT),
    State("chat-approval", "/c/{approval}", shown="section.ask"),
    State("chat-plan", "/c/{plan}", shown="section.ask"),
    State("chat-changes", "/c/{review}", settled, shown=CHAT),
    State("chat-subagents", "/c/{subagents}", settled, shown=CHAT),
    State("chat-transcript", "/c/{subagents}", subagent_transcript, faces=DEV, shown=CHAT),
    State("chat-team", "/c/{team}", settled, shown=CHAT),
    State("chat-long", "/c/{long}", settled, shown=CHAT),
    State("chat-replay", "/c/{long}", replay, shown=CHAT),
    State("chat-offline", "/c/{words}", offline, shown=CHAT),
    State("chat-gone", "/c/no-such-chat", gone),
    State("chat-menu", "/c/{words}", press("More actions"), faces=DEV, shown=CHAT),
    State("files", "/c/{words}", press("Files"), shown=CHAT),
    State("files-text", "/c/{words}", open_file, shown=CHAT),
    State("files-picture", "/c/{words}", open_picture, shown=CHAT),
    State("files-refused", "/c/{words}", upload_too_much, shown=CHAT),
    State("traffic", "/c/{words}", traffic, faces=DEV, shown=CHAT),
    State("review", "/c/{review}/diff", shown=".diff-line"),
    State("review-comment", "/c/{review}/diff", comment, shown=".diff-line"),
    State("review-keys", "/c/{review}/diff", press("Keyboard"), shown=".diff-line", phone=False),
    State("review-split", "/c/{review}/diff", press("Side by side"), shown=".diff-line", phone=False),
    State("review-conflicts", "/c/{conflicts}/diff", shown=".diff-line"),
    State("review-decide", "/c/{conflicts}/diff", decide, shown=".diff-line"),
    State("review-empty", "/c/{landed}/diff"),
    State("landings", "/landings"),
    State("landings-open", "/landings", landing_changes),
    State("landings-refused", "/landings", undo_refused),
    State("usage", "/usage", shown=".plot, table"),
    State("schedules", "/schedules"),
    State("schedules-new", "/schedules", press("New schedule")),
    State("permissions", "/permissions"),
    State("settings", "/settings"),
    State("settings-change", "/settings", setting),
    State("shared", "/shared", faces=USER),
    State("attempts", "/c/{attempts}/attempts", faces=DEV, shown="article.attempt"),
    State("attempts-changes", "/c/{attempts}/attempts", attempt_changes, faces=DEV, shown="article.attempt"),
    State(
        "attempts-new", "/c/{attempts}/attempts", press("New attempts"), faces=DEV, shown="article.attempt"
    ),
    State("skills", "/skills", faces=DEV),
    State("skills-new", "/skills", press("New skill"), faces=DEV),
    State("memory", "/memory", faces=DEV),
    State("sandbox", "/sandbox", faces=DEV),
    State("tokens", "/tokens", faces=DEV),
    State("tokens-new", "/tokens", press("New token"), faces=DEV),
    State("nowhere", "/nowhere"),
)


def wanted(only: str) -> list[State]:
    """The states whose names match a pattern."""
    return [state for state in STATES if re.search(only, state.name)]
