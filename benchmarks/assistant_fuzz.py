"""Rubbish at every door of the assistant: nothing is dropped, nothing fails inside, nothing happens (must show 4).

    python benchmarks/assistant_fuzz.py [--count 10000] [--seed 1]

Real processes: a server with a bot gets that many malformed updates and as many presses with malformed data; a host
gateway as many bodies; a server as many SKILL.md and archives, half of them each. Exit code 0 only when every
request was answered without a 5xx, no file, landing or turn came of it, and each door works as before afterwards.
"""

import argparse
import asyncio
import contextlib
import io
import json
import random
import sqlite3
import string
import sys
import tempfile
import time
import zipfile
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import aiohttp
import httpx

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from support.assistants import Assistant
from support.fake_models import FakeModels
from support.fake_telegram import FakeTelegram, fake_telegram
from support.gateways import TOKEN, Running
from support.servers import serve

ODD = (
    "",
    "\0",
    "\ud800",
    "🦜" * 40,
    "../..",
    "-1",
    "NaN",
    "${HOME}",
    "⟦from⟧",
    "<b>",
    "A" * 5_000,
    "\n",
    "' OR 1=1 --",
)
SKILL = "---\nname: greet\ndescription: Says hello.\nrequires_env: HOME\n---\nHello.\n"


def odd(at: random.Random, depth: int = 0) -> Any:
    """Return any JSON value."""
    kind = at.randrange(9 if depth < 3 else 6)
    if kind >= 6:
        values = [odd(at, depth + 1) for _ in range(at.randrange(4))]
        return values if kind == 6 else {word(at): value for value in values}
    return (
        None,
        at.random() < 0.5,
        at.randrange(-(2**40), 2**63),
        at.random() * 1e9,
        word(at),
        at.choice(ODD),
    )[kind]


def word(at: random.Random) -> str:
    """Return a short text."""
    return "".join(at.choices(string.printable, k=at.randrange(12)))


def broken(value: Any, at: random.Random) -> Any:
    """Return a JSON value with one place of it replaced, removed or added to."""
    if isinstance(value, dict) and value and at.random() < 0.9:
        name = at.choice(list(value))
        changed = dict(value)
        if at.random() < 0.2:
            del changed[name]
        else:
            changed[name] = broken(value[name], at)
        return changed
    if isinstance(value, list) and value and at.random() < 0.7:
        place = at.randrange(len(value))
        return [*value[:place], broken(value[place], at), *value[place + 1 :]]
    return odd(at)


def cut(data: bytes, at: random.Random) -> bytes:
    """Return bytes with some of them changed, cut off or doubled."""
    changed = bytearray(data)
    for _ in range(at.randrange(1, 6)):
        if changed:
            place = at.randrange(len(changed))
            changed[place : place + at.choice((0, 1, 1, 1, 40))] = at.randbytes(at.choice((0, 1, 1, 3)))
    return bytes(changed[: at.randrange(len(changed) + 1)] if at.random() < 0.2 else changed)


# ---------------------------------------------------------------- Telegram


async def telegram(place: Path, count: int, at: random.Random) -> tuple[str, list[str]]:
    """Send updates and presses of any form to a bot whose one summary can be landed."""
    wrong: list[str] = []
    with FakeModels() as fake:
        async with fake_telegram() as bot:
            assistant = Assistant(
                place, fake, bot, telegram={"allowed_users": ["7", {"id": "8", "role": "guest"}]}
            )
            try:
                assistant.start()
                call = {"name": "write_file", "input": {"path": "a.txt", "content": "x\n"}}
                fake.script({"tools": [call]}, {"text": "written"})
                await bot.say("write")
                await assistant.until_said("a.txt</code>")
                card = next(one for one in bot.messages.values() if "a.txt</code>" in one["source"])
                turns = count_turns(place)
                for begin in range(0, count, 500):
                    await bot.put(*(update(bot, card, at) for _ in range(min(500, count - begin) * 2)))
                    number = bot._next_update
                    await bot.until(lambda number=number: bot.offset > number)
                if list(assistant.workspace.iterdir()):
                    wrong.append("a malformed press landed something")
                if (now := count_turns(place)) != turns:  # the model is asked for summaries, too
                    wrong.append(f"{now - turns} turns came of malformed updates")
                shown = next(one for one in assistant.said() if "a.txt</code>" in one.text)
                await assistant.press(shown, "Land")
                await assistant.until_said("Landed 1 file")
                answered = len(bot.of("answerCallbackQuery"))
                return f"{2 * count} updates and presses, {answered} presses answered", wrong
            finally:
                await asyncio.to_thread(assistant.close)


