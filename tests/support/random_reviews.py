"""Reviews that are open while other doors change what they show, and what lands then (random rounds).

Here: a client that draws as the page does (`GET …/review`, texts from hunks), lands a random choice with `seen`,
while file tools, commands, uploads, other landings and the user's own saves go on. What lands is what was drawn, or
it is refused and nothing changes, and what it names as moved has moved. Used by `drills/reviews.py`.
"""

import asyncio
import json
import random
from pathlib import Path
from typing import Any

from support.fake_models import FakeModels
from support.live_server import LiveServer, live_server

_NAMES = ("a.txt", "b.txt", "d/c.txt", "d/e.txt", ".envrc", "new/f.txt")
_LINES = 40


def drawn_text(base: str, hunks: list[dict[str, Any]], chosen: set[str] | None) -> str:
    """Return `base` with some hunks, or all, as their lines say."""
    old, out, at = base.splitlines(keepends=True), [], 0
    for hunk in hunks:
        lines = [line for line in hunk["text"].splitlines(keepends=True) if line[:1] in (" ", "+", "-")]
        start = hunk["old_start"] - (1 if any(line[0] != "+" for line in lines) else 0)
        length = sum(line[0] != "+" for line in lines)
        out += old[at:start]
        takes = chosen is None or hunk["id"] in chosen
        out += [line[1:] for line in lines if line[0] in " +"] if takes else old[start : start + length]
        at = start + length
    return "".join([*out, *old[at:]])


