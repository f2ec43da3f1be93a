"""Models that know only what they are sent: programs behind the wires that do a job from the visible text alone.

Here: two jobs (say what stands in many files; rename a name in many files, each read first) and an instruction
that was given long ago, on a whole server at any provider's address. A program holds nothing between requests:
what was cut away wrongly, came in another order or was not what a tool said is missing in its answer. Used by the
tests (small) and by `drills/knowing.py`. Not here: what refuses requests (`provider_rules`).
"""

import asyncio
import hashlib
import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from support.fake_models import FakeModels
from support.live_server import live_server
from support.patience import HANG_S
from support.provider_talks import WIRES, at_the_vendors, settings_of

TOKEN = 4
"""Characters of a token, as the servers count here."""
TOGETHER = 4  # calls of one message


def _word(*about: object) -> str:
    return hashlib.sha256(repr(about).encode()).hexdigest()[:8]


@dataclass
class Job:
    """One session.

    Args:
        share: of the window that the files fill. notes: whether the program says what it has learnt; one
            that does not must have all of it in sight.
    """

    kind: str
    window: int
    share: float
    notes: bool
    count: int = 24
    requests: int = 0
    largest: int = 0
    problems: list[str] = field(default_factory=list[str])

    @property
    def code(self) -> str:
        return f"code-{_word(self.kind, self.window, self.share)}"

    def name(self, number: int) -> str:
        return f"part_{number:03}.py"

    def fact(self, number: int) -> str:
        return _word("fact", number, self.window, self.share)

    def content(self, number: int) -> str:
        """A file of its share of the window; what counts stands in its middle."""
        room = int(self.window * TOKEN * self.share / self.count)
        filler = "".join(f"# {number}.{line} {_word(number, line) * 6}\n" for line in range(room // 58 + 1))
        middle = filler.index("\n", len(filler) // 2) + 1
        line = f"fact {number} is {self.fact(number)}" if self.kind == "facts" else f"use_{number} = old_name"
        return f"{filler[:middle]}{line}\n{filler[middle:]}"

    @property
    def asked(self) -> str:
        what = (
            f"Each file part_000.py to {self.name(self.count - 1)} has one line `fact N is WORD`. Say them all."
            if self.kind == "facts"
            else f"Rename old_name to new_name in part_000.py to {self.name(self.count - 1)}; read each first."
        )
        return f"{what} Begin each answer of yours, now and later, with {self.code}."

    # ------------------------------------------------------------ the program

    def answer(self, body: dict[str, Any]) -> dict[str, Any]:
        """Return what it does next, from the text of a request and nothing else."""
        self.requests += 1
        seen = "\n".join(_texts(body.get("messages") or body.get("input")))
        size = len(json.dumps(body)) // TOKEN
        self.largest = max(self.largest, size)
        step = self._step(seen, may_call=_may_call(body))
        return step | {"usage": {"input": size, "output": len(json.dumps(step)) // TOKEN}}

    def _step(self, seen: str, *, may_call: bool) -> dict[str, Any]:
        done, known, calls = self._facts(seen) if self.kind == "facts" else self._renamed(seen)
        if not may_call:  # a summary: what it sees, in its own words
            return {"text": f"{known} Each answer begins with {code}." if (code := _code(seen)) else known}
        if done:
            return {"text": f"{_code(seen)} {known}"}
        return {"text": known if self.notes else "", "tools": calls[:TOGETHER]}

    def _facts(self, seen: str) -> tuple[bool, str, list[dict[str, Any]]]:
        known = {int(number): word for number, word in re.findall(r"fact (\d+) is ([0-9a-f]{8})", seen)}
        missing = [number for number in range(self.count) if number not in known]
        said = ". ".join(f"fact {number} is {word}" for number, word in sorted(known.items()))
        return not missing, said, [_call("read_file", path=self.name(number)) for number in missing]

    def _renamed(self, seen: str) -> tuple[bool, str, list[dict[str, Any]]]:
        edited = {
            int(number)
            for number in re.findall(r"part_(\d+)\.py: 1 replacement|renamed (\d+);", seen)
            for number in number
            if number
        }
        edited |= {int(number) for number in re.findall(r"use_(\d+) = new_name", seen)}
        read = {int(number) for number in re.findall(r"use_(\d+) = old_name", seen)}
        left = [number for number in range(self.count) if number not in edited]
        calls = [
            _call("edit_file", path=self.name(n), old=f"use_{n} = old_name", new=f"use_{n} = new_name")
            if n in read
            else _call("read_file", path=self.name(n))
            for n in left
        ]
        return not left, " ".join(f"renamed {number};" for number in sorted(edited)), calls

    # ------------------------------------------------------------ judged from outside

    def judge(self, said: str, files: dict[str, str]) -> None:
        """Note what is wrong in the answer, or in the files of the branch."""
        if not said.strip().startswith(self.code):
            self.problems.append(f"the instruction was lost: {said[:80]!r}")
        if self.kind == "facts":
            lost = [n for n in range(self.count) if f"fact {n} is {self.fact(n)}" not in said]
            self.problems += [f"facts were lost: {lost}"] if lost else []
            return
        for number in range(self.count):
            if files[self.name(number)] != self.content(number).replace("old_name", "new_name"):
                self.problems.append(f"{self.name(number)} is not as it should be")


def _call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"name": name, "input": arguments}


def _code(seen: str) -> str:
    found = re.search(r"code-[0-9a-f]{8}", seen)
    return found[0] if found else ""


def _may_call(body: dict[str, Any]) -> bool:
    return bool(body.get("tools")) and body.get("tool_choice") not in ("none", {"type": "none"})


def _texts(value: Any) -> list[str]:
    """All texts of messages, whatever the wire; arguments of calls are what the program said, not what is there."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, list):
        return [text for part in value for text in _texts(part)]
    if not isinstance(value, dict):
        return []
    apart = ("tool_calls", "input", "arguments", "id", "call_id", "name", "type", "role", "data", "source")
    is_call = value.get("type") in ("tool_use", "function_call")
    return (
        [] if is_call else [text for key, part in value.items() if key not in apart for text in _texts(part)]
    )


async def work(place: Path, wire: str, job: Job, **settings: Any) -> Job:
    """Do `job` with the first model of `wire` on a server of its own."""
    workspace = place / "workspace"
    workspace.mkdir(parents=True)
    for number in range(job.count):
        (workspace / job.name(number)).write_text(job.content(number))
    with FakeModels() as fake, at_the_vendors(fake):
        fake.answer(lambda body, _n: job.answer(body))
        chosen = settings_of(place, fake, wire) | {"agent__context_window": job.window} | settings
        chosen.pop("mcp_servers")
        async with live_server(place, fake, **chosen) as live, asyncio.timeout(20 * HANG_S):
            made = await live.conversation(model=WIRES[wire][0])
            for asked in (job.asked, "Say it once more."):
                sent = await live.http.post(f"/api/conversations/{made}/messages", json={"content": asked})
                await live.sessions.wait(sent.json()["turn_id"])
            turn = await live.sessions.turn(sent.json()["turn_id"])
            if (turn.state, turn.stop_reason) != ("done", "end_turn"):
                job.problems.append(f"the turn ended as {turn.state}, {turn.stop_reason}: {turn.error}")
            shown = (await live.http.get(f"/api/conversations/{made}/messages?limit=200")).json()["messages"]
            branch = await live.sessions.branch(made)
            files = {job.name(n): (await branch.read_bytes(job.name(n))).decode() for n in range(job.count)}
            job.judge(shown[-1]["content"], files)
            job.problems += [f"refused: {said}" for said in fake.refused]
    return job
