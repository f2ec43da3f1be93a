"""Every system call of a landing, an undo and the start after a crash fails once, with every errno.

    python benchmarks/landing_errors.py [--every 1] [--phase land|undo|recover]

A landing of every kind of change (create, modify, delete, mode, link, directory and file in each other's
place) is repeated; in each trial one call fails with EPERM, EACCES, EROFS, ENOSPC, EIO, EXDEV, ESTALE or
EMFILE. At once, and after the next start, the user's directory must be as before or as after, or a record
must say which landing needs attention; reading, the next turn and the next start must work. Prints what
happened and exits 1 when anything was torn, bricked, told untruly, told to be unknown, raised as no error of
ours, or was still half-way after the next pass of a server's upkeep.
"""

import argparse
import logging
import sys
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from support.failing_calls import ERRNOS, FailingCalls
from support.landing_drill import PHASES, Scene, Totals, count_calls, trial
from support.places import memory_place


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--every", type=int, default=1, help="only every n-th pair of call and errno")
    parser.add_argument("--phase", choices=PHASES, action="append", help="only this one")
    given = parser.parse_args()
    logging.disable(logging.CRITICAL)
    wrong = 0
    for phase in given.phase or PHASES:
        totals, began = Totals(), time.monotonic()
        with memory_place() as place:
            scene = Scene(place, phase)
            calls = count_calls(scene)
            pairs = [(at, number) for at in range(1, calls + 1) for number in ERRNOS]
            for at, number in pairs[:: given.every]:
                trial(scene, FailingCalls(at, number), totals)
        took = time.monotonic() - began
        print(f"{phase}: {calls} calls x {len(ERRNOS)} errnos, {totals.trials} trials in {took:.0f} s")
        for said, count in sorted(Counter(totals.outcomes).items()):
            print(f"  {count:6} {said}")
        for kind in ("torn", "half", "bricked", "raw", "untrue", "unknown"):
            found: list[str] = getattr(totals, kind)
            print(f"  {len(found):6} {kind}")
            for line in found[:20]:
                print(f"         {line}")
        wrong += len(totals.wrong)
    print("nothing torn, nothing bricked" if not wrong else f"{wrong} WRONG")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
