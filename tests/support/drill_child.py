"""A process that carries out a list of operations on one data directory and can die at any write point.

As a program it is a server of such processes, like `crash_child`, whose kill points it has too:

    lease / leased          before and after the commit that takes a session's lease
    snapshot                in the transaction of an end, after its snapshot row
    outbox                  in that transaction, after the rows of what must be delivered
    sending / delivered     before a part is sent; after it was, before the receipt
    counter / new session   in the transaction of a reset, after each half
    forked                  the branch of a fork is there, its session is not
    buried                  a session is deleted, its branch not yet in the trash
    imported                in the transaction of an import
    summarised              after the summary came, before its record

Operations: `{"do": "message", "n": 3}`, `reset`, `fork`, `delete`, `import`, `undo`. Each may be asked for
again after a crash and does then what is missing.
"""

import asyncio
import contextlib
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

if not __package__:
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from support import crash_child
from support.agent_turns import NAME
from support.crash_child import Killer, arm, point_landings, sender
from support.patience import HANG_S
from support.sessions import PlainMaker

from bowerbird.agent.policy import Policy
from bowerbird.agent.turn import TurnRun
from bowerbird.agent.turn_loop import summarise
from bowerbird.models import ModelSettings, ProviderSettings, RetryPolicy
from bowerbird.models.registry import open_model
from bowerbird.sessions import (
    NewSession,
    Parcel,
    SessionService,
    SessionSettings,
    TurnContext,
    catalogue,
    forks,
)
from bowerbird.sessions.branches.branches import Branches
from bowerbird.sessions.delivery import outbox as outbox_module
from bowerbird.sessions.dispatch import lease
from bowerbird.sessions.transfer import importing
from bowerbird.sessions.turn import begin_transaction, end_transaction, finish
from bowerbird.store import Store, StoreOptions

THREAD = "telegram_5"
CHAT = "telegram"


@dataclass
class DrillMaker(PlainMaker):
    """Summarises the history in every third turn."""

    async def make(self, context: TurnContext) -> TurnRun:
        run = await super().make(context)
        return msgspec.structs.replace(run, compact="") if context.turn.n % 3 == 0 else run


class Door:
    """A chat whose messages are lines of a file."""

    door = CHAT

    def __init__(self, path: Path, killer: Killer | None) -> None:
        self._path = path
        self._killer = killer

    def parts(self, text: str) -> Sequence[Mapping[str, Any]]:
        return [{"text": text}, {"text": "(end)"}]

    async def send(self, address: str, parcel: Parcel, key: str) -> str | None:
        if self._killer is not None:
            self._killer.at("sending")
        with self._path.open("a") as file:
            file.write(json.dumps([key, parcel.content["text"]]) + "\n")
        if self._killer is not None:
            self._killer.at("delivered")
        return key


def _after(owner: Any, name: str, hit: Any) -> None:
    crash_child._wrapped(owner, name, after=lambda *_: hit())


def arm_more(killer: Killer) -> None:
    """Put the further kill points where they belong."""
    _after(begin_transaction, "take_lease", lambda: killer.at("lease"))
    _after(end_transaction, "insert_snapshot", lambda: killer.at("snapshot"))
    _after(finish, "insert_parcels", lambda: killer.at("outbox"))
    _after(catalogue, "raise_counter", lambda: killer.at("counter"))
    _after(catalogue, "insert_session", lambda: killer.at("new session"))
    _after(importing, "insert_dialogue", lambda: killer.at("imported"))
    crash_child._wrapped(forks, "insert_session", before=lambda *_: killer.at("forked"))
    for owner, name, point in (
        (Branches, "discard", "buried"), (lease.Lease, "confirm", "leased"), (summarise, "complete", "summarised"),
    ):  # fmt: skip
        original = getattr(owner, name)

        async def call(
            *arguments: Any, _original: Any = original, _point: str = point, **options: Any
        ) -> Any:
            if _point == "buried":
                killer.at(_point)
            result = await _original(*arguments, **options)
            killer.at(_point)
            return result

        setattr(owner, name, call)


