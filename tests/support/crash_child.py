"""A process that drives one scripted turn and can kill itself at a named write point.

As a program it is a server of such processes: it drives a first turn itself, so that everything
is imported, then forks a child for each line of JSON on its input, so that a test can afford
hundreds of real kills. For each child it prints its pid, and its wait status when it has ended.

Kill points, `name` or `name:number` (the n-th time, 1 = the first):

    before TYPE     inside the transaction that appends a record of TYPE, before its commit
    after TYPE      after that commit, before anything else
    submit          after the rows of a submit were written, before their commit
    submitted       after that commit, before the receipt reaches the caller
    tool            after a file tool changed the branch, before its outcome
    settled         before a call's saved entries are dropped
    frozen          after the branch was frozen, before the end is recorded
    landing POINT   at a write point of a landing
    any:NUMBER      at the so-manieth point of any name
"""

import asyncio
import json
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

if not __package__:
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from support.agent_turns import NAME
from support.sessions import PlainMaker

from bowerbird.core.errors import SessionError
from bowerbird.models import ModelSettings, ProviderSettings, RetryPolicy
from bowerbird.models.registry import open_model
from bowerbird.sessions import NewSession, SessionService, SessionSettings
from bowerbird.sessions.inbox import accept as session_inputs
from bowerbird.sessions.turn import begin_on_accept as session_early
from bowerbird.store import Store, StoreOptions
from bowerbird.store.journal import journal
from bowerbird.store.journal.group_commit import SqliteCommitter
from bowerbird.store.postgres import PgCommitter
from bowerbird.tools import Tool
from bowerbird.workspace.branch import Branch
from bowerbird.workspace.files.file_branch import BranchFiles


class Killer:
    """Counts how often each point was passed and dies at the chosen one."""

    def __init__(self, point: str) -> None:
        self._name, _, number = point.partition(":")
        self._left = int(number or 1)

    def at(self, name: str) -> None:
        if self._name in (name, "any"):
            self._left -= 1
            if self._left == 0:
                os.kill(os.getpid(), signal.SIGKILL)


def _wrapped(owner: Any, name: str, *, before: Any = None, after: Any = None) -> None:
    original = getattr(owner, name)

    def call(*arguments: Any, **options: Any) -> Any:
        if before is not None:
            before(*arguments)
        result = original(*arguments, **options)
        if after is not None:
            after(*arguments)
        return result

    setattr(owner, name, call)


def arm(killer: Killer) -> None:
    """Put the kill points where they belong."""
    written: list[str] = []

    def rows_written(_: Any, rows: Any) -> None:
        for row in rows.records:
            written.append(row[5])
            killer.at(f"before {row[5]}")

    def committed(*_: Any) -> None:
        names, written[:] = list(written), []
        for name in names:
            killer.at(name if name == "submitted" else f"after {name}")

    def accepted(*_: Any) -> None:
        written.append("submitted")
        killer.at("submit")

    _wrapped(journal, "_execute", after=rows_written)
    _wrapped(SqliteCommitter, "_commit", after=committed)
    _arm_postgres(committed)
    _wrapped(session_inputs, "accept", after=accepted)
    session_early.accept = session_inputs.accept
    _wrapped(BranchFiles, "settle", before=lambda *_: killer.at("settled"))
    _wrapped(Branch, "end_turn", after=lambda *_: killer.at("frozen"))
    for name in ("write_file", "edit_file"):
        original = getattr(BranchFiles, name)

        async def tool(*arguments: Any, _original: Any = original, **options: Any) -> Any:
            result = await _original(*arguments, **options)
            killer.at("tool")
            return result

        setattr(BranchFiles, name, tool)


def _arm_postgres(committed: Callable[..., None]) -> None:
    original = PgCommitter._once

    async def once(*arguments: Any) -> Any:
        result = await original(*arguments)
        committed()
        return result

    PgCommitter._once = once  # type: ignore[method-assign]


def sender(outside: Path) -> Tool:
    """An external effect that can be counted: a line in a file outside of every branch."""

    async def send(text: str) -> str:
        """Send a text into the world.

        Args:
            text: What to send.
        """
        with outside.open("a") as file:
            file.write(f"{text}\n")
        return "sent"

    return Tool(send, effect="outside")


def point_landings(killer: Killer) -> None:
    """Landings take their checkpoint as a default value, bound when the module was imported."""
    from bowerbird.workspace.landing.landings import Landings

    original = Landings.__init__

    def init(self: Any, registry: Any, checkpoint: Any = None) -> None:
        original(self, registry, lambda name: killer.at(f"landing {name.split(' ')[0]}"))

    Landings.__init__ = init  # type: ignore[method-assign]


async def drive(config: dict[str, Any]) -> None:
    """Submit the turn, or go on with it, and wait until it stops."""
    from bowerbird.agent.policy import Policy

    if config.get("kill"):
        killer = Killer(config["kill"])
        arm(killer)
        point_landings(killer)
    data = Path(config["data"])
    settings = ModelSettings(
        providers={"anthropic": ProviderSettings(api_key="test-key", base_url=config["models"])},
        retry=RetryPolicy(retries=0),
    )
    model = open_model(NAME, settings)
    maker = PlainMaker(
        settings, (sender(Path(config["outside"])),), Policy.of({"allow": ["send"]}), model=model
    )
    store = await Store.open("sqlite:///agent.db", data_dir=data, options=StoreOptions(min_free_mb=0))
    try:
        async with SessionService(store, maker, settings=SessionSettings(), attended=False) as service:
            thread = config["thread"]
            try:
                await service.get(thread)
            except SessionError:
                await service.create(
                    NewSession(thread_id=thread, workspace=config["project"], policy=config["policy"])
                )
            receipt = await service.submit(thread, config["text"], dedupe_key="the turn")
            turn = await service.turn(receipt.turn_id)
            if turn.state == "failed" and config["resumes"]:
                await service.resume(turn.turn_id)
            turn = await service.wait(receipt.turn_id)
            print(turn.state, turn.stop_reason, turn.error, file=sys.stderr)
    finally:
        await maker.aclose()
        await store.aclose()


def serve(drive: Callable[[dict[str, Any]], Coroutine[Any, Any, None]]) -> None:
    """Drive a first scene, then fork a child for each further one."""
    asyncio.run(drive(json.loads(sys.stdin.readline())))
    assert threading.active_count() == 1, "a child inherits one thread only"
    for line in sys.stdin:
        config = json.loads(line)
        pid = os.fork()
        if pid == 0:
            log = os.open(config["log"], os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)
            os.dup2(log, 1)
            os.dup2(log, 2)
            code = 0
            try:
                asyncio.run(drive(config))
            except BaseException:  # noqa: BLE001  the log is how a test learns of it
                traceback.print_exc()
                code = 1
            sys.stderr.flush()
            os._exit(code)
        print(pid, flush=True)
        print(os.waitpid(pid, 0)[1], flush=True)


if __name__ == "__main__":
    serve(drive)
