"""Walking a page of the manual: its `console` blocks run in order, in a fresh home, against a scripted model.

Here: reading the blocks, running them in one shell, comparing what they print. Not here: which pages there
are and what the model answers on them (`tests/docs/test_walks.py`).

A block's lines that begin with `$ ` are typed (`> ` goes on with one), the lines below are what is printed: `…` stands for anything
within a line, a line of `…` alone for any lines; ids, hashes and the numbers of a cost line need not be the same. A
command without a line below it may print anything. Port 8000 of the page is a free one of this machine. `echo $?` tells a code as in any shell.
"""

import contextlib
import os
import re
import shlex
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from support.fake_models import FakeModels
from support.patience import patience
from support.servers import free_port

BLOCK = re.compile(r"^```console\n(.*?)^```$", re.DOTALL | re.MULTILINE)
END = "@@ended "
PAGE_S = patience(60)  # some ten commands


@dataclass
class Typed:
    """A command of a page, and the lines that the page shows below it."""

    command: str
    shown: list[str] = field(default_factory=list[str])


def typed_on(page: str) -> list[Typed]:
    """Return the commands of a page in order."""
    found: list[Typed] = []
    for block in BLOCK.findall(page):
        for line in block.splitlines():
            if line.startswith("$ "):
                found.append(Typed(line[2:]))
            elif line.startswith("> ") and not found[-1].shown:
                found[-1].command += "\n" + line[2:]
            else:
                found[-1].shown.append(line)
    return found


def alike(line: str) -> str:
    """Return a line without what differs each time: ids, hashes, tokens, money, and seconds of a slow machine."""
    line = re.sub(r"\b([a-z]{1,3}_[0-9a-z]{26}|[0-9a-f]{7,40})\b", "#", line)
    line = re.sub(r" \((\d+m)?\d+s\)$", "", line)  # how long a call took, where it was a second or more
    return re.sub(r"^\S+ in · \S+ out · \S+ · \d+% ctx", "# in · # out · # · # ctx", line).rstrip()


def is_as_shown(shown: list[str], printed: str) -> bool:
    """Whether a command printed what its page shows."""
    if not shown:
        return True
    lines = [
        r"(?:[^\n]*\n)*" if line.strip() == "…" else re.escape(alike(line)).replace("…", "[^\n]*") + "\n"
        for line in shown
    ]
    plain = "".join(f"{alike(line)}\n" for line in printed.rstrip("\n").split("\n"))
    return re.fullmatch("".join(lines), plain) is not None


def walk(page: str, place: Path, fake: FakeModels) -> list[tuple[Typed, str]]:
    """Type a page's commands into one shell; return each with what it printed."""
    home = place / "home"
    (place / "bin").mkdir()
    (home / "my-project").mkdir(parents=True)
    command = place / "bin" / "bowerbird"
    command.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m bowerbird "$@"\n')
    command.chmod(0o755)
    port = str(free_port())
    lines: list[str] = []
    walked = typed_on(page)
    for typed in walked:
        lines += [f"{{ {typed.command.replace('8000', port)}\n}} </dev/null", f"printf '\\n{END}\\n'"]
    (place / "script").write_text("\n".join([*lines, "kill $(jobs -p) 2>/dev/null", "wait", ""]))
    environment = {
        "HOME": str(home), "PATH": f"{place / 'bin'}:{Path(sys.executable).parent}:{os.environ['PATH']}", "LANG": "C.UTF-8",
        "ANTHROPIC_API_KEY": "sk-scripted", "ANTHROPIC_BASE_URL": fake.anthropic_url, "COLUMNS": "100",
        "BOWERBIRD_SERVER__PORT": port, "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_AUTHOR_NAME": "Ann", "GIT_AUTHOR_EMAIL": "ann@example.org",
        "GIT_COMMITTER_NAME": "Ann", "GIT_COMMITTER_EMAIL": "ann@example.org",
    }  # fmt: skip
    printed = _run(["bash", "--norc", str(place / "script")], home / "my-project", environment)
    told = printed.replace(port, "8000").replace(str(home), "~").split(f"\n{END}\n")
    return list(zip(walked, told, strict=False))


def _run(command: list[str], directory: Path, environment: dict[str, str]) -> str:
    """Run a shell with all that it starts; return what is printed."""
    with subprocess.Popen(
        command, cwd=directory, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        start_new_session=True,
    ) as shell:  # fmt: skip
        try:
            return shell.communicate(timeout=PAGE_S)[0]
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(shell.pid, signal.SIGKILL)  # a server that it left
