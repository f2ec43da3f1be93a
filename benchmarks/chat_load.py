"""Many chats at once on a slow model and a Telegram that refuses for a while (issue 15, must show 6).

    python benchmarks/chat_load.py [--chats 200] [--messages 5] [--within 60] [--model-s 2] [--refused 0.05]

A real `bowerbird serve` with a bot on a fake Telegram. Every chat sends its messages within the time given; each
answer takes the model so long; of all messages that the bot sends or edits a share is refused with 429, in storms.
Exit code 0 only when every message was answered once, in its chat's order, and no chat got more than Telegram's
limits allow. Printed: how long answers took from the person's message on, and the server's memory.
"""

import argparse
import asyncio
import json
import random
import re
import sys
import tempfile
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from support.assistants import Assistant
from support.fake_models import FakeModels
from support.fake_telegram import Call, FakeTelegram, fake_telegram

FIRST_CHAT = 1000
COUNTED = ("sendMessage", "editMessageText")
MOST, MOST_OF_CHAT = 30, 1  # in any second
STORM_S, CALM_S = 3.0, 9.0
_ASKED = re.compile(r"question (\d+)\.(\d+)")
_ANSWERED = re.compile(r"answer (\d+)\.(\d+)")


@dataclass
class Load:
    """What was asked and answered, and when."""

    chats: int
    messages: int
    within_s: float
    refused: float
    asked: dict[tuple[int, int], float] = field(default_factory=dict[tuple[int, int], float])
    answered: dict[tuple[int, int], float] = field(default_factory=dict[tuple[int, int], float])
    sent: dict[int, list[float]] = field(default_factory=lambda: defaultdict(list[float]))
    refusals: int = 0
    memory_mb: float = 0.0
    busiest: int = 0
    is_done: asyncio.Event = field(default_factory=asyncio.Event)


class Refusing(FakeTelegram):
    """A Bot API server that keeps times, and refuses in storms."""

    def watch(self, load: Load) -> None:
        self.load, self.random = load, random.Random(1)

    async def _result(self, call: Call, request: Any) -> Any:
        load, now = self.load, asyncio.get_running_loop().time()
        if call.method in COUNTED:
            load.sent[int(call.params["chat_id"])].append(now)
            if now % CALM_S < STORM_S and self.random.random() < load.refused * CALM_S / STORM_S:
                load.refusals += 1
                self.script(call.method, 429, "Too Many Requests: retry after 1", retry_after=1)
                return await super()._result(call, request)
            for found in _ANSWERED.findall(call.text):
                load.answered.setdefault((int(found[0]), int(found[1])), now)
            if len(load.answered) == load.chats * load.messages:
                load.is_done.set()
        return await super()._result(call, request)


def scripted(seconds: float) -> Any:
    """A model that answers after a while."""

    def answer(body: dict[str, Any], _: int) -> dict[str, Any]:
        asked = _ASKED.findall(json.dumps(body["messages"][-1]["content"]))
        return {"text": "answer {}.{}".format(*asked[-1]), "deltas": 4, "gap_s": seconds / 4}

    return answer


async def ask(bot: FakeTelegram, load: Load) -> None:
    """Let every chat ask, spread over the time."""
    loop = asyncio.get_running_loop()
    order = [(n, chat) for n in range(load.messages) for chat in range(load.chats)]
    begin = loop.time()
    for place, (number, chat) in enumerate(order):
        await asyncio.sleep(max(0.0, begin + load.within_s * place / len(order) - loop.time()))
        load.asked[chat, number] = loop.time()
        await bot.say(f"question {chat}.{number}", chat=FIRST_CHAT + chat, user=FIRST_CHAT + chat)


def memory_mb(pid: int) -> float:
    """Return the memory that a process takes."""
    with Path(f"/proc/{pid}/status").open() as status:
        return int(next(line for line in status if line.startswith("VmRSS")).split()[1]) / 1024


