"""Thousands of everything: what a server with many schedules costs (issue 15).

    python benchmarks/assistant_thousands.py [--tasks 1000]

A real `bowerbird serve` on SQLite with a bot and so many active tasks of many owners. Printed: time until it receives,
CPU at rest, lists over HTTP and on the command line, how soon a chat is answered while lists are asked for. Exit code
0 only when each list holds everything. Long conversations: `long_chat.py`.
"""

import argparse
import asyncio
import json
import os
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from support.assistants import Assistant
from support.fake_models import FakeModels
from support.fake_telegram import fake_telegram


def clone_tasks(database: Path, count: int) -> None:
    """Make many active tasks out of the one that is there, due in hours, each owner's at most 100."""
    connection = sqlite3.connect(database)
    names = [row[1] for row in connection.execute("PRAGMA table_info(scheduled_tasks)")]
    row = dict(zip(names, connection.execute("SELECT * FROM scheduled_tasks").fetchone(), strict=True))
    now = datetime.now(UTC)
    for number in range(count - 1):
        due = (now + timedelta(hours=1, seconds=number)).isoformat(timespec="microseconds")
        made = row | {"id": f"{number:08x}", "owner": f"user{number // 100}", "next_run": due}
        values = [made[name] for name in names]
        connection.execute(f"INSERT INTO scheduled_tasks VALUES ({','.join('?' * len(names))})", values)
    connection.commit()
    connection.close()


def cpu_s(pid: int) -> float:
    """Return the seconds of CPU that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Return how long something took, and what it gave."""
    begin = time.monotonic()
    found = work()
    return time.monotonic() - begin, found


async def run(place: Path, tasks: int) -> list[str]:
    """Run it; return what is wrong."""
    wrong: list[str] = []
    with FakeModels() as fake:
        fake.answer(lambda body, _: {"text": f"answer to {len(body['messages'])} messages"})
        async with fake_telegram() as bot:
            assistant = Assistant(place, fake, bot, telegram={"allowed_users": ["7"]})
            try:
                await assistant.run("tasks", "add", "look", "--cron", "0 8 * * 1-5", "--tz", "Europe/Rome")
                await asyncio.to_thread(clone_tasks, place / "data" / "agent.db", tasks)
                begin = time.monotonic()
                assistant.start()
                await bot.until(lambda: bot.of("getUpdates"))
                print(f"with {tasks} tasks it receives after {time.monotonic() - begin:.1f} s")
                assert assistant.process is not None
                before = cpu_s(assistant.process.pid)
                await asyncio.sleep(10)
                print(f"at rest it takes {(cpu_s(assistant.process.pid) - before) * 10:.1f} % of a core")
                log = (place / "serve.log").read_text()
                url = next(word for word in log.split() if word.startswith("http://127"))
                with httpx.Client(base_url=url, timeout=60) as client:
                    took, answer = await asyncio.to_thread(timed, lambda: client.get("/api/schedules"))
                    listed = len(answer.json())
                    print(
                        f"/api/schedules: {listed} tasks, {len(answer.content) >> 10} KiB in {took * 1000:.0f} ms"
                    )
                    begin = time.monotonic()
                    asked = asyncio.create_task(
                        asyncio.to_thread(timed, lambda: client.get("/api/schedules"))
                    )
                    await bot.say("hello")
                    await assistant.until_said("answer to")
                    print(f"a chat is answered in {time.monotonic() - begin:.1f} s meanwhile")
                    await asked
                begin = time.monotonic()
                text = await assistant.run("tasks", "list", "--json")
                print(f"`tasks list`: {len(json.loads(text))} tasks in {time.monotonic() - begin:.1f} s")
                if listed != tasks or len(json.loads(text)) != tasks:
                    wrong.append(f"{listed} and {len(json.loads(text))} of {tasks} tasks are listed")
            finally:
                await asyncio.to_thread(assistant.close)
    return wrong


def main() -> int:
    """Run it and say how it went."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--tasks", type=int, default=1_000)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        wrong = asyncio.run(run(Path(directory), given.tasks))
    for line in wrong:
        print("   ", line)
    print(f"thousands of everything: wrong: {len(wrong)}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
