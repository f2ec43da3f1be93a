"""Vendors' agents killed in their middle: by a time limit, by who asked, with their server (PR-15, PR-18, PR-22).

Here: one agent through a real server and the `bowerbird` command, and what was left of it: processes, the
branch, its session, and the key anywhere but in the one file that holds it. Not here: which agents
(`real_agents.py`), the model (`scripted_models.py`).
"""

import asyncio
import json
import os
import signal
import socket
import sys
import time
import urllib.request
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from scripted_models import HALF, KEY, Scripted

HOWS = ("timeout", "cancel", "kill -9")
PROMPT = "Write made.txt and remove gone.txt."
AGAIN = "And what did I ask first?"
LIMIT_S, BEGIN_S, LEFT_S = 45, 120, 5.0
PIECE = KEY[8:16].encode()
_BOWERBIRD = str(Path(sys.executable).parent / "bowerbird")


class Stage:
    """A project, a home, a settings file that holds the key, and the server over them."""

    def __init__(self, place: Path, provider: dict[str, Any], name: str, programs: Path) -> None:
        self.place, self.name = place, name
        self.home, self.project, self.secret = place / "home", place / "project", place / "secret"
        for directory in (self.home, self.project, self.secret):
            directory.mkdir(parents=True)
        (self.project / "gone.txt").write_text("one\ntwo\n")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.url = f"http://127.0.0.1:{free.getsockname()[1]}"
        settings = {
            "agent": {"data_dir": str(place / "data"), "workspace": str(self.project)},
            "sandbox": {"read_only": [str(programs)]},
            "server": {"port": int(self.url.rpartition(":")[2])},
            "providers": {name: provider},
        }
        file = self.secret / "bowerbird.yaml"
        file.write_text(json.dumps(settings))
        file.chmod(0o600)
        self.env = {
            "HOME": str(self.home), "PATH": f"{programs / 'bin'}:{os.environ['PATH']}", "NO_COLOR": "1",
            "BOWERBIRD_CONFIG": str(file), "WORKSPACE_DIR": str(self.project),
        }  # fmt: skip
        self.server: asyncio.subprocess.Process | None = None

    async def serve(self) -> None:
        """Start the server and wait until it answers."""
        with (self.place / "server.log").open("ab") as log:
            self.server = await asyncio.create_subprocess_exec(
                _BOWERBIRD, "serve", cwd=self.project, env=self.env, stdout=log, stderr=log
            )
        until = time.monotonic() + BEGIN_S
        while time.monotonic() < until:
            try:
                await asyncio.to_thread(self.asked, "/api/agents/runs")
                return
            except OSError:
                await asyncio.sleep(0.1)
        raise TimeoutError((self.place / "server.log").read_text()[-2000:])

    def asked(self, path: str) -> Any:
        """Return what the server answers."""
        with urllib.request.urlopen(self.url + path, timeout=30) as answer:
            return json.load(answer)

    async def command(self, *words: str) -> asyncio.subprocess.Process:
        """Start a command that asks the server."""
        return await asyncio.create_subprocess_exec(
            _BOWERBIRD, "--server", self.url, *words, cwd=self.home, env=self.env,
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip

    def run(self, prompt: str, how: str, *more: str) -> tuple[str, ...]:
        """Return the words that run the agent in the session of a way to end."""
        session = f"by-{how.replace(' ', '')}"
        return ("agents", "run", self.name, prompt, "--session", session, "--json", *more)


@asynccontextmanager
async def _standing(stage: Stage) -> AsyncIterator[None]:
    await stage.serve()
    try:
        yield
    finally:
        if stage.server is not None and stage.server.returncode is None:
            stage.server.terminate()
            await stage.server.wait()


async def kills(
    name: str, place: Path, programs: Path, provider: dict[str, Any], model: Scripted
) -> dict[str, object]:
    """Return what was seen of one agent."""
    stage = Stage(place, provider, name, programs)
    model.keys.clear()
    found: dict[str, object] = {"agent": name, "transport": provider["transport"]}
    held: set[str] = set()
    async with _standing(stage):
        for how in HOWS:
            found[how] = await _ended(stage, how, model, held)
    wrong = sorted(each[:6] + "…" for each in model.keys - {KEY})
    found["the key is found in"] = sorted(held | _in_files(place)) or "nothing but its settings"
    found["other keys asked with"] = wrong or "none"
    return found


async def _ended(stage: Stage, how: str, model: Scripted, held: set[str]) -> str:
    mark = f"9{time.monotonic_ns() % 10**9}"
    model.mode, model.edits = "half", stage.name == "aider"
    model.hanging.clear()
    model.asked.clear()
    look = "env > env.txt; cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline > proc.txt 2>/dev/null"
    command = f"(setsid sleep {mark} >/dev/null 2>&1 &); {look}; printf '1\\n' {HALF}"
    model.commands = dict.fromkeys(("anthropic", "responses", "chat", "google"), command)
    limit = ("--timeout", str(LIMIT_S)) if how == "timeout" else ()
    client = await stage.command(*stage.run(PROMPT, how, *limit))
    reading = asyncio.create_task(client.communicate())
    hanging = asyncio.create_task(model.hanging.wait())
    await asyncio.wait({reading, hanging}, timeout=BEGIN_S, return_when=asyncio.FIRST_COMPLETED)
    hanging.cancel()
    if not model.hanging.is_set():
        with suppress(ProcessLookupError):  # it has ended by itself
            client.kill()
        out, err = await reading
        return f"it did not come so far: {(err or out).decode()[-300:]}"
    alive = len(_left(stage, mark))
    held |= {f"/proc/…/{kind}" for kind in _in_processes(stage, mark)}
    if how == "timeout":
        await reading
    elif how == "cancel":
        client.send_signal(signal.SIGINT)
    else:
        assert stage.server is not None
        stage.server.kill()
        await stage.server.wait()
    took = await _gone(lambda: _left(stage, mark, all_of_server=how == "kill -9"))
    out, err = await reading
    held |= {f"output after {how}"} if PIECE in out + err else set()
    if how == "kill -9":
        await stage.serve()
    return f"{alive} → {took}; {await _branch(stage, how)}; {await _continued(stage, how, model)}"


async def _gone(left: Callable[[], list[int]]) -> str:
    started = time.monotonic()
    while rest := left():
        if time.monotonic() - started > LEFT_S:
            return f"{len(rest)} LEFT after {LEFT_S:g} s"
        await asyncio.sleep(0.01)
    return f"0 processes after {(time.monotonic() - started) * 1000:.0f} ms"


async def _branch(stage: Stage, how: str) -> str:
    session = stage.run("", how)[5]
    row: dict[str, Any] = {"state": "running"}
    until = time.monotonic() + BEGIN_S
    while row["state"] == "running" and time.monotonic() < until:
        await asyncio.sleep(0.1)
        rows = await asyncio.to_thread(stage.asked, "/api/agents/runs")
        row = next(each for each in rows if each["session_id"] == session)
    diff = await stage.command("diff", str(row["conversation_id"]), "--stat")
    out, err = await diff.communicate()
    said = out.decode()
    holds = "made.txt" in said and "gone.txt" in said
    untouched = (stage.project / "gone.txt").exists() and not (stage.project / "made.txt").exists()
    if stage.name == "aider":  # it works in one call, which is what was waited for
        return f"{row['state']}; nothing was done yet"
    branch = "branch holds it" if holds else f"BRANCH LACKS IT: {(said or err.decode())[-200:]}"
    return f"{row['state']}; {branch}" + ("" if untouched else "; THE DIRECTORY CHANGED")


async def _continued(stage: Stage, how: str, model: Scripted) -> str:
    model.mode = "fine"
    model.asked.clear()
    client = await stage.command(*stage.run(AGAIN, how, "--timeout", "120"))
    out, err = await client.communicate()
    try:
        answer = json.loads(out)
    except ValueError:
        return f"NOT CONTINUED: {err.decode()[-300:]}"
    knows = any(PROMPT in json.dumps(body) for _, body in model.asked)
    by = "as text" if answer["metadata"].get("history") == "text" else "in its own session"
    if answer["error"] or not knows:
        return f"NOT CONTINUED: {str(answer['error'])[:300]}"
    return f"continued {by}"


def _left(stage: Stage, mark: str, *, all_of_server: bool = False) -> list[int]:
    """Return the processes of the run; with `all_of_server` whatever belongs to the stage."""
    found: list[int] = []
    for pid, env, words in _processes():
        of_run = b"BOWERBIRD_AGENT_RUN=" in env and str(stage.place).encode() in env
        of_stage = all_of_server and str(stage.place).encode() in env + words and b"--server" not in words
        if of_run or mark.encode() in words or of_stage:
            found.append(pid)
    return found


def _in_processes(stage: Stage, mark: str) -> set[str]:
    """Return where processes of the run hold a piece of the key."""
    run = set(_left(stage, mark))
    seen = [(env, words) for pid, env, words in _processes() if pid in run]
    kinds = {"environ": any(PIECE in env for env, _ in seen), "cmdline": any(PIECE in w for _, w in seen)}
    return {kind for kind, holds in kinds.items() if holds}


def _processes() -> list[tuple[int, bytes, bytes]]:
    found: list[tuple[int, bytes, bytes]] = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                found.append(
                    (int(entry.name), (entry / "environ").read_bytes(), (entry / "cmdline").read_bytes())
                )
            except OSError:
                continue  # it has ended
    return found


def _in_files(place: Path) -> set[str]:
    """Return the files below `place` that hold a piece of the key, but the one that is for it."""
    found: set[str] = set()
    for top, folders, names in os.walk(place):
        folders[:] = [f for f in folders if f != "secret" and not Path(top, f).is_symlink()]
        for name in names:
            path = Path(top, name)
            try:
                if path.is_file() and PIECE in path.read_bytes():
                    found.add(str(path.relative_to(place)))
            except OSError:
                continue
    return found