async def watch_memory(pid: int, load: Load) -> None:
    """Note the most memory that the server takes."""
    while True:
        load.memory_mb = max(load.memory_mb, memory_mb(pid))
        await asyncio.sleep(0.5)


def most_in_a_second(moments: Iterable[float]) -> int:
    """Return how many of some moments lie in the busiest second."""
    times = sorted(moments)
    return max((bisect_left(times, begin + 1) - place for place, begin in enumerate(times)), default=0)


def wrong_with(bot: FakeTelegram, load: Load) -> list[str]:
    """Say what is not as it must be."""
    found = [f"question {one} is not answered" for one in sorted(load.asked.keys() - load.answered.keys())]
    shown: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for (chat, message), known in bot.messages.items():
        shown[chat - FIRST_CHAT] += [(message, int(n)) for _, n in _ANSWERED.findall(str(known["source"]))]
    for chat, answers in shown.items():
        numbers = [number for _, number in sorted(answers)]
        if numbers != list(range(load.messages)):
            found.append(f"chat {chat} shows answers {numbers}")
    load.busiest = busiest = most_in_a_second(at for sent in load.sent.values() for at in sent)
    if busiest > MOST:
        found.append(f"{busiest} messages in one second")
    for chat, sent in load.sent.items():
        if (most := most_in_a_second(sent)) > MOST_OF_CHAT:
            found.append(f"chat {chat - FIRST_CHAT}: {most} messages in one second")
    return found


async def run(given: argparse.Namespace) -> tuple[Load, list[str]]:
    """Run it."""
    load = Load(given.chats, given.messages, given.within, given.refused)
    users = [str(FIRST_CHAT + chat) for chat in range(load.chats)]
    with tempfile.TemporaryDirectory() as directory, FakeModels() as fake:
        fake.answer(scripted(given.model_s))
        async with fake_telegram(Refusing) as bot:
            assert isinstance(bot, Refusing)
            bot.watch(load)
            assistant = Assistant(
                Path(directory), fake, bot, telegram={"allowed_users": users, "stream_interval": 1.0},
                more={"limits": {"parallel_turns": given.parallel}},
            )  # fmt: skip
            try:
                assistant.start()
                await bot.until(lambda: bot.of("getUpdates"))
                assert assistant.process is not None
                memory = asyncio.create_task(watch_memory(assistant.process.pid, load))
                await ask(bot, load)
                async with asyncio.timeout(given.patience):
                    await load.is_done.wait()
                memory.cancel()
            except TimeoutError:
                pass
            finally:
                await asyncio.to_thread(assistant.close)
            return load, wrong_with(bot, load)


def main() -> int:
    """Run it and say how it went."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--chats", type=int, default=200)
    parser.add_argument("--messages", type=int, default=5)
    parser.add_argument("--within", type=float, default=60.0)
    parser.add_argument("--model-s", type=float, default=2.0)
    parser.add_argument("--refused", type=float, default=0.05)
    parser.add_argument("--parallel", type=int, default=64)
    parser.add_argument("--patience", type=float, default=300.0)
    load, wrong = asyncio.run(run(parser.parse_args()))
    took = sorted(load.answered[one] - load.asked[one] for one in load.answered)
    if took:
        middle, most = took[len(took) // 2], took[len(took) * 9 // 10]
        print(
            f"{load.chats} chats, {len(load.asked)} messages in {load.within_s:.0f} s, {load.refusals} refused by "
            f"Telegram; answers after: median {middle:.1f} s, 90 % {most:.1f} s, longest {took[-1]:.1f} s; "
            f"at most {load.busiest} calls in a second; the server took at most {load.memory_mb:.0f} MB; wrong: {len(wrong)}"
        )
    for line in wrong[:30]:
        print("   ", line)
    return 1 if wrong or not took else 0


if __name__ == "__main__":
    sys.exit(main())
