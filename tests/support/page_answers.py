"""The walks of `random_answers.py` answered in a real page, and the rounds of `random_reviews.py` kept in one.

Here: what a person clicks there, at random. Not here: what may have run or landed then, which those two tell.
"""

import asyncio
import json
import re
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from playwright.async_api import Browser, Page, async_playwright, expect
from playwright.async_api import Error as PlaywrightError
from support.fake_models import FakeModels
from support.live_server import LiveServer, live_server
from support.patience import HANG_S
from support.random_answers import TIMEOUT_S, Walk
from support.random_reviews import Rounds

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
        # By its own name: with another door's answer the next question stands where this one was.
        ask = self.page.get_by_role("region", name="Approval needed").and_(
            self.page.locator(f'[id="ask:{request}"]')
        )
        reloads = self.draw.random() < 0.1
        if not await self._shown(live, ask, request):
            return  # a stop that was still at work has withdrawn it
        if reloads:
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
        except PlaywrightError:  # the other door was first, and the question is gone
            if not rest:
                raise
        async with asyncio.timeout(HANG_S):
            while await self._waits(live, request):
                await asyncio.sleep(0.03)
        self.answered.add(request)
        self.log.append(f"page{'+rest' if is_race else ''} {request} {said} {other if rest else ''}")
        self._note(tools, other if rest else said)

    async def _shown(self, live: LiveServer, ask: Any, request: str) -> bool:
        async with asyncio.timeout(HANG_S):
            while not await ask.is_visible():
                if not await self._waits(live, request):
                    return False
                await asyncio.sleep(0.03)
        return True

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
                await walk.walk(live, workspace)
                await context.close()
                if walk.wrong:
                    wrong[seed] = [*walk.wrong, *walk.log]
    return wrong


class PageRounds(Rounds):
    """Rounds whose review is open in a page, and landed by its button.

    What was drawn is the newest answer to the page whose states the page then says that it has seen.
    """

    page: Page

    async def round(self) -> None:
        """Draw, let others change things, press Land, compare."""
        self.step += 1
        for _ in range(self.draw.randint(1, 3)):
            await self.change_branch()
        before, drawn = self.here(), list[tuple[dict[str, Any], dict[str, Any]]]()
        answers: list[asyncio.Future[Any]] = []
        landing: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

        def heard(answer: Any) -> None:
            if answer.url.endswith(f"{self.conversation}/review"):
                answers.append(asyncio.ensure_future(self._kept(answer, drawn)))
            elif answer.url.endswith(f"{self.conversation}/land") and not landing.done():
                landing.set_result(answer)

        self.page.on("response", heard)
        try:
            await self.page.goto(f"{self.live.address}/dev/c/{self.conversation}/diff")
            button = self.page.get_by_role("button", name=re.compile(r"^Land \d+ files?$"))
            await self.page.wait_for_load_state("networkidle")
            if not await button.count():
                return  # nothing that could land is on it
            self.touched.clear()
            for _ in range(self.draw.choice([0, 1, 2])):
                if self.draw.random() < 0.5:
                    await self.change_branch()
                else:
                    self.save()
            before_land = self.here()
            beside = [self.change_branch()] if self.draw.random() < 0.3 else []
            await asyncio.gather(button.click(timeout=HANG_S * 1000), *beside)
            async with asyncio.timeout(HANG_S):
                answer = await landing
            await asyncio.gather(*answers, return_exceptions=True)
            self._judge(
                answer, json.loads(answer.request.post_data), await answer.json(), drawn, before, before_land
            )
        finally:
            self.page.remove_listener("response", heard)

    async def _kept(self, answer: Any, drawn: list[tuple[dict[str, Any], dict[str, Any]]]) -> None:
        if answer.status == 200:
            told = await answer.json()
            drawn.append((told, self.here()))

    def _judge(
        self, answer: Any, wanted: dict[str, Any], told: dict[str, Any],
        drawn: list[tuple[dict[str, Any], dict[str, Any]]], before: Any, now: Any,
    ) -> None:  # fmt: skip
        seen, after = wanted["seen"], self.here()
        if answer.status != 200:
            self.refused += 1
            if now != after:
                self._is_wrong(f"refused and changed: {told}", {})
            return
        self.landed += 1
        for shown, base in reversed(drawn):
            entries = {entry["path"]: entry for entry in shown["plan"]["entries"]}
            if all(entries.get(path, {}).get("state") == state for path, state in seen.items()):
                rows = {row["path"]: row for row in shown["diff"]["written"]}
                self._landed({"partial": False, **wanted}, rows, entries, base, now, after)
                return
        self._is_wrong(f"landed what was never drawn: {seen}", {})


async def rounds_in_a_page(place: Path, seed: int, count: int) -> Rounds:
    """Run `count` rounds in one conversation in a page over a server of its own."""
    workspace = place / "workspace"
    workspace.mkdir(parents=True)
    with FakeModels() as fake:
        async with live_server(place, fake) as live, chromium() as browser:
            rounds = PageRounds(live, workspace, seed)
            rounds.page = await (await browser.new_context()).new_page()
            for name in ("a.txt", "d/c.txt"):
                (workspace / name).parent.mkdir(exist_ok=True)
                (workspace / name).write_text(rounds.text())
            rounds.conversation = await live.conversation()
            while rounds.landed + rounds.refused < count:
                await rounds.round()
    return rounds
