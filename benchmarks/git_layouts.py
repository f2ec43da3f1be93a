"""GI-10, acceptance 3: git in every layout of a repository, in both tiers, compared with the same outside.

    python benchmarks/git_layouts.py [--tier overlay] [--layout "linked worktree"] [--why] [--states] [--log]
                                     [--nobody]

Prints a table: "=" is as outside; `--why` prints what differs. `--states` prints what the user's own `git status`,
`git log --all` and `git reflog` say before, once the agent has committed, after each landing and after the undo;
`--log` every line of the two logs. `--nobody`, started by root, does it all as a user without rights.
"""

import argparse
import asyncio
import shutil
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from support.git_layouts import LAYOUTS, Outcome, compare
from support.unprivileged import Unprivileged


def main() -> None:
    """Run them."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--tier", choices=("overlay", "copy"))
    options.add_argument("--layout", choices=tuple(LAYOUTS))
    options.add_argument("--why", action="store_true")
    options.add_argument("--states", action="store_true")
    options.add_argument("--log", action="store_true")
    options.add_argument("--nobody", action="store_true")
    given = options.parse_args()
    if given.nobody:
        as_nobody([word for word in sys.argv[1:] if word != "--nobody"])
        return
    heads: list[str] = []
    for tier in (given.tier,) if given.tier else ("overlay", "copy"):
        for name in (given.layout,) if given.layout else LAYOUTS:
            with tempfile.TemporaryDirectory(prefix="git-layouts-") as place:
                try:
                    outcome = asyncio.run(compare(Path(place).resolve(), name, tier))
                except Exception as error:  # noqa: BLE001 - the next layout is still of interest
                    outcome = Outcome({"failed": "✗"}, {"failed": repr(error)})
            if not heads and "failed" not in outcome.cells:
                heads = list(outcome.cells)
                print(f"| layout | tier | {' | '.join(heads)} |\n|{'---|' * (len(heads) + 2)}")
            cells = [outcome.cells.get(head, "?") for head in heads or outcome.cells]
            print(f"| {name} | {tier} | {' | '.join(cells)} |", flush=True)
            if given.why or "failed" in outcome.cells:
                for step, why in outcome.differing.items():
                    print(f"    {step}: {why}")
            if given.states or given.log:
                print_states(outcome, lines=given.log)


def as_nobody(words: list[str]) -> None:
    """Run this program with the same arguments as a user without rights."""
    with tempfile.TemporaryDirectory(prefix="git-layouts-") as place:
        nobody = Unprivileged(Path(place))
        program = nobody.work.parent / "project/benchmarks" / Path(__file__).name
        program.parent.mkdir()
        shutil.copy(__file__, program)
        ran = nobody.run([str(program), *words], timeout=3600)
    print(ran.stdout, ran.stderr)


def print_states(outcome: Outcome, *, lines: bool) -> None:
    """Print what the user's git said at each stage."""
    print("\n| stage | git status | git log --all | git reflog |\n|---|---|---|---|")
    for stage, state in outcome.states.items():
        status = state.status.replace("\n", ", ") if state.status.count("\n") else f"{state.status}, clean"
        logs = [f"{len(log)}: {'; '.join(log if lines else log[:1])}" for log in (state.log, state.reflog)]
        print(f"| {stage} | {status} | {' | '.join(logs)} |")
    print(flush=True)


if __name__ == "__main__":
    main()
