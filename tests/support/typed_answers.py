"""The walks of `random_answers.py` answered at a terminal: lines that a person types there, at random.

Here: what is typed. Not here: what may have run then, which the walk tells.
"""

import asyncio
import itertools
import re
from pathlib import Path
from typing import Any

from support.fake_models import FakeModels
from support.live_server import LiveServer, live_server
from support.patience import HANG_S
from support.random_answers import TIMEOUT_S, Walk
from support.terminals import Terminal, clean_environment

LOOKS = 200  # of a person who looks at the prompt, before they come back to it
_ASKS = "The agent asks to run:"
_WORDS = {
    "approve": "y",
    "deny": "n",
    "auto_approve": "all",
    "always_session": "a s",
    "always_workspace": "a",
    "always_everywhere": "a e",
}


class TypedWalk(Walk):
    """A walk whose answers are typed in a chat of its own; now and then another door answers in the same moment."""

    terminal: Terminal | None = None
    address: str
    home: Path

    def __init__(self, seed: int, commands: float) -> None:
        super().__init__(seed, commands)
        self.screens: list[str] = []

    async def _answer(self, live: LiveServer, question: dict[str, Any]) -> None:
        tools = {tool["id"]: tool for tool in question["tools"]}
        request = question["request_id"]
        if not await self._shown(live, request, tools):
            return  # a stop that was still at work has withdrawn it
        assert self.terminal is not None
        said, other = self._typed(tools), self._decided(tools)
        numbers = {call: at for at, call in enumerate(tools, start=1)}
        for call, own in said.get("calls", {}).items():
            edit = f"e {own['command']}" if "command" in own else _WORDS[own["decision"]]
            self.terminal.send(f"{numbers[call]} {edit}\r")
            await asyncio.to_thread(self.terminal.wait_for, f"{numbers[call]} ")
        race = self.draw.random() < 0.2
        self.terminal.send(f"{_WORDS[said['decision']]}\r")
        rest = await self._by_rest(live, request, other) if race else False
        async with asyncio.timeout(HANG_S):
            while await self._waits(live, request):
                await asyncio.sleep(0.03)
        self.answered.add(request)
        self.log.append(f"typed{'+rest' if race else ''} {request} {said} {other if rest else ''}")
        self._note(tools, other if rest else said)

    async def _shown(self, live: LiveServer, request: str, tools: dict[str, Any]) -> bool:
        """Whether the question stands at the end of what the terminal has written."""
        first = re.compile(self.calls[next(iter(tools))]["line"] + r"\b")
        async with asyncio.timeout(4 * HANG_S):
            for look in itertools.count(1):
                if not await self._waits(live, request):
                    return False
                if self.terminal is None or look % LOOKS == 0:  # a prompt shows no turn of another door
                    await asyncio.to_thread(self.come_back)
                assert self.terminal is not None
                text = self.terminal.text
                text = text[text.rfind(_ASKS) :]
                if first.search(text) and "answer>" in text:
                    return True
                await asyncio.sleep(0.03)
        raise AssertionError("it counts for ever")

    def come_back(self) -> None:
        """Open the conversation in a terminal, once more."""
        self.leave()
        arguments = ["--server", self.address, "--resume", self.conversation]
        environment = clean_environment(self.home)
        self.terminal = Terminal(arguments, cwd=self.home, environment=environment, columns=160)

    def leave(self) -> None:
        """Close the terminal's window."""
        if (terminal := self.terminal) is not None:
            self.screens.append(terminal.text)
            terminal.__exit__(None, None, None)
            self.terminal = None

    def _typed(self, tools: dict[str, Any]) -> dict[str, Any]:
        said = self._decided(tools)
        said.pop("feedback", None)
        if said["decision"].startswith("always") and not all(tool.get("rules") for tool in tools.values()):
            said["decision"] = "approve"
        if len(tools) == 1:  # a number is for one of several
            said.pop("calls", None)
        for own in said.get("calls", {}).values():
            own.pop("feedback", None)
        if len(said.get("calls", {})) == len(tools):
            said["calls"].pop(next(iter(tools)))  # what is said of all ends the question by itself
        if not said.get("calls"):
            said.pop("calls", None)
        return said


async def walk_at_terminals(place: Path, seeds: list[int], *, commands: float = 0.5) -> dict[int, list[str]]:
    """Walk `seeds` one by one, each at a terminal of its own over one server; returns what was wrong."""
    workspace = place / "workspace"
    workspace.mkdir(parents=True)
    wrong: dict[int, list[str]] = {}
    with FakeModels() as fake:
        async with live_server(place, fake, approval__timeout_s=TIMEOUT_S) as live:
            for seed in seeds:
                walk = TypedWalk(seed, commands)
                home = place / f"home{seed}"
                home.mkdir()
                walk.address, walk.home = live.address, home
                await walk.walk(live, workspace)
                walk.leave()
                if walk.wrong:
                    wrong[seed] = [*walk.wrong, *walk.log, walk.screens[-1][-3000:] if walk.screens else ""]
    return wrong
