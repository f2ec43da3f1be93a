"""Stories at the terminal, played in tmux over the real command and a scripted model; prints each screen.

Here: stories of review, processes and pipes, errors; playing all of them. Not here: the conversation's
(`terminal_talks.py`), the stage (`terminal_stage.py`), tests (tests/cli), pictures (`docs_pictures.py`).

    .venv/bin/python scripts/terminal_stories.py                 # every story, screens to standard output
    .venv/bin/python scripts/terminal_stories.py stop narrow     # some
    .venv/bin/python scripts/terminal_stories.py --colour --out DIR   # with colours, a file per story

Wants tmux on the path. Nothing of this machine is read or changed: each story has a home of its own.
"""

import argparse
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import terminal_habits  # noqa: F401 - registers its stories
import terminal_talks
from support.fake_models import FakeModels
from terminal_stage import EDITS, STORIES, Stage, call, story


@story("review", rows=44)
def review(stage: Stage) -> None:
    """/diff /land /undo /fork /sessions /cost /context /history."""
    stage.fake.script({"tools": EDITS}, {"text": "Three values and a module."})
    stage.chat()
    stage.type("change some values")
    stage.until("2 files changed: ")
    stage.type("/diff new/module.py")
    stage.until("+VALUE")
    stage.snap("/diff of one file")
    for command, text in (
        ("/cost", "session:"), ("/context", "tokens ("), ("/history", "· write_file"),
        ("/sessions", "done  "), ("/dif", "did you mean"),
    ):  # fmt: skip
        stage.type(command)
        stage.until(text)
    stage.snap("/cost /context /history /sessions and a typo")
    stage.type("/land")
    stage.until("[y/N]")
    stage.snap("/land asks")
    stage.type("y")
    stage.until("landed")
    stage.type("/undo")
    stage.until("back (")
    stage.type("/fork")
    stage.until("a copy")
    stage.type("/discard")
    stage.until("Discard 2")
    stage.type("y")
    stage.until("kept for 7 days")
    stage.snap("landed, undone, forked, discarded")


@story("landing", rows=44)
def landing(stage: Stage) -> None:
    """`land --patch`, hunk by hunk."""
    stage.fake.script({"tools": EDITS}, {"text": "Three values and a module."})
    stage.shell("bowerbird 'change some values'")
    stage.snap("one turn at a terminal")
    stage.shell("bowerbird diff --stat")
    stage.snap("diff --stat")
    stage.type("clear; bowerbird land --patch")
    stage.until("Land this")
    stage.snap("the first question")
    stage.type("y")
    stage.type("?")
    stage.until("q ")
    stage.type("n")
    stage.type("y")
    stage.type("n")
    stage.until("landed")
    stage.snap("hunks chosen")
    stage.shell("bowerbird landings; bowerbird diff --stat; bowerbird undo")
    stage.snap("landings, what is left, undo")


@story("many", rows=12)
def many(stage: Stage) -> None:
    """Landing 3,000 files."""
    command = "mkdir -p d; for i in $(seq 3000); do echo $i > d/f$i.txt; done"
    stage.fake.script({"tools": [call("bash", command=command)]}, {"text": "There they are."})
    stage.shell("bowerbird 'make many files'")
    stage.type("clear; bowerbird land --yes; echo exit=$?")
    stage.until("% ")
    stage.snap("while it lands")
    stage.exited()
    stage.snap("landed")


# ------------------------------------------------------------------------ processes and pipes


