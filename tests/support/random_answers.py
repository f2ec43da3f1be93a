"""People who answer approvals at random through both doors, and what may have run then (random walks).

Here: a walk in one conversation: messages whose turns want 1 to 4 calls, answers of every kind over REST and the
socket (both at once too), messages and stops in between, waits beyond `approval.timeout_s`, a server that stops and
starts again. Each call leaves a line of its own in a file; what an accepted answer allowed is there once, as it was
edited, and nothing else is. Used by the tests (a few) and by `drills/answers.py` (as many as wanted).
"""

import asyncio
import json
import random
from collections.abc import Awaitable
from pathlib import Path
from typing import Any

from support.fake_models import FakeModels
from support.live_server import LiveServer, live_server
from support.patience import HANG_S

from bowerbird.core.errors import NotFound

TIMEOUT_S = 1
_OVER = ("done", "failed", "cancelled", "interrupted")
_DECISIONS = ("approve", "approve", "approve", "deny", "deny", "auto_approve")
_ALWAYS = ("always_session", "always_workspace", "always_everywhere")


class Walk:
    """One conversation; `wrong` says in the end what ran and should not have, or did not and should have."""

    def __init__(self, seed: int, commands: float) -> None:
        self.seed, self.commands = seed, commands
        self.draw = random.Random(seed)
        self.conversation = ""
        self.steps_left = self.draw.randint(3, 10)
        self.calls: dict[str, dict[str, Any]] = {}  # by id: tool, folder, line
        self.batches: list[list[str]] = []
        self.said: dict[str, tuple[bool, str]] = {}  # by id: whether it was allowed, and the line it leaves
        self.answered: set[str] = set()
        self.always: set[str] = set()  # folders whose edits are not asked about
        self.auto = False
        self.loose: set[str] = set()  # calls that a stop may have kept from running
        self.messages = 0
        self.wrong: list[str] = []
        self.log: list[str] = []

    # ------------------------------------------------------------ what is said and scripted

    def folder(self, name: str) -> str:
        return f"w{self.seed}{name}"

    def message(self) -> str:
        """A message whose turn wants calls, or only words."""
        self.messages += 1
        if self.messages > 1 and self.draw.random() < 0.4:
            return f"words {self.messages}"
        steps: list[dict[str, Any]] = [
            {"tools": [self._call() for _ in range(self.draw.randint(1, 4))]}
            for _ in range(self.draw.choice([1, 1, 2]))
        ]
        self.batches += [[call["id"] for call in step["tools"]] for step in steps]
        return f"[[fake {json.dumps({'steps': [*steps, {'text': 'done'}]})}]]"

    def _call(self) -> dict[str, Any]:
        number = len(self.calls)
        call, folder = f"toolu_{self.seed}_{number}", self.folder(self.draw.choice("ab"))
        line, is_command = f"c{self.seed}n{number}", self.draw.random() < self.commands
        self.calls[call] = {"folder": folder, "line": line, "is_command": is_command}
        if is_command:
            return {"id": call, "name": "bash", "input": {"command": f"echo {line} >> {folder}/said"}}
        made = {"path": f"/{folder}/log", "old": "END\n", "new": f"{line}\nEND\n"}
        return {"id": call, "name": "edit_file", "input": made}

    # ------------------------------------------------------------ one step

    async def begin(self, live: LiveServer, workspace: Path) -> None:
        for name in "ab":
            folder = workspace / self.folder(name)
            folder.mkdir()
            (folder / "log").write_text("END\n")
        self.conversation = await live.conversation(enable_approval=True)
        await self._say(live, "message")

    async def walk(self, live: LiveServer, workspace: Path) -> None:
        """Walk from the beginning to the end; what goes wrong on the way is told with the seed."""

        async def whole() -> None:
            await self.begin(live, workspace)
            while self.steps_left > 0:
                await self.step(live)
            await self.finish(live)

        await self.told(whole())

    async def told(self, work: Awaitable[None]) -> None:
        """Do a part of the walk; an error is what was wrong."""
        try:
            await work
        except Exception as error:  # noqa: BLE001 - told with the seed
            self.wrong.append(f"{type(error).__name__}: {error}")

    async def step(self, live: LiveServer) -> None:
        """Answer what is asked, or do something else meanwhile."""
        self.steps_left -= 1
        question = await self.question(live)
        chance = self.draw.random()
        if question is not None and chance < 0.6:
            await self._answer(live, question)
        elif chance < 0.75:
            await self._say(live, self.draw.choice(["message", "message", "steer", "interrupt"]))
        elif chance < 0.8:
            await self._stop(live)
        elif question is not None:
            await asyncio.sleep(TIMEOUT_S * self.draw.choice([0.2, 1.2]))
        else:
            await self._say(live, "message")

    async def finish(self, live: LiveServer) -> None:
        """Answer what is still asked, wait for the last turn, compare."""
        async with asyncio.timeout(4 * HANG_S):  # several answers, in a page perhaps
            while True:
                if (question := await self.question(live)) is not None:
                    await self._answer(live, question)
                elif await self._is_over(live):
                    break
        await self._compare(live)

    async def question(self, live: LiveServer) -> dict[str, Any] | None:
        """Return what waits for an answer; None when nothing does and nothing runs, or it takes long."""
        for _ in range(100):
            rows = (await live.http.get("/api/approvals")).json()
            mine = [row for row in rows if row["conversation_id"] == self.conversation]
            fresh = [row for row in mine if row["request_id"] not in self.answered]
            if fresh:
                return fresh[0]
            if await self._is_over(live):
                return None
            await asyncio.sleep(0.03)
        return None

    async def _is_over(self, live: LiveServer) -> bool:
        return all(turn.state in _OVER for turn in await live.sessions.turns(self.conversation))

    async def _say(self, live: LiveServer, kind: str) -> None:
        if kind == "interrupt":  # may stop what runs; where a question is open it waits as a message
            self._loosen()
        place = f"/api/conversations/{self.conversation}/messages"
        text = self.message()
        answer = await live.http.post(place, json={"content": text, "kind": kind})
        self.log.append(f"{kind} {text} {answer.status_code}")
        if answer.status_code != 202:
            self.wrong.append(f"a {kind} was refused: {answer.text}")

    async def _stop(self, live: LiveServer) -> None:
        self._loosen()
        answer = await live.http.post(f"/api/conversations/{self.conversation}/cancel", json={})
        self.log.append(f"cancel {answer.status_code}")

    def _loosen(self) -> None:
        """What was allowed until now, or needs no word, may be kept from running by a stop."""
        self.loose |= set(self.calls)

    # ------------------------------------------------------------ answers

    async def _answer(self, live: LiveServer, question: dict[str, Any]) -> None:
        tools = {tool["id"]: tool for tool in question["tools"]}
        for call in tools:
            if call in self.said:
                self.wrong.append(f"{call} was asked for again after it was answered")
        first, second = self._decided(tools), self._decided(tools)
        request = question["request_id"]
        doors = self.draw.choice(["rest", "socket", "rest+socket", "rest+rest", "socket+socket"])
        asked = [first] if "+" not in doors else [first, second]
        sent = [
            self._by_rest(live, request, said) if door == "rest" else self._by_socket(live, request, said)
            for door, said in zip(doors.split("+"), asked, strict=True)
        ]
        taken = await asyncio.gather(*sent)
        self.log.append(f"{doors} {request} {asked} {taken}")
        if sum(taken) > 1:
            self.wrong.append(f"{request}: two answers were accepted")
        for said, was_taken in zip(asked, taken, strict=True):
            if was_taken:
                self.answered.add(request)
                self._note(tools, said)

    def _decided(self, tools: dict[str, Any]) -> dict[str, Any]:
        decision = self.draw.choice(_ALWAYS if self.draw.random() < 0.2 else _DECISIONS)
        said: dict[str, Any] = {"decision": decision}
        if self.draw.random() < 0.3:
            said["feedback"] = self.draw.choice(["approve", "yes, all of them", "no", "later"])
        calls: dict[str, Any] = {}
        for call in tools:
            if self.draw.random() < 0.3:
                calls[call] = {"decision": self.draw.choice(["approve", "deny"])}
                known = self.calls[call]
                if known["is_command"] and calls[call]["decision"] == "approve" and self.draw.random() < 0.6:
                    edit = f"e{known['line']}x{self.draw.randint(0, 99)}"
                    calls[call]["command"] = f"echo {edit} >> {known['folder']}/said"
                elif self.draw.random() < 0.2:
                    calls[call]["feedback"] = "rather this"
        return said | ({"calls": calls} if calls else {})

    async def _by_rest(self, live: LiveServer, request: str, said: dict[str, Any]) -> bool:
        answer = await live.http.post(f"/api/approvals/{request}", json=said)
        if answer.status_code not in (200, 404, 409, 422):
            self.wrong.append(f"an answer got {answer.status_code}: {answer.text}")
        return answer.status_code == 200

    async def _waits(self, live: LiveServer, request: str) -> bool:
        return any(row["request_id"] == request for row in (await live.http.get("/api/approvals")).json())

    async def _by_socket(self, live: LiveServer, request: str, said: dict[str, Any]) -> bool:
        name = f"n{self.draw.getrandbits(60)}"
        frame = {"type": "tool_approval_response", "request_id": request, "id": name, **said}
        async with live.socket(self.conversation, "v=2&after=1000000") as socket, asyncio.timeout(HANG_S):
            await socket.send(json.dumps(frame))
            while True:
                told = json.loads(await socket.recv())
                if told["type"] == "accepted" and told["id"] == name:
                    return True
                if told["type"] == "error" and told["code"] != "bad_cursor":
                    self.log.append(f"socket: {told}")
                    return False

    def _note(self, tools: dict[str, Any], said: dict[str, Any]) -> None:
        """Keep what an accepted answer allows, of calls that were not stopped before."""
        apart: dict[str, Any] = said.get("calls", {})
        for call in tools:
            own = apart.get(call, said)
            line = self.calls[call]["line"]
            command = own.get("command")
            self.said[call] = (own["decision"] != "deny", command.split()[1] if command else line)
        self.auto = self.auto or said["decision"] == "auto_approve"
        if said["decision"] in _ALWAYS:
            self.always |= {
                self.calls[call]["folder"]
                for call in tools
                if call not in apart and not self.calls[call]["is_command"]
            }

    # ------------------------------------------------------------ what ran

    def restarted(self) -> None:
        """A stop of the server keeps what runs from its end."""
        self._loosen()

    async def _compare(self, live: LiveServer) -> None:
        branch = await live.sessions.branch(self.conversation)
        ran: list[str] = []
        for name in "ab":
            folder = self.folder(name)
            log = await self._lines(branch, f"/{folder}/log")
            said = await self._lines(branch, f"/{folder}/said")
            ran += [*log[:-1], *said]
            for lines in (log[:-1], said):
                self._check_order(lines)
        if len(ran) != len(set(ran)):
            self.wrong.append(f"ran twice: {sorted(ran)}")
        may: set[str] = set()
        for call, known in self.calls.items():
            allowed, line = self.said.get(call, (None, known["line"]))
            unasked = allowed is None and (
                self.auto or (known["folder"] in self.always and not known["is_command"])
            )
            if allowed or unasked:
                may.add(line)
            if allowed and call not in self.loose and line not in ran:
                self.wrong.append(f"{call} was allowed and left no {line}")
        if extra := set(ran) - may:
            self.wrong.append(f"ran and was not allowed: {sorted(extra)}")

    async def _lines(self, branch: Any, path: str) -> list[str]:
        try:
            return (await branch.read_bytes(path)).decode().split()
        except NotFound:
            return []

    def _check_order(self, lines: list[str]) -> None:
        numbers = [int(line.split("n")[1].split("x")[0]) for line in lines]
        for batch in self.batches:
            mine = [n for n in numbers if f"toolu_{self.seed}_{n}" in batch]
            if mine != sorted(mine):
                self.wrong.append(f"calls of one message ran in the order {mine}")


async def walk_some(place: Path, seeds: list[int], *, commands: float = 0.3) -> dict[int, list[str]]:
    """Walk `seeds` side by side on one server that is stopped and started twice; returns what was wrong."""
    workspace = place / "workspace"
    workspace.mkdir(parents=True)
    walks = [Walk(seed, commands) for seed in seeds]
    with FakeModels() as fake:
        for phase in range(3):
            async with live_server(place, fake, approval__timeout_s=TIMEOUT_S) as live:
                await asyncio.gather(*(walk.told(_part(walk, live, workspace, phase)) for walk in walks))
            for walk in walks:
                walk.restarted()
    return {walk.seed: [*walk.wrong, *walk.log] for walk in walks if walk.wrong}


async def _part(walk: Walk, live: LiveServer, workspace: Path, phase: int) -> None:
    if phase == 0:
        await walk.begin(live, workspace)
    steps = walk.steps_left if phase == 2 else walk.draw.randint(0, max(0, walk.steps_left))
    for _ in range(steps):
        await walk.step(live)
    if phase == 2:
        await walk.finish(live)
