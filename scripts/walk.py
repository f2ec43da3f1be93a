"""The walk of one message and of one landing: our files, in the order in which they are first entered.

Here: a real server that is traced while one turn runs (a message over the socket, one `write_file`, an
answer) and while its change lands over REST. Not here: a judgement; the figures are compared by hand.

    python scripts/walk.py [--src OTHER_CHECKOUT/src]

A hop goes up when a function of a lower floor calls into a higher one, mostly through a callback or a
protocol; each pair of files counts once. The floors are the `layers` contracts of `pyproject.toml` beside the
traced `src`: of packages, and of the folders of a package. Threads are traced too, so that a function that
`core/threads.py` or the store runs for its caller is a hop up.
"""

import argparse
import asyncio
import sys
import tempfile
import threading
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
OPTIMIZED = 1  # set in functions, not in modules and class bodies, which run on import


class Floors:
    """How high each package and each folder of a package stands."""

    def __init__(self, pyproject: Path) -> None:
        contracts = tomllib.loads(pyproject.read_text(encoding="utf-8"))["tool"]["importlinter"]["contracts"]
        self._height: dict[tuple[str, ...], int] = {}
        for contract in contracts:
            for depth, names in enumerate(reversed(contract.get("layers", []))):
                for name in names.split("|"):
                    self._height[tuple(name.strip(" ()").split(".")[1:])] = depth

    def is_up(self, caller: str, called: str) -> bool:
        """Whether a call from one file into another goes to a higher floor."""
        low, high = Path(caller).with_suffix("").parts, Path(called).with_suffix("").parts
        for depth in (1, 2):
            below, above = self._height.get(low[:depth]), self._height.get(high[:depth])
            if low[:depth] != high[:depth]:
                return below is not None and above is not None and above > below
        return False


class Walk:
    """Files in the order of entry, and the calls between them."""

    def __init__(self, source: Path) -> None:
        self._prefix = f"{source.resolve()}/bowerbird/"
        self._on = False
        self.files: dict[str, None] = {}
        self.calls: dict[tuple[str, str], None] = {}

    def _name(self, frame: FrameType) -> str | None:
        path = frame.f_code.co_filename
        return path[len(self._prefix) :] if path.startswith(self._prefix) else None

    def entered(self, frame: FrameType, event: str, _: object) -> None:
        """Note a call, as `sys.setprofile` reports it."""
        if not self._on or event != "call" or not frame.f_code.co_flags & OPTIMIZED:
            return
        called = self._name(frame)
        if called is None:
            return
        self.files.setdefault(called)
        before = frame.f_back
        while before is not None and (caller := self._name(before)) is None:
            before = before.f_back
        if before is not None and caller != called:
            self.calls.setdefault((str(caller), called))

    @contextmanager
    def noted(self) -> Iterator[None]:
        """Note what is entered meanwhile."""
        self._on = True
        try:
            yield
        finally:
            self._on = False

    def print(self, title: str, floors: Floors) -> None:
        """Print the files with numbers, then the hops that go up."""
        up = [pair for pair in self.calls if floors.is_up(*pair)]
        packages = sum(low.split("/")[0] != high.split("/")[0] for low, high in up)
        print(f"{title}: {len(self.files)} files, {len(up)} hops up ({packages} between packages)")
        for number, name in enumerate(self.files, 1):
            print(f"{number:4} {name}")
        for caller, called in up:
            print(f"  up {caller} -> {called}")


async def _walk(source: Path, floors: Floors) -> None:
    from support.fake_models import FakeModels
    from support.live_server import events, live_server, say

    async def turn(server: Any, path: str) -> str:
        conversation = await server.conversation()
        written = {"path": path, "content": "written\n"}
        server.fake.reset()
        server.fake.script({"tools": [{"name": "write_file", "input": written}]}, {"text": "done"})
        async with server.socket(conversation) as socket:
            await asyncio.sleep(1)  # what a new viewer is told is not the message's walk
            with message.noted():
                await say(socket, f"write {path}")
                await events(socket, "done")
        return str(conversation)

    async def land(server: Any, conversation: str) -> None:
        with landing.noted():
            answer = await server.http.post(f"/api/conversations/{conversation}/land", json={})
        answer.raise_for_status()

    message, landing = Walk(source), Walk(source)
    for profile in (threading.setprofile, sys.setprofile):  # before threads begin that live on
        profile(lambda *call: (message.entered(*call), landing.entered(*call)))
    with tempfile.TemporaryDirectory() as directory, FakeModels() as fake:
        async with live_server(Path(directory), fake) as server:
            await land(server, await turn(server, "first.txt"))  # imports, and what else happens once
            for walk in (message, landing):
                walk.files.clear()
                walk.calls.clear()
            await land(server, await turn(server, "second.txt"))
    sys.setprofile(None)
    message.print("message", floors)
    landing.print("landing", floors)


def main() -> None:
    """Trace and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--src", type=Path, default=ROOT / "src", help="the `src` of another checkout")
    source = parser.parse_args().src.resolve()
    sys.path[:0] = [str(source), str(source.parent / "tests")]
    asyncio.run(_walk(source, Floors(source.parent / "pyproject.toml")))


if __name__ == "__main__":
    main()