async def drive(config: dict[str, Any]) -> None:
    """Carry out `config["operations"]` in order."""
    killer = Killer(config["kill"]) if config.get("kill") else None
    if killer is not None:
        arm(killer)
        point_landings(killer)
        arm_more(killer)
    if config["operations"] == [{"do": "undo"}]:
        await asyncio.to_thread(undo, config)
        return
    settings = ModelSettings(
        providers={"anthropic": ProviderSettings(api_key="test-key", base_url=config["models"])},
        retry=RetryPolicy(retries=0),
    )
    tools = (sender(Path(config["outside"])),)
    maker = DrillMaker(settings, tools, Policy.of({"allow": ["send"]}), model=open_model(NAME, settings))
    store = await Store.open(
        config["url"], data_dir=Path(config["data"]), options=StoreOptions(min_free_mb=0)
    )
    times = SessionSettings(max_attempts=100_000)  # nobody resumes by hand here
    outbox_module.LOOK_EVERY_S = 0.05
    try:
        service = SessionService(store, maker, settings=times, attended=False)
        service.outbox.serve(Door(Path(config["delivered"]), killer))
        async with service:
            for operation in config["operations"]:
                await OPERATIONS[operation["do"]](service, config, operation)
            await delivered(service)
    finally:
        await maker.aclose()
        await store.aclose()


async def message(service: SessionService, config: dict[str, Any], operation: dict[str, Any]) -> None:
    """Send the n-th message and wait for its end; the session is made with the first."""
    with contextlib.suppress(Exception):
        await service.create(
            NewSession(
                thread_id=THREAD, kind="chat", channel=CHAT, chat_id="5", workspace=config["project"],
                policy=config["policy"],
            )
        )  # fmt: skip
    number = operation["n"]
    receipt = await service.submit(
        THREAD, f"Message {number} [[drill {number}]]", CHAT, dedupe_key=f"m{number}"
    )
    turn = await service.wait(receipt.turn_id)
    if turn.state == "failed":
        turn = await service.resume(turn.turn_id)
        turn = await service.wait(turn.turn_id)
    print(number, turn.state, turn.stop_reason, turn.error, file=sys.stderr)


async def reset(service: SessionService, _: dict[str, Any], operation: dict[str, Any]) -> None:
    if await service.thread_of(CHAT, "77") != f"telegram_77_s{operation['n']}":
        await service.reset(CHAT, "77")


async def fork(service: SessionService, _: dict[str, Any], operation: dict[str, Any]) -> None:
    title = f"fork {operation['n']}"
    if not any(found.title == title for found in await service.list()):
        await service.fork(THREAD, title=title)


async def delete(service: SessionService, _: dict[str, Any], operation: dict[str, Any]) -> None:
    for found in await service.list():
        if found.title == f"fork {operation['n']}":
            await service.delete(found.thread_id)


async def take_in(service: SessionService, config: dict[str, Any], operation: dict[str, Any]) -> None:
    await importing.import_state(service.store, Path(config["imports"]) / str(operation["n"]))


def undo(config: dict[str, Any]) -> None:
    """Take the newest landing back, unless that was done before."""
    from bowerbird.workspace import Workspace

    workspace = Workspace(config["project"], data_dir=Path(config["data"]))
    try:
        newest = workspace.landings()[-1]
        if newest.kind != "undo":
            workspace.undo(newest.id)
    finally:
        workspace.close()


async def delivered(service: SessionService) -> None:
    """Wait until nothing is owed."""
    from bowerbird.store.rows.outbox import OPEN, parcels

    async with asyncio.timeout(HANG_S):
        while await service.store.read(lambda c: parcels(c, states=OPEN)):
            service.outbox.look()
            await asyncio.sleep(0.005)


OPERATIONS: dict[str, Any] = {
    "message": message, "reset": reset, "fork": fork, "delete": delete, "import": take_in,
}  # fmt: skip

if __name__ == "__main__":
    crash_child.serve(drive)
