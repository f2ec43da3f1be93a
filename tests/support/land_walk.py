"""Somebody who has no mouse and does not see the screen: what they press, what has the focus, what they are told.

Here: the walk and its text. Not here: where it goes (`tests/web/test_land_walk.py`).
"""

import asyncio
from typing import Any, Self

from playwright.async_api import CDPSession, Page
from support.patience import HANG_S

MOST_STOPS = 150
# What a screen reader is told without asking: changes inside of live regions, and alerts that come.
HEAR = r"""
window.heard = [];
const LIVE = "[aria-live=polite], [aria-live=assertive], [role=status], [role=alert]";
const note = (region) => {
  if (!region || region.closest("[aria-live=off]") === region) return;
  const words = region.innerText.trim().replace(/\s+/g, " ");
  if (words && window.heard.at(-1) !== words) window.heard.push(words);
};
new MutationObserver((list) => {
  for (const { target, addedNodes } of list) {
    const place = target.nodeType === 1 ? target : target.parentElement;
    note(place?.closest(LIVE));
    for (const node of addedNodes) if (node.nodeType === 1) for (const one of [node, ...node.querySelectorAll(LIVE)]) if (one.matches(LIVE)) note(one);
  }
}).observe(document, { childList: true, subtree: true, characterData: true });
"""
STATES = ("checked", "expanded", "pressed", "disabled", "invalid")
SEPARATE = " · "


class Walk:
    """One walk over a page; `told` is its text."""

    def __init__(self, page: Page, session: CDPSession) -> None:
        self.page = page
        self.told: list[str] = []
        self.unnamed: list[str] = []
        self.heard: list[str] = []
        self._last = ""
        self._session = session

    @classmethod
    async def on(cls, page: Page) -> Self:
        await page.add_init_script(HEAR)
        session = await page.context.new_cdp_session(page)
        await session.send("Accessibility.enable")
        return cls(page, session)

    async def focus(self) -> str:
        """What the accessibility tree says has the focus: role, name, states."""
        found: dict[str, Any] = await self._session.send(
            "Runtime.evaluate", {"expression": "document.activeElement"}
        )
        answer: dict[str, Any] = await self._session.send(
            "Accessibility.getPartialAXTree",
            {"objectId": found["result"]["objectId"], "fetchRelatives": False},
        )
        node = answer["nodes"][0]
        role = str(node.get("role", {}).get("value", ""))
        name = str(node.get("name", {}).get("value", ""))
        if role in ("RootWebArea", "generic", "none", ""):
            return "(the page)"
        if not name:
            self.unnamed.append(role)
        states = [
            f"{one['name']}={one['value'].get('value')}"
            for one in node.get("properties", [])
            if one["name"] in STATES and one["value"].get("value") not in (False, "false")
        ]
        said = f" [{', '.join(states)}]" if states else ""
        return f"{role} “{name[:70]}”{said}"

    async def hears(self, part: str) -> None:
        """Wait until something with these words was read out, from the last time that was asked on."""
        async with asyncio.timeout(HANG_S):
            while not any(part in words for words in self.heard):
                await asyncio.sleep(0.05)
                await self.tell("")
        self.heard.clear()

    async def tell(self, done: str) -> str:
        """Write down what was done, what has the focus now and what was read out since."""
        focus = await self.focus()
        heard: list[str] = await self.page.evaluate("window.heard.splice(0)")
        self.heard += heard
        said = [f"heard “{SEPARATE.join(heard)[:160]}”"] if heard else []
        if done or said or focus != self._last:
            self.told.append("  ".join([f"{done or '(a moment later)':<34}", f"focus: {focus}", *said]))
        self._last = focus
        return focus

    async def press(self, *keys: str, tell: bool = True) -> None:
        for key in keys:
            await self.page.keyboard.press(key)
        # Two frames: what a key does is drawn, and the focus is where it goes.
        await self.page.evaluate(
            "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done))))"
        )
        if tell:
            await self.tell(" ".join(keys))

    async def types(self, words: str) -> None:
        await self.page.keyboard.type(words)
        await self.tell(f"types “{words}”")

    async def goes_to(self, name: str, key: str = "Enter", back: bool = False) -> None:
        """Tab until something of that name has the focus, and press a key on it."""
        tab = "Shift+Tab" if back else "Tab"
        for stop in range(MOST_STOPS):
            focus = await self.focus()
            if f"“{name}" in focus:
                times = f"{stop}×{tab}"
                self.told.append(f"{times:<34}  focus: {focus}")
                if key:
                    await self.press(key)
                return
            await self.page.keyboard.press(tab)
        raise AssertionError(f"{tab} does not come to {name}\n" + "\n".join(self.told))
