"""A terminal to play stories in: tmux, the real command, a scripted model, a home of its own.

Here: the stage, what stories share, their list. Not here: the stories (`terminal_talks.py`,
`terminal_stories.py`, which also plays them).
"""

import contextlib
import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from support.fake_models import FakeModels  # noqa: E402 - the path is known only now

WAIT_S = 30.0
STOCK = "".join(f"def item_{n}():\n    return {n}\n\n\n" for n in range(40))


class Stage:
    """A tmux screen with a shell in a small project; prints what it shows."""

    def __init__(self, place: Path, fake: FakeModels, *, columns: int, rows: int, colour: bool) -> None:
        self.home = place / "home"
        self.project = self.home / "project"
        self.project.mkdir(parents=True)
        (self.project / "report.py").write_text(STOCK)
        (self.project / "notes.txt").write_text("one\ntwo\nthree\n")
        self.fake = fake
        self.captures: list[str] = []
        self._colour = colour
        self._tmux_name = f"stories-{os.getpid()}"
        path = f"{place / 'bin'}:{os.environ.get('PATH', '')}"
        (place / "bin").mkdir()
        command = place / "bin" / "bowerbird"
        command.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m bowerbird.cli.main "$@"\n')
        command.chmod(0o755)
        environment = {
            "HOME": str(self.home), "PATH": path, "PS1": "$ ", "ANTHROPIC_API_KEY": "sk-scripted",
            "ANTHROPIC_BASE_URL": fake.anthropic_url, "LANG": "C.UTF-8", "LESS": "FRX",
        }  # fmt: skip
        shell = ["env", "-i", *(f"{k}={v}" for k, v in environment.items()), "TERM=tmux-256color", "sh"]
        self.tmux(
            "-f", os.devnull, "new-session", "-d", "-x", str(columns), "-y", str(rows),
            "-c", str(self.project), shlex.join(shell), ";", "set", "-g", "status", "off",
            ";", "set", "-g", "window-size", "manual",
        )  # fmt: skip
        self.tmux("resize-window", "-x", str(columns), "-y", str(rows))
        self.until("$")

    def tmux(self, *arguments: str) -> str:
        """Run a command of this stage's own tmux server; return its output."""
        command = ["tmux", "-L", self._tmux_name, *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True, timeout=20).stdout

    def close(self) -> None:
        """End the screen and everything in it."""
        with contextlib.suppress(subprocess.CalledProcessError):
            self.tmux("kill-server")

    def type(self, text: str, *, enter: bool = True) -> None:
        """Type `text` as a person would."""
        if text:
            self.tmux("send-keys", "-l", text)
        if enter:
            self.tmux("send-keys", "Enter")

    def key(self, *names: str) -> None:
        """Press keys by tmux's names, say `C-c`."""
        self.tmux("send-keys", *names)

    def screen(self, *, history: bool = False) -> str:
        """Return what stands on the screen, as plain text."""
        return self.tmux("capture-pane", "-p", *(("-S", "-") if history else ()))

    def until(self, *texts: str) -> None:
        """Wait until every text stands on the screen."""
        end = time.monotonic() + WAIT_S
        while missing := [text for text in texts if text not in self.screen()]:
            if time.monotonic() > end:
                raise SystemExit(f"{missing} did not appear; the screen:\n{self.screen(history=True)}")
            time.sleep(0.05)

    def snap(self, title: str, *, history: bool = False) -> None:
        """Keep the screen under a title."""
        flags = (*(("-e",) if self._colour else ()), *(("-S", "-") if history else ()))
        shown = self.tmux("capture-pane", "-p", *flags).rstrip("\n")
        self.captures.append(f"── {title} {'─' * max(60 - len(title), 3)}\n{shown}\n")

    def resize(self, columns: int, rows: int = 30) -> None:
        """Give the window another size."""
        self.tmux("resize-window", "-x", str(columns), "-y", str(rows))

    # ---------------------------------------------------------------- what stories share

    def chat(self, *arguments: str) -> None:
        """Start the conversation and wait for its prompt."""
        self.type(shlex.join(["bowerbird", *arguments]))
        self.until("/help lists", "new session")

    def ended(self, *texts: str) -> None:
        """Wait for the end of the turn that shows `texts` last."""
        self.until(*texts)
        end = time.monotonic() + WAIT_S
        while (
            "% ctx"
            not in self.screen().rpartition(texts[-1] if "changed: " not in texts[-1] else texts[0])[2]
        ):
            if time.monotonic() > end:
                raise SystemExit(f"the turn did not end; the screen:\n{self.screen()}")
            time.sleep(0.05)

    def shell(self, line: str) -> None:
        """Run a shell line on an empty screen and wait for its end."""
        self.type("clear")
        while re.search(r"^exit=\d", self.screen(), re.MULTILINE):
            time.sleep(0.05)  # else the end of the last line is taken for this one's
        self.type(f"{line}; echo exit=$?")
        self.exited()

    def exited(self) -> None:
        """Wait until a shell line has ended that says its exit code."""
        end = time.monotonic() + WAIT_S
        while not re.search(r"^exit=\d", self.screen(), re.MULTILINE):
            if time.monotonic() > end:
                raise SystemExit(f"the command did not end; the screen:\n{self.screen()}")
            time.sleep(0.05)


Story = Callable[[Stage], None]
STORIES: dict[str, tuple[Story, dict[str, int]]] = {}


def story(name: str, *, columns: int = 80, rows: int = 30) -> Callable[[Story], Story]:
    """Register a story under a name, for a screen of a size."""

    def register(function: Story) -> Story:
        STORIES[name] = (function, {"columns": columns, "rows": rows})
        return function

    return register


def call(name: str, **arguments: Any) -> dict[str, Any]:
    """Return a tool call for a step of the model."""
    return {"name": name, "input": arguments}


EDITS = [
    call("edit_file", path="report.py", old="    return 3\n", new="    return 33\n"),
    call("edit_file", path="report.py", old="    return 20\n", new="    return 2020\n"),
    call("edit_file", path="report.py", old="    return 38\n", new="    return 38  # 最後\n"),
    call("write_file", path="new/module.py", content="VALUE = 1\n"),
]
