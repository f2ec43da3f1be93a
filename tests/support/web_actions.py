"""What people do on the pages, by the names they see there."""

import re
from pathlib import Path
from typing import Any, Self

from playwright.async_api import Locator, Page, WebSocketRoute, expect

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


async def serious_findings(page: Page, rules: tuple[str, ...] = ()) -> list[str]:
    """What axe finds serious or critical, with the places and why; of some rules only, where they are named."""
    # Colours and positions are judged when nothing moves any more; an animation whose element goes away is over, too.
    await page.evaluate("Promise.allSettled(document.getAnimations().map((a) => a.effect.getTiming().iterations === Infinity ? 0 : a.finished)).then(() => 0)")  # fmt: skip
    if not await page.evaluate("typeof axe === 'object'"):
        await page.evaluate(AXE.read_text(encoding="utf-8") + ";0")
    # No rule of these needs the style sheets fetched again, which is most of what a run takes.
    asked = {"resultTypes": ["violations"], "preload": False}
    found: dict[str, Any] = await page.evaluate(
        "(asked) => axe.run(document, asked)", {**asked, "runOnly": list(rules)} if rules else asked
    )
    return [
        f"{rule['id']}: {[(node['target'], node['any'][0]['message'] if node['any'] else '') for node in rule['nodes']][:3]}"
        for rule in found["violations"]
        if rule["impact"] in ("serious", "critical")
    ]


def conversation_of(page: Page) -> str:
    return page.url.split("/c/")[1].split("/")[0]


class Sockets:
    """The page's sockets, led through here so that a test can cut them."""

    def __init__(self) -> None:
        self.is_up = True
        self._open: list[WebSocketRoute] = []

    @classmethod
    async def of(cls, page: Page) -> Self:
        sockets = cls()
        await page.route_web_socket(re.compile(r"/ws\?"), sockets._lead)
        return sockets

    async def _lead(self, socket: WebSocketRoute) -> None:
        if not self.is_up:
            await socket.close(code=4500, reason="cut")
            return
        socket.connect_to_server()
        self._open.append(socket)

    async def cut(self) -> None:
        """Close what is open, as a network does that goes away."""
        gone, self._open = self._open, []
        for socket in gone:
            await socket.close(code=4500, reason="cut")