class Rounds:
    """One conversation, its directory and its rounds."""

    def __init__(self, live: LiveServer, workspace: Path, seed: int) -> None:
        self.live, self.workspace, self.draw = live, workspace, random.Random(seed)
        self.seed, self.step, self.landed, self.refused, self.compared = seed, 0, 0, 0, 0
        self.touched: set[str] = set()
        self.wrong: list[str] = []
        self.conversation = ""

    @property
    def base(self) -> str:
        return f"/api/conversations/{self.conversation}"

    def text(self) -> str:
        """A text whose lines tell who wrote them, far enough apart to be hunks of their own."""
        lines = [f"line {n}\n" for n in range(_LINES)]
        for at in self.draw.sample(range(0, _LINES, 10), self.draw.randint(0, 3)):
            lines[at] = f"{self.draw.choice('xyz')} {self.step} {at}\n"
        return "".join(lines)

    def here(self) -> dict[str, tuple[int, str]]:
        return {
            "/" + str(path.relative_to(self.workspace)): (path.stat().st_mode & 0o111, path.read_text())
            for path in sorted(self.workspace.rglob("*"))
            if path.is_file()
        }

    # ------------------------------------------------------------ the other doors

    async def change_branch(self) -> None:
        """Change the branch by a random door; what goes wrong there is no matter here."""
        name = self.draw.choice(_NAMES)
        self.touched.add(f"/{name}")
        branch = await self.live.sessions.branch(self.conversation)
        door = self.draw.choice(
            ["write", "write", "write", "upload", "delete", "mode", "turn", "command", "move"]
        )
        try:
            if door == "write":
                await branch.write_file(f"/{name}", self.text())
            elif door == "delete":
                await branch.delete(f"/{name}")
            elif door == "mode":
                await branch.set_executable(f"/{name}", self.draw.random() < 0.5)
            elif door == "move":
                other = self.draw.choice(_NAMES)
                self.touched.add(f"/{other}")
                await branch.move(f"/{name}", f"/{other}")
            elif door == "upload":
                where = {"conversation": self.conversation}
                self.touched.add(f"/{Path(name).name}")
                files: Any = {"files": (Path(name).name, self.text().encode())}
                await self.live.http.post("/api/workspace/upload", params=where, files=files)
            else:
                await self._turn(name, is_command=door == "command")
        except Exception as error:  # noqa: BLE001 - a file that is not there, a turn beside another
            self.told = str(error)

    async def _turn(self, name: str, *, is_command: bool) -> None:
        if is_command and self.draw.random() < 0.7:
            return
        call = (
            {"name": "bash", "input": {"command": f"echo 'cmd {self.step}' >> '{name}'"}}
            if is_command
            else {"name": "write_file", "input": {"path": f"/{name}", "content": self.text()}}
        )
        read = {"name": "read_file", "input": {"path": f"/{name}"}}
        said = f"[[fake {json.dumps({'steps': [{'tools': [read, call]}, {'text': 'done'}]})}]]"
        await self.live.http.post(f"{self.base}/messages", params={"wait": 60}, json={"content": said})

    def save(self) -> None:
        """Save as the user does."""
        name = self.draw.choice(_NAMES)
        self.touched.add(f"/{name}")
        file = self.workspace / name
        file.parent.mkdir(exist_ok=True)
        if self.draw.random() < 0.15:
            file.unlink(missing_ok=True)
        elif self.draw.random() < 0.2 and file.exists():
            file.chmod(file.stat().st_mode ^ 0o100)
        else:
            file.write_text(self.text())

    # ------------------------------------------------------------ a round

    async def round(self) -> None:
        """Draw, let others change things, land a choice, compare."""
        self.step += 1
        for _ in range(self.draw.randint(1, 3)):
            await self.change_branch()
        self.touched.clear()
        before = self.here()
        answer = (await self.live.http.get(f"{self.base}/review")).json()
        for _ in range(self.draw.choice([0, 0, 1, 2])):
            if self.draw.random() < 0.5:
                await self.change_branch()
            else:
                self.save()
        rows = {row["path"]: row for row in answer["diff"]["written"]}
        entries = {entry["path"]: entry for entry in answer["plan"]["entries"]}
        if not entries:
            return
        wanted = self._choice(rows, entries)
        wanted["seen"] = {path: entry["state"] for path, entry in entries.items()}
        now, beside = self.here(), self.draw.random() < 0.2
        landing = self.live.http.post(f"{self.base}/land", json=wanted)
        done = (await asyncio.gather(landing, *([self.change_branch()] if beside else [])))[0]
        after = self.here()
        if done.status_code == 200:
            self.landed += 1
            self._landed(wanted, rows, entries, before, now, after)
        else:
            self.refused += 1
            self._refused(done, entries, now, after)
            if self.draw.random() < 0.5:
                await self.live.http.post(f"{self.base}/land", json={"force": True, "accept": ["*"]})

    def _choice(self, rows: dict[str, Any], entries: dict[str, Any]) -> dict[str, Any]:
        wanted: dict[str, Any] = {}
        if self.draw.random() < 0.6:
            wanted["paths"] = self.draw.sample(sorted(entries), self.draw.randint(1, len(entries)))
        if self.draw.random() < 0.4 and (ids := [h["id"] for r in rows.values() for h in r["hunks"]]):
            wanted["hunks"] = self.draw.sample(ids, self.draw.randint(1, len(ids)))
            wanted["paths"] = wanted.get("paths", []) if self.draw.random() < 0.3 else []
            if not wanted["paths"]:
                del wanted["paths"]
        if self.draw.random() < 0.7:
            wanted["accept"] = [path for path, entry in entries.items() if entry["grade"] == "needs_accept"]
        wanted["partial"] = self.draw.random() < 0.3
        return wanted

    def _landed(
        self, wanted: dict[str, Any], rows: dict[str, Any], entries: dict[str, Any],
        before: dict[str, Any], now: dict[str, Any], after: dict[str, Any],
    ) -> None:  # fmt: skip
        hunks = set(wanted["hunks"]) if "hunks" in wanted else None
        for path in sorted({*now, *after, *entries}):
            whole = path in wanted["paths"] if "paths" in wanted else hunks is None
            own = [h["id"] for h in rows[path]["hunks"]] if path in rows else []
            some = None if whole and not set(own) & (hunks or set()) else set(own) & (hunks or set())
            if path not in entries or (some is not None and not some):
                if after.get(path) != now.get(path):
                    self._is_wrong(f"{path} was not chosen and changed", wanted)
            elif after.get(path) == now.get(path) and wanted["partial"]:
                continue
            elif entries[path]["drift"] == "none":
                self._compare(path, wanted, rows.get(path), some, before, after)

    def _compare(
        self, path: str, wanted: dict[str, Any], row: dict[str, Any] | None, some: set[str] | None,
        before: dict[str, Any], after: dict[str, Any],
    ) -> None:  # fmt: skip
        self.compared += 1
        if row is None:
            if path in after:
                self._is_wrong(f"{path} was shown as gone and is there", wanted)
            return
        text = drawn_text(before.get(path, (0, ""))[1], row["hunks"], some)
        if path not in after or after[path][1] != text:
            self._is_wrong(f"{path}: drawn {text!r}, landed {after.get(path)!r}", wanted)

    def _refused(self, done: Any, entries: dict[str, Any], now: Any, after: Any) -> None:
        if done.status_code != 409:
            self._is_wrong(f"got {done.status_code}: {done.text}", {})
            return
        if now != after:
            self._is_wrong(f"refused and changed: {done.text}", {})
        for row in done.json().get("refused", []):
            path = row["path"] if row["path"].startswith("/") else "/" + row["path"]
            if row["reason"] == "moved" and not any(
                t == path or t.startswith(path + "/") for t in self.touched
            ):
                self._is_wrong(f"{path} is said to have moved and has not: {sorted(self.touched)}", {})

    def _is_wrong(self, what: str, wanted: dict[str, Any]) -> None:
        shown = {key: value for key, value in wanted.items() if key != "seen"}
        self.wrong.append(f"seed {self.seed} round {self.step}: {what} {shown}")


async def run_rounds(place: Path, seed: int, count: int) -> Rounds:
    """Run `count` rounds in one conversation on a server of its own."""
    workspace = place / "workspace"
    workspace.mkdir(parents=True)
    with FakeModels() as fake:
        async with live_server(place, fake) as live:
            rounds = Rounds(live, workspace, seed)
            for name in ("a.txt", "d/c.txt"):
                (workspace / name).parent.mkdir(exist_ok=True)
                (workspace / name).write_text(rounds.text())
            rounds.conversation = await live.conversation()
            for _ in range(count):
                await rounds.round()
    return rounds
