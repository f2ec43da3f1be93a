"""`bowerbird serve` as a program that can kill itself at a named write point.

As a program it is a server of such processes, so that a test can afford hundreds of restarts: a first
process serves for real and tells which modules that took; they are imported once, and each further line of
JSON on the input forks a process that runs the command line `bowerbird serve` from its first line on. For
each it prints the pid, and the wait status when it has ended.

Nothing of the product is changed for it: the points of `crash_child` and `drill_child` are put around the
product's functions here, before the command begins. A process that dies writes the name of its point to
`died` first, behind `label` (say `undo`, when that is what the landing points belong to).

What a channel would be is one here too: sessions whose row names the channel `telegram` have their answers
delivered to the file `delivered`.
"""

import contextlib
import faulthandler
import gc
import importlib
import json
import os
import signal
import sys
import traceback
from pathlib import Path
from typing import Any

if not __package__:
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from support.crash_child import Killer, arm, point_landings
from support.drill_child import Door, arm_more
from support.prepared import prepare

from bowerbird.cli.main import run_command
from bowerbird.cli.terminal.collector import starting
from bowerbird.sessions import SessionService
from bowerbird.sessions.delivery import outbox as outbox_module


class TellingKiller(Killer):
    """Writes where it dies, for whoever counts."""

    def __init__(self, point: str, told: Path, label: str) -> None:
        super().__init__(point)
        self._told = told
        self._label = label

    def at(self, name: str) -> None:
        if self._name in (name, "any") and self._left == 1:
            with self._told.open("a") as file:
                file.write(self._label + name + "\n")
        super().at(name)


def run(config: dict[str, Any]) -> int:
    """Serve until killed or told to end; returns the exit code."""
    killer: Killer | None = None
    if config.get("kill"):
        killer = TellingKiller(config["kill"], Path(config["died"]), config["label"])
        arm(killer)
        point_landings(killer)
        arm_more(killer)
    deliver_to(Path(config["delivered"]), killer)
    os.environ.clear()
    os.environ.update(config["env"])
    os.chdir(config["cwd"])
    starting()  # as `bowerbird.cli.main.main` does
    return run_command(["--config", config["config"], "serve", "--port", str(config["port"])])


def deliver_to(path: Path, killer: Killer | None) -> None:
    """Give every session service the channel of the drill, as the composition root of a channel does."""
    outbox_module.LOOK_EVERY_S = 0.05
    original = SessionService.start

    async def start(self: SessionService) -> None:
        self.outbox.serve(Door(path, killer))
        await original(self)

    SessionService.start = start  # type: ignore[method-assign]


def serve() -> None:
    """Fork a process for each line of the input; the first one tells which modules all will need."""
    for number, line in enumerate(sys.stdin):
        config = json.loads(line)
        pid = os.fork()
        if pid == 0:
            _become(config, report=number == 0)
        print(pid, flush=True)
        status = os.waitpid(pid, 0)[1]
        if number == 0:
            for name in Path(config["modules"]).read_text().splitlines():
                _import(name)
            prepare()
            gc.freeze()  # what a fork shares stays shared
        print(status, flush=True)


def _become(config: dict[str, Any], *, report: bool) -> None:
    log = os.open(config["log"], os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)
    for descriptor in (1, 2):
        os.dup2(log, descriptor)
    faulthandler.enable()  # a signal of the interpreter's own says where it was, into the log
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    # The server raises the signal that ended it once more when all is closed; the drill wants the exit code.
    signal.signal(signal.SIGTERM, lambda *_: None)
    code = 1
    try:
        code = run(config)
        if report:
            Path(config["modules"]).write_text("\n".join(sorted(sys.modules)))
    except BaseException:  # noqa: BLE001  the log is how a test learns of it
        traceback.print_exc()
    sys.stderr.flush()
    os._exit(code)


def _import(name: str) -> None:
    if name in sys.modules or name == "__mp_main__":
        return
    with contextlib.suppress(Exception):  # a module made at run time; whoever needs it makes it again
        importlib.import_module(name)


if __name__ == "__main__":
    serve()