def count_turns(place: Path) -> int:
    """Return how many turns a server has made."""
    connection = sqlite3.connect(f"file:{place / 'data' / 'agent.db'}?mode=ro", uri=True, timeout=30)
    with contextlib.closing(connection):
        return int(connection.execute("SELECT count(*) FROM turns").fetchone()[0])


def update(bot: FakeTelegram, card: dict[str, Any], at: random.Random) -> Any:
    """Return an update that is none, or a press with data that is none."""
    bot._next_update += 1
    number = bot._next_update
    user = at.choice((7, 8, 666))
    good = card["markup"]["inline_keyboard"][0][0]["callback_data"]
    kind, verb, key = good.split(":")
    if at.random() < 0.5:
        data = at.choice((
            word(at), at.choice(ODD), good[:-1], good + word(at) + "x", f"{kind}:{verb}:{key[::-1]}",
            f"{kind}:discardall:{key}", f"{kind.upper()}:{verb}:{key}", f"landed:undo:{key}", ":".join((word(at),) * 3),
        ))  # fmt: skip
        press = {
            "id": f"q{number}", "from": {"id": user, "is_bot": False, "first_name": "Ann"}, "chat_instance": "1",
            "data": data, "message": card["message"],
        }  # fmt: skip
        return {
            "update_id": number,
            "callback_query": press if at.random() < 0.7 else broken_press(press, at),
        }
    message = {
        "message_id": number, "date": 1_790_000_000, "chat": {"id": 666, "type": "private"},
        "from": {"id": 666, "is_bot": False, "first_name": "Eve"}, "text": "hello", "entities": [],
        "photo": [{"file_id": "p", "file_unique_id": "p", "width": 1, "height": 1}],
    }  # fmt: skip
    whole = broken(message, at)
    return {"update_id": number, at.choice(("message", "callback_query", "edited_message", word(at))): whole}


def broken_press(press: dict[str, Any], at: random.Random) -> Any:
    """Return a malformed press that is never the good one."""
    changed = broken(press, at)
    return changed if not isinstance(changed, dict) or changed.get("data") != "" else {}


# ---------------------------------------------------------------- gateway


async def gateway(place: Path, count: int, at: random.Random) -> tuple[str, list[str]]:
    """Send bodies of any form to a gateway whose one command leaves a mark."""
    mark = place / "mark"
    bridge = {"allowed_commands": ["touch"], "allowed_cwd": [str(place)], "token": TOKEN}
    running = Running(place, {"bridges": {"tools": bridge}})
    body = {
        "bridge": "tools",
        "cmd": ["touch", str(mark)],
        "cwd": None,
        "timeout": 5,
        "stdin": None,
        "stream": False,
    }
    statuses: Counter[int] = Counter()
    wrong: list[str] = []
    connector = aiohttp.UnixConnector(str(running.socket), limit=6)
    try:
        async with aiohttp.ClientSession(connector=connector) as session:

            async def one() -> None:
                # No command is left in it that a person would have meant.
                changed = broken(
                    body | {"cmd": [at.choice(("touch ", "/usr/bin/touch", word(at))), str(mark)]}, at
                )
                text = json.dumps(changed).encode("utf-8", "surrogatepass")
                data = cut(text, at) if at.random() < 0.4 else text
                headers = {"Authorization": f"Bearer {TOKEN}"} if at.random() < 0.9 else {}
                try:
                    async with session.post("http://gateway/execute", data=data, headers=headers) as answer:
                        said = await answer.text()
                        statuses[answer.status] += 1
                        if answer.status >= 500 or (answer.status >= 400 and "error" not in json.loads(said)):
                            wrong.append(f"gateway: {answer.status} for {data[:200]!r}")
                except (aiohttp.ClientError, ValueError) as error:
                    wrong.append(f"gateway: {error!r} for {data[:200]!r}")

            for begin in range(0, count, 6):
                await asyncio.gather(*(one() for _ in range(min(6, count - begin))))
            if mark.exists():
                wrong.append("gateway: a malformed body ran its command")
            status, _ = await running.answer(body)
            if status != 200 or not mark.exists():
                wrong.append(f"gateway: afterwards a good body gets {status}")
    finally:
        await asyncio.to_thread(running.stop)
    return f"{count} bodies: {dict(sorted(statuses.items()))}", wrong


