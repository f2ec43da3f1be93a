"""Two servers on one PostgreSQL database and one bot: one polls at a time, and when it dies the other takes over.

    python benchmarks/chat_servers.py [--kills 3]

Real `bowerbird serve` processes on a fake Telegram. The one that polls is killed with SIGKILL while messages
arrive. Exit code 0 only when the answers came in order, at most one a kill twice, and no server met another one
that polled.
"""

import argparse
import asyncio
import copy
import json
import re
import signal
import sys
import tempfile
import time
from contextlib import ExitStack
from itertools import groupby
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from sqlalchemy import select
from support.assistants import Assistant
from support.fake_models import FakeModels
from support.fake_telegram import fake_telegram
from support.patience import patience
from support.postgres import postgres_server

from bowerbird.store import Store, StoreOptions
from bowerbird.store.sql.tables import meta

CHAT = 7
WAIT_S, LOOK_S = patience(30), 0.05
_ASKED = re.compile(r"question (\d+)")
_ANSWERED = re.compile(r"answer (\d+)")


def scripted(body: dict[str, Any], _: int) -> dict[str, Any]:
    """A model that answers the newest question."""
    asked = _ASKED.findall(json.dumps(body["messages"][-1]["content"]))
    return {"text": f"answer {asked[-1]}"}


async def holder(store: Store) -> int:
    """Return the process that polls, 0 for none."""
    rows = await store.read(
        lambda c: c.scalars(select(meta.c.value).where(meta.c.key.like("lease:telegram:%"))).all()
    )
    return int(rows[0].split()[1].partition("-")[0]) if rows else 0


async def run(kills: int, url: str, place: Path) -> tuple[list[str], list[float]]:
    """Return what is wrong, and how long each takeover took."""
    took: list[float] = []
    number = 0
    with FakeModels() as fake:
        fake.answer(scripted)
        async with fake_telegram() as bot:
            one = Assistant(
                place, fake, bot, telegram={"allowed_users": [str(CHAT)]}, more={"store": {"url": url}}
            )
            two = copy.copy(one)
            servers = [one, two]

            def answers() -> list[int]:
                shown = sorted(
                    (message, str(known["source"])) for (_, message), known in bot.messages.items()
                )
                return [int(found) for _, text in shown for found in _ANSWERED.findall(text)]

            async def until_answered(last: int) -> None:
                for _ in range(int(WAIT_S / LOOK_S)):
                    if answers()[-1:] == [last]:
                        return
                    await asyncio.sleep(LOOK_S)
                raise TimeoutError(f"question {last} is not answered")

            store: Store | None = None
            try:
                for server in servers:
                    server.start()
                await bot.until(lambda: bot.of("getUpdates"))
                store = await Store.open(url, data_dir=place / "look", options=StoreOptions(min_free_mb=0))
                for _ in range(kills):
                    number += 1
                    await bot.say(f"question {number}", chat=CHAT, user=CHAT)
                    await until_answered(number)
                    pid = await holder(store)
                    dead = next(s for s in servers if s.process is not None and s.process.pid == pid)
                    number += 1
                    await bot.say(f"question {number}", chat=CHAT, user=CHAT)
                    await asyncio.to_thread(dead.kill, signal.SIGKILL)
                    begun = time.monotonic()
                    await until_answered(number)
                    took.append(time.monotonic() - begun)
                    dead.start()
            finally:
                if store is not None:
                    await store.aclose()
                for server in servers:
                    await asyncio.to_thread(server.close)
            # A part whose arrival was not noted before the kill comes once more.
            once = [first for first, _ in groupby(answers())]
            is_right = once == list(range(1, number + 1)) and len(answers()) - len(once) <= kills
            wrong = [] if is_right else [f"the chat shows {answers()}"]
            log = (place / "serve.log").read_text(errors="replace")
            wrong += ["two programs polled at the same time"] if "polls with the same token" in log else []
            return wrong, took


def main() -> int:
    """Run it and say how it went."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--kills", type=int, default=3)
    given = parser.parse_args()
    with ExitStack() as stack:
        place = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        url = asyncio.run(stack.enter_context(postgres_server()).database())
        wrong, took = asyncio.run(run(given.kills, url, place))
    times = ", ".join(f"{seconds:.1f} s" for seconds in took)
    print(
        f"{len(took)} kills of the server that polls; the other answered after {times}; wrong: {len(wrong)}"
    )
    for line in wrong:
        print("   ", line)
    return 1 if wrong or not took else 0


if __name__ == "__main__":
    sys.exit(main())