@story("killed")
def killed(stage: Stage) -> None:
    """kill -9 in a turn, then resume."""
    stage.fake.script({"tools": EDITS[:1]}, {"hang": True})
    stage.chat()
    stage.type("change a value")
    stage.until("✓ edit_file")
    stage.fake.wait_requests(2)
    pids = subprocess.run(
        ["ps", "-o", "pid=", "--ppid", stage.tmux("display", "-p", "#{pane_pid}").strip()],
        check=True, capture_output=True, text=True,
    ).stdout.split()  # fmt: skip
    os.kill(int(pids[0]), signal.SIGKILL)
    stage.until("Killed")
    stage.snap("killed")
    stage.key("C-j")
    stage.type("stty sane; clear", enter=False)
    stage.key("C-j")  # the killed process could not give the terminal back
    while "Killed" in stage.screen():
        time.sleep(0.05)  # until then Enter is no end of a line
    stage.type("bowerbird sessions")
    stage.until("unfinished")
    stage.fake.script({"text": "Gone on, and finished."})
    stage.type("bowerbird resume; echo exit=$?")
    stage.exited()
    stage.snap("resumed")


@story("piped")
def piped(stage: Stage) -> None:
    """Pipes: only the answer on standard output; JSON; no colours; a denied tool."""
    stage.fake.script({"text": "# Summary\n\nThree **lines**."})
    stage.shell("cat notes.txt | bowerbird 'summarise' 2>err.txt | cat -A; cat err.txt")
    stage.snap("piped")
    stage.shell("bowerbird 'summarise' --json 2>/dev/null | python3 -m json.tool | head -30")
    stage.snap("--json")
    stage.shell("NO_COLOR=1 bowerbird 'summarise'")
    stage.snap("NO_COLOR at a terminal")
    stage.fake.script({"tools": [call("bash", command="rm -rf /")]}, {"text": "I was not allowed."})
    stage.shell(
        "echo hi | bowerbird run --approval 'clean up' >out.txt 2>err.txt; echo code=$?; cat out.txt err.txt"
    )
    stage.snap("a tool that wants approval, and nobody to ask")


@story("plain")
def plain(stage: Stage) -> None:
    """NO_COLOR in a conversation."""
    stage.fake.script({"tools": EDITS[:1]}, {"text": terminal_talks.MARKDOWN[:330]})
    stage.type("NO_COLOR=1 bowerbird")
    stage.until("/help lists", "new session")
    stage.type("go")
    stage.until("1 file changed: ")
    stage.type("/diff")
    stage.until("+    return 33")
    stage.snap("NO_COLOR")


@story("attempt", columns=100)
def attempt(stage: Stage) -> None:
    """A tournament of two."""

    def answer(body: dict[str, Any], _n: int) -> dict[str, Any]:
        if any(m["role"] == "assistant" for m in body["messages"]):
            return {"text": "done", "ttft_s": 0.4}
        path = "right.txt" if "main_sub1." in str(body["system"]) else "wrong.txt"
        return {"tools": [call("write_file", path=path, content="x\n")]}

    stage.fake.answer(answer)
    stage.type("clear; bowerbird attempt 'make it right' -n 2 --check 'test -e right.txt'; echo exit=$?")
    stage.exited()
    stage.snap("attempt")
    stage.shell("bowerbird sessions; bowerbird subagents list $(bowerbird sessions | cut -d' ' -f1)")
    stage.snap("its subagents")


