"""kill -9 of `bowerbird run` at random instants; `bowerbird resume`; a check by other means.

    python benchmarks/kill_run.py [--n 200] [--seed 1] [--keep DIR]

Each round starts the real command on a real directory, with a scripted model behind real HTTP, kills
it at a random instant of the time a whole run takes (sometimes twice), and resumes. The check
reads the database with plain SQL and the branch's layers as files: the turn is done, the journal has
no gap, each call has one outcome, each edit is in the branch exactly once, and what landed is
whole. Half of the rounds land after the turn. Exit code 0 only when nothing is wrong.
"""

import argparse
import os
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from support.crashes import STEPS, Scene, check
from support.fake_models import FakeModels

WITHOUT_SENDING = [
    {**step, "tools": [tool for tool in step["tools"] if tool["name"] != "send"]} if "tools" in step else step
    for step in STEPS
]
NOT_KILLED = "not killed"
COMMAND = Path(sys.executable).with_name("bowerbird")


def environment(scene: Scene) -> dict[str, str]:
    """Nothing of the machine's own settings."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(scene.directory),
        "ANTHROPIC_API_KEY": "test-key",
        "ANTHROPIC_BASE_URL": scene.models,
        "LLM_MAX_RETRIES": "0",
    }


def run(scene: Scene, *arguments: str, kill_after_s: float | None = None) -> int:
    """Run the command; returns its exit code, -9 when it was killed."""
    project = scene.directory / "project"
    with (scene.directory / "command.log").open("ab") as log:
        child = subprocess.Popen(
            [COMMAND, *arguments, "--workspace", project, "--data-dir", scene.directory / "data"],
            env=environment(scene),
            cwd=project,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        try:
            return child.wait(kill_after_s if kill_after_s is not None else 120)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            return child.wait()


def was_accepted(scene: Scene) -> bool:
    """Whether the message is in the database: before that, the user sends it again."""
    path = scene.directory / "data" / "agent.db"
    if not path.exists():
        return False
    # Not read-only: what a killed writer left in the log has to be taken in first.
    database = sqlite3.connect(path, timeout=30)
    try:
        if not database.execute("SELECT 1 FROM sqlite_master WHERE name = 'inbox'").fetchone():
            return False  # killed before the tables were there
        return bool(database.execute("SELECT count(*) FROM inbox").fetchone()[0])
    finally:
        database.close()


def one_round(scene: Scene, chance: random.Random, whole_s: float) -> tuple[str, list[str]]:
    """Kill, resume, check; returns what was killed and what is wrong."""
    begin = ("run", scene.text, "--land", scene.policy, "--quiet")
    killed = 0
    arguments = begin
    for _ in range(chance.choice((1, 1, 2))):
        if run(scene, *arguments, kill_after_s=chance.uniform(0.05, whole_s)) != -signal.SIGKILL:
            return f"killed {killed} times" if killed else NOT_KILLED, check(scene)  # it was done before
        killed += 1
        arguments = ("resume", "--quiet") if was_accepted(scene) else begin
    for _ in range(2):
        if run(scene, *arguments) == 0:
            break
        arguments = ("resume", "--quiet") if was_accepted(scene) else begin
    return f"killed {killed} times", check(scene)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--n", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path, help="where rounds that went wrong are left")
    options = parser.parse_args()
    chance = random.Random(options.seed)
    if options.keep is not None:
        options.keep.mkdir(parents=True, exist_ok=True)
    rounds: Counter[str] = Counter()
    failures = 0
    with FakeModels() as fake, tempfile.TemporaryDirectory(dir=options.keep) as directory:
        whole = Scene(Path(directory) / "whole", fake.anthropic_url, steps=WITHOUT_SENDING)
        begun = time.perf_counter()
        run(whole, "run", whole.text, "--quiet")
        whole_s = time.perf_counter() - begun
        if found := check(whole):
            print(f"a run that nobody kills is wrong already: {found}")
            print((whole.directory / "command.log").read_text())
            return 1
        print(f"a whole run takes {whole_s:.2f} s; {options.n} rounds, seed {options.seed}")
        number = -1
        while rounds.total() - rounds[NOT_KILLED] < options.n:  # only what was really killed counts
            number += 1
            policy = chance.choice(("review", "turn"))
            scene = Scene(Path(directory) / str(number), fake.anthropic_url, policy, WITHOUT_SENDING)
            state, wrong = one_round(scene, chance, whole_s)
            rounds[state] += 1
            if wrong:
                failures += 1
                print(f"round {number} ({policy}, {state}): {wrong}")
                if options.keep is not None:
                    scene.directory.rename(options.keep / f"round-{number}")
            if (number + 1) % 20 == 0:
                print(f"{number + 1} rounds, {failures} wrong", flush=True)
    print(f"{rounds.total()} rounds: {dict(sorted(rounds.items()))}; wrong: {failures}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