# ---------------------------------------------------------------- skills


async def skills(place: Path, count: int, at: random.Random) -> tuple[str, list[str]]:
    """Send skills as JSON and as archives of any form."""
    return await asyncio.to_thread(_skills, place, count, at)


def _skills(place: Path, count: int, at: random.Random) -> tuple[str, list[str]]:
    statuses: Counter[int] = Counter()
    wrong: list[str] = []
    with serve(place) as server, server.http as client:
        outside = _tree(place / "ws", "skills")
        for number in range(count):
            answer = _archive(client, at) if number % 2 else _text(client, at)
            statuses[answer.status_code] += 1
            if answer.status_code >= 500:
                wrong.append(f"skills: {answer.status_code} {answer.text[:200]}")
            if answer.status_code == 200 and number % 50 == 0:
                client.get("/api/skills", params={"all": True}).raise_for_status()
        if _tree(place / "ws", "skills") != outside:
            wrong.append("skills: something was written beside the skills")
        if client.get("/api/skills", params={"all": True}).status_code != 200:
            wrong.append("skills: afterwards they cannot be listed")
    return f"{count} skills and archives: {dict(sorted(statuses.items()))}", wrong


def _text(client: httpx.Client, at: random.Random) -> httpx.Response:
    body = {"name": "greet", "description": "Says hello.", "body": "Hello."}
    text = json.dumps(broken(body, at)).encode("utf-8", "surrogatepass")
    data = cut(text, at) if at.random() < 0.3 else text
    headers = {"content-type": "application/json"}
    return client.post("/api/skills", params={"overwrite": True}, content=data, headers=headers)


def _archive(client: httpx.Client, at: random.Random) -> httpx.Response:
    content = io.BytesIO()
    names = ("SKILL.md", "scripts/run.sh", "../out", "/etc/x", "a\\b", "greet/SKILL.md", word(at))
    with zipfile.ZipFile(content, "w", at.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))) as archive:
        archive.writestr("SKILL.md", cut(SKILL.encode(), at) if at.random() < 0.5 else SKILL)
        for name in at.sample(names[1:], at.randrange(3)):
            archive.writestr(zipfile.ZipInfo(name.replace("\0", "") or "x"), at.randbytes(at.randrange(200)))
    data = cut(content.getvalue(), at) if at.random() < 0.6 else content.getvalue()
    files = {"files": ("s.zip", data, "application/zip")}
    return client.post("/api/skills/archive", params={"overwrite": True}, files=files)


def _tree(place: Path, without: str) -> set[str]:
    return {str(path) for path in place.iterdir() if path.name not in (without, ".agent")}


# ---------------------------------------------------------------- all


DOORS: dict[str, Callable[[Path, int, random.Random], Awaitable[tuple[str, list[str]]]]] = {
    "telegram": telegram, "gateway": gateway, "skills": skills,
}  # fmt: skip


def main() -> int:
    """Run it and say how it went."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--door", choices=tuple(DOORS))
    given = parser.parse_args()
    wrong: list[str] = []
    for name, door in DOORS.items():
        if given.door in (None, name):
            begin = time.monotonic()
            with tempfile.TemporaryDirectory() as directory:
                said, found = asyncio.run(door(Path(directory), given.count, random.Random(given.seed)))
            print(f"{name}: {said}; {time.monotonic() - begin:.0f} s; wrong: {len(found)}", flush=True)
            wrong += found
    for line in wrong[:30]:
        print("   ", line)
    tried = [name for name in DOORS if given.door in (None, name)]
    print(f"rubbish at {', '.join(tried)}, {given.count} each: wrong: {len(wrong)}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