@story("remote", columns=100, rows=40)
def remote(stage: Stage) -> None:
    """Another machine's server: a prompt, its diff, landing, an approval from here."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{probe.getsockname()[1]}"
    port = url.rpartition(":")[2]
    serve = f"timeout 120 bowerbird --data-dir ~/.bowerbird serve -w . --port {port} 2>/dev/null &"
    stage.shell(f"{serve} until bowerbird --server {url} sessions 2>/dev/null; do :; done")
    stage.type(f"export HOME=$PWD/../elsewhere BOWERBIRD_URL={url}")
    stage.fake.script({"tools": EDITS}, {"text": "Three values and a **module**."})
    stage.shell("bowerbird 'change some values'")
    stage.snap("a turn that the server runs")
    stage.shell("bowerbird sessions; bowerbird diff --stat; bowerbird land --yes; bowerbird undo")
    stage.snap("reviewed, landed and undone from here")
    stage.fake.script({"tools": [call("bash", command="make all")]}, {"text": "Built."})
    stage.type("clear; bowerbird --approval 'build it'; echo exit=$?")
    stage.until("answer>")
    stage.type("n use ninja")
    stage.exited()
    stage.snap("asked here, run there")
    stage.shell("bowerbird --server http://127.0.0.1:1 sessions; bowerbird show -w .; bowerbird attempt x")
    stage.snap("what cannot be")
    stage.shell("kill %1")


@story("doctor", columns=100, rows=40)
def doctor(stage: Stage) -> None:
    """What the machine lacks."""
    stage.shell("bowerbird doctor")
    stage.snap("doctor")
    stage.resize(60, 40)
    stage.shell("env -u ANTHROPIC_API_KEY bowerbird doctor")
    stage.snap("doctor without a key, 60 columns")


ERRORS = (
    "bowerbird show nope", "bowerbird --resume=zzzz9 hi", "bowerbird undo l_nope", "bowerbird diff nope.txt",
    "bowerbird run --modle x", "bowerbird sesions", "bowerbird approve r_nope", "bowerbird -m nope:x hi",
    "bowerbird -p nope hi", "env -u ANTHROPIC_API_KEY bowerbird hi", "bowerbird --data-dir /proc/x sessions",
    "bowerbird --config nope.yaml sessions", "bowerbird -w /nope hi", "bowerbird -w / hi",
    "bowerbird land", "bowerbird resume", "bowerbird mcp test nope", "bowerbird config show nope",
    "printf '\\377hi' | bowerbird", "head -c 2000000 /dev/zero | bowerbird x",
    "bowerbird --server http://127.0.0.1:1 sessions", "bowerbird -w . --max-turns 0 hi",
)  # fmt: skip


@story("errors", columns=100, rows=60)
def errors(stage: Stage) -> None:
    """What is said of each error, with its exit code."""
    stage.fake.script({"text": "fine"})
    for line in ERRORS:
        stage.shell(line)
        stage.snap(line)


# ------------------------------------------------------------------------ playing


def play(name: str, *, colour: bool, columns: int | None) -> str:
    """Play one story; return its screens."""
    function, size = STORIES[name]
    size = size | ({"columns": columns} if columns else {})
    with (
        tempfile.TemporaryDirectory(prefix="stories", ignore_cleanup_errors=True) as place,
        FakeModels() as fake,
    ):
        stage = Stage(Path(place), fake, colour=colour, **size)
        try:
            function(stage)
            shown = "\n".join(stage.captures)
        except SystemExit as failed:
            raise SystemExit(f"story {name}: {failed}") from None
        finally:
            stage.close()
        summary = (function.__doc__ or "").strip()
        shown = shown.replace(place, "…").replace(sys.prefix, "…/venv")
        return f"════ {name}: {summary}\n\n{shown}"


def played(names: list[str], **how: Any) -> Iterator[tuple[str, str]]:
    """Play the stories in turn."""
    for name in names:
        yield name, play(name, **how)


def main() -> None:
    """Play what was asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("names", nargs="*", metavar="STORY", help=f"default: all of {', '.join(STORIES)}")
    parser.add_argument("--colour", action="store_true", help="keep escape sequences of colours")
    parser.add_argument("--columns", type=int, help="in a window of another width than the story's")
    parser.add_argument("--out", type=Path, help="write NAME.txt there instead of printing")
    options = parser.parse_args()
    unknown = [name for name in options.names if name not in STORIES]
    if unknown:
        parser.error(f"no story is called {', '.join(unknown)}; there are: {', '.join(STORIES)}")
    for name, shown in played(options.names or list(STORIES), colour=options.colour, columns=options.columns):
        if options.out is None:
            print(shown)
        else:
            options.out.mkdir(parents=True, exist_ok=True)
            (options.out / f"{name}.txt").write_text(shown)


if __name__ == "__main__":
    main()
