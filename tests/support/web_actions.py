"""What people do on the pages, by the names they see there."""

from pathlib import Path
from typing import Any

from playwright.async_api import Locator, Page, expect

AXE = Path(__file__).resolve().parents[2] / "web" / "node_modules" / "axe-core" / "axe.min.js"


async def say(page: Page, words: str, key: str = "Enter") -> None:
    """Type into the message box and send."""
    box = page.get_by_label("Your message")
    await box.fill(words)
    await box.press(key)


def log(page: Page) -> Locator:
    """What is said on the page, without what is only read out."""
    return page.get_by_role("log")


async def is_idle(page: Page) -> None:
    """Wait until no turn runs and the history is here."""
    await expect(page.locator("[data-state=idle][data-ready=true]")).to_be_visible()


async def serious_findings(page: Page) -> list[str]:
    """What axe finds serious or critical, with the places."""
    # Colours and positions are judged when nothing moves any more.
    await page.evaluate("Promise.all(document.getAnimations().map((a) => a.effect.getTiming().iterations === Infinity ? 0 : a.finished))")  # fmt: skip
    await page.evaluate(AXE.read_text(encoding="utf-8") + ";0")
    found: dict[str, Any] = await page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [
        f"{rule['id']}: {[node['target'] for node in rule['nodes']][:3]}"
        for rule in found["violations"]
        if rule["impact"] in ("serious", "critical")
    ]


def conversation_of(page: Page) -> str:
    return page.url.split("/c/")[1].split("/")[0]
