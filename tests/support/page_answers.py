"""The walks of `random_answers.py` answered in a real page, and the rounds of `random_reviews.py` kept in one.

Here: what a person clicks there, at random. Not here: what may have run or landed then, which those two tell.
"""

import asyncio
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from playwright.async_api import Browser, Page, async_playwright, expect
from support.fake_models import FakeModels
from support.live_server import LiveServer, live_server
from support.patience import HANG_S
from support.random_answers import TIMEOUT_S, Walk

expect.set_options(timeout=HANG_S * 1000)  # a busy machine is slow, not wrong
BUTTONS = {
    "approve": "Approve",
    "deny": "Deny",
    "auto_approve": "Approve all in this conversation",
    "always_session": "Always allow",
}


@asynccontextmanager
async def chromium() -> AsyncIterator[Browser]:
    """Debian's Chromium."""
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        try:
            yield browser
        finally:
            await browser.close()


class PageWalk(Walk):
    """A walk whose answers are clicked; now and then another door answers in the same moment."""

    page: Page

    async def _answer(self, live: LiveServer, question: dict[str, Any]) -> None:
        tools = {tool["id"]: tool for tool in question["tools"]}
        request = question["request_id"]
        await self._open(live)
        ask = self.page.get_by_role("region", name="Approval needed")
        await expect(ask).to_be_visible()
        if self.draw.random() < 0.1:
            await self.page.reload()
            await expect(ask).to_be_visible()
        said, other = self._clicked(tools), self._decided(tools)
        await self._fill(ask, tools, said)
        button = ask.get_by_role("button", name=BUTTONS[said["decision"]], exact=True)
        is_race = self.draw.random() < 0.3
        press = asyncio.ensure_future(button.click(timeout=HANG_S * 1000))
        rest = await self._by_rest(live, request, other) if is_race else False
        try:
            await press
        except Exception:
            if not rest:
                raise
        async with asyncio.timeout(HANG_S):
            while any(r["request_id"] == request for r in (await live.http.get("/api/approvals")).json()):
                await asyncio.sleep(0.03)
        self.answered.add(request)
        self.log.append(f"page{'+rest' if is_race else ''} {request} {said} {other if rest else ''}")
        self._note(tools, other if rest else said)

    async def _open(self, live: LiveServer) -> None:
        where = f"{live.address}/dev/c/{self.conversation}"
        if self.page.url != where:
            await self.page.goto(where)

    def _clicked(self, tools: dict[str, Any]) -> dict[str, Any]:
        decision = self.draw.choice(["approve", "approve", "approve", "deny", "auto_approve"])
        calls: dict[str, Any] = {}
        for call in tools:
            known = self.calls[call]
            if decision != "deny" and len(tools) > 1 and self.draw.random() < 0.3:
                calls[call] = {"decision": "deny"}
            elif decision != "deny" and known["is_command"] and self.draw.random() < 0.4:
                edit = f"e{known['line']}x{self.draw.randint(0, 99)}"
                calls[call] = {"decision": "approve", "command": f"echo {edit} >> {known['folder']}/said"}
        if len(calls) == len(tools) and all(own["decision"] == "deny" for own in calls.values()):
            calls.pop(next(iter(calls)))  # with every call left out there is nothing to approve
        return {"decision": decision, **({"calls": calls} if calls else {})}

    async def _fill(self, ask: Any, tools: dict[str, Any], said: dict[str, Any]) -> None:
        apart: dict[str, Any] = said.get("calls", {})
        commands = [call for call in tools if self.calls[call]["is_command"]]
        for call in reversed(
            commands
        ):  # a button goes when it is pressed: those before it keep their numbers
            if (command := apart.get(call, {}).get("command")) is not None:
                await ask.get_by_role("button", name="Edit the command").nth(commands.index(call)).click()
                await ask.get_by_role("textbox", name="Command to run instead").first.fill(command)
        for at, call in enumerate(tools):
            if apart.get(call, {}).get("decision") == "deny":
                await ask.get_by_role("checkbox", name="Run this one").nth(at).uncheck()


async def walk_in_pages(place: Path, seeds: list[int], *, commands: float = 0.5) -> dict[int, list[str]]:
    """Walk `seeds` one by one in a page over one server; returns what was wrong."""
    workspace = place / "workspace"
    workspace.mkdir(parents=True)
    wrong: dict[int, list[str]] = {}
    with FakeModels() as fake:
        async with live_server(place, fake, approval__timeout_s=TIMEOUT_S) as live, chromium() as browser:
            for seed in seeds:
                walk = PageWalk(seed, commands)
                context = await browser.new_context()
                walk.page = await context.new_page()
                try:
                    await walk.begin(live, workspace)
                    while walk.steps_left > 0:
                        await walk.step(live)
                    await walk.finish(live)
                except Exception as error:  # noqa: BLE001 - told with the seed
                    walk.wrong.append(f"{type(error).__name__}: {error}")
                await context.close()
                if walk.wrong:
                    wrong[seed] = [*walk.wrong, *walk.log]
    return wrong
