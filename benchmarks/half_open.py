"""What strangers without a credential can do to a server by connecting only (D-11; security finding 4).

Here: the attacks, one after the other, on a real `bowerbird serve` with `auth: token`, and the printed table.
Not here: the limits (`src/bowerbird/server/common/doorstep.py`).

    python benchmarks/half_open.py [--connections 5000] [--endless 64] [--seconds 15] [--limit 1.0] [--memory 50]

Every attack comes from 127.0.0.1 while `/health` is asked from 127.0.0.2 all the time. Per attack: the slowest
answer, the growth of the server's memory, its descriptors at most, and what was held or sent. Exit code 1 when
an answer took longer than `--limit` seconds or failed, or memory grew by more than `--memory` MiB in all.
`--soft-files` is the soft limit of descriptors that the server is started with, as most systems have it.
"""

import argparse
import asyncio
import contextlib
import logging
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import cast

ATTACKER, PERSON = "127.0.0.1", "127.0.0.2"
HEALTH = b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
PIECE = b"x" * 65_536


@dataclass
class Victim:
    """The server under attack, and what is seen of it."""

    port: int
    pid: int
    slowest_s: float = 0.0
    failed: int = 0
    asked: int = 0
    files: int = 0
    peak_mib: float = 0.0

    def rss_mib(self) -> float:
        """Return the server's resident memory."""
        pages = int(Path(f"/proc/{self.pid}/statm").read_text(encoding="ascii").split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / (1 << 20)

    async def open(self, address: str = ATTACKER) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Connect from one address."""
        return await asyncio.open_connection("127.0.0.1", self.port, local_addr=(address, 0))

    async def ask(self) -> None:
        """Ask for /health from the other address, for ever."""
        while True:
            began = time.perf_counter()
            try:
                async with asyncio.timeout(20):
                    reader, writer = await self.open(PERSON)
                    writer.write(HEALTH)
                    answer = await reader.read()
                    writer.close()
                good = answer.startswith(b"HTTP/1.1 200")
            except (OSError, TimeoutError):
                good = False
            self.asked += 1
            self.failed += not good
            self.slowest_s = max(self.slowest_s, time.perf_counter() - began)
            with contextlib.suppress(OSError):
                self.files = max(self.files, len(os.listdir(f"/proc/{self.pid}/fd")))
                self.peak_mib = max(self.peak_mib, self.rss_mib())
            await asyncio.sleep(0.05)


# ---------------------------------------------------------------- attacks


async def half_open(victim: Victim, options: argparse.Namespace, head: bytes) -> str:
    """Open connections that send a part of a request and one line of it now and then."""
    open_ones: list[asyncio.StreamWriter] = []

    async def one() -> None:
        with contextlib.suppress(OSError):
            _, writer = await victim.open()
            open_ones.append(writer)
            writer.write(head)

    end = time.monotonic() + options.seconds
    for start in range(0, options.connections, 200):
        await asyncio.gather(*(one() for _ in range(start, min(start + 200, options.connections))))
    while time.monotonic() < end:
        await asyncio.sleep(2)
        for writer in open_ones:
            if not writer.transport.is_closing():
                writer.write(b"X-A: b\r\n" if b"Length" not in head else b"a")
    held = len(os.listdir(f"/proc/{victim.pid}/fd"))
    for writer in open_ones:
        writer.transport.abort()
    return f"{len(open_ones)} opened, {held} descriptors in the end"


async def endless(victim: Victim, options: argparse.Namespace, start: bytes, piece: bytes) -> str:
    """Send one thing that never ends."""
    reader, writer = await victim.open()
    sent = 0
    with contextlib.suppress(OSError):
        writer.write(start)
        while sent < options.endless << 20:
            writer.write(piece)
            await writer.drain()
            sent += len(piece)
    answer = b""
    with contextlib.suppress(OSError, TimeoutError):
        async with asyncio.timeout(2):
            answer = await reader.read(64)
    writer.transport.abort()
    status = answer.split(b"\r\n")[0].decode() if answer else "the connection was ended"
    return f"{sent / (1 << 20):.1f} MiB sent; {status}"


async def unread(victim: Victim, options: argparse.Namespace) -> str:
    """Ask for pages again and again and read nothing."""
    writers: list[asyncio.StreamWriter] = []
    ask = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" * 200
    for _ in range(50):
        with contextlib.suppress(OSError):
            _, writer = await victim.open()
            cast(asyncio.ReadTransport, writer.transport).pause_reading()
            writer.write(ask)
            writers.append(writer)
    await asyncio.sleep(5)
    for writer in writers:
        writer.transport.abort()
    return f"{len(writers)} connections with 200 requests each"


LINE = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n"
POST = b"POST /api/chat HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
SOCKET = (
    b"GET /api/chat/x/ws HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Version: 13\r\n"
)
ATTACKS: dict[str, Callable[[Victim, argparse.Namespace], Coroutine[None, None, str]]] = {
    "half requests": partial(half_open, head=LINE),
    "half socket handshakes": partial(half_open, head=SOCKET),
    "slow bodies": partial(half_open, head=POST + b"Content-Length: 1000000\r\n\r\n{"),
    "silence": partial(half_open, head=b""),
    "endless headers": partial(endless, start=LINE, piece=(b"X-A: " + b"b" * 1000 + b"\r\n") * 64),
    "endless value": partial(endless, start=LINE + b"X-A: ", piece=PIECE),
    "endless address": partial(endless, start=b"GET /", piece=PIECE),
    "endless blank lines": partial(endless, start=b"", piece=b"\r\n" * 32_768),
    "endless chunk extension": partial(
        endless, start=POST + b"Transfer-Encoding: chunked\r\n\r\n1;a=", piece=PIECE
    ),
    "endless trailers": partial(
        endless, start=POST + b"Transfer-Encoding: chunked\r\n\r\n0\r\n", piece=b"X-A: bbbbbb\r\n" * 5000
    ),
    "endless handshake": partial(endless, start=SOCKET, piece=(b"X-A: " + b"b" * 1000 + b"\r\n") * 64),
    "endless body": partial(endless, start=POST + b"Content-Length: 99999999999\r\n\r\n", piece=PIECE),
    "unread answers": unread,
}


# ---------------------------------------------------------------- running


@asynccontextmanager
async def victim_of(options: argparse.Namespace, directory: Path) -> AsyncGenerator[Victim]:
    """Start a server and wait until it answers."""
    (directory / "config.yaml").write_text("server:\n  auth: token\n", encoding="utf-8")
    env = {
        **os.environ,
        "HOME": str(directory),
        "LLM_PROVIDER": "anthropic",
        "ANTHROPIC_API_KEY": "fake",
        "ANTHROPIC_BASE_URL": "http://127.0.0.1:9",
        "ENABLE_MEMORY": "false",
        "WORKSPACE_DIR": str(directory / "workspace"),
    }
    command = [sys.executable, "-m", "bowerbird", "--config", str(directory / "config.yaml"), "serve"]
    process = subprocess.Popen(
        [*command, "--port", str(options.port)],
        cwd=directory, env=env, stderr=(directory / "log").open("wb"),
    )  # fmt: skip
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (options.soft_files, hard))
    try:
        victim = Victim(options.port, process.pid)
        async with asyncio.timeout(60):
            while True:
                with contextlib.suppress(OSError):
                    reader, writer = await victim.open(PERSON)
                    writer.write(HEALTH)
                    if (await reader.read()).startswith(b"HTTP/1.1 200"):
                        break
                await asyncio.sleep(0.1)
        await asyncio.sleep(2)  # what a start leaves to be done
        yield victim
    except BaseException:
        sys.stderr.write((directory / "log").read_text(errors="replace")[-2000:])
        raise
    finally:
        process.terminate()
        process.wait(30)


async def measure(options: argparse.Namespace) -> bool:
    """Carry out every attack; whether the server stood them."""
    rows: list[tuple[str, float, float, int, int, str]] = []
    with tempfile.TemporaryDirectory(prefix="half-open-") as name:
        async with victim_of(options, Path(name)) as victim:
            first = victim.rss_mib()
            peak = first
            for attack, carry_out in ATTACKS.items():
                if options.only and attack not in options.only:
                    continue
                victim.slowest_s, victim.failed, victim.files, victim.peak_mib = 0.0, 0, 0, 0.0
                before = victim.rss_mib()
                asking = asyncio.create_task(victim.ask())
                said = await carry_out(victim, options)
                await asyncio.sleep(1)
                asking.cancel()
                await asyncio.wait([asking])
                grown = victim.peak_mib - before
                peak = max(peak, victim.peak_mib)
                rows.append((attack, victim.slowest_s, grown, victim.files, victim.failed, said))
                row = f"{attack:24} slowest {victim.slowest_s:6.2f} s  {grown:+7.1f} MiB"
                print(f"{row}  files {victim.files:5}  failed {victim.failed:3}  {said}", flush=True)
    print(f"memory: {first:.0f} MiB at first, {peak - first:+.1f} MiB at most")
    slow = any(row[1] > options.limit or row[4] for row in rows)
    return not slow and peak - first < options.memory


def main() -> int:
    """Measure, print, and compare with the limits."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--connections", type=int, default=5000)
    parser.add_argument("--endless", type=int, default=64, help="MiB sent by what never ends")
    parser.add_argument("--seconds", type=float, default=15.0, help="that connections are held")
    parser.add_argument("--limit", type=float, default=1.0, help="seconds of the slowest answer")
    parser.add_argument("--memory", type=float, default=50.0, help="MiB of growth in all")
    parser.add_argument("--soft-files", type=int, default=1024)
    parser.add_argument("--port", type=int, default=9941)
    parser.add_argument("--only", action="append", help="an attack by name")
    options = parser.parse_args()
    logging.getLogger("asyncio").setLevel(logging.ERROR)  # connections that were ended are what is measured
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, options.connections * 2 + 500), hard))
    return 0 if asyncio.run(measure(options)) else 1


if __name__ == "__main__":
    sys.exit(main())
