"""A long conversation beside a fresh one: CPU of a turn, and the longest standstill of the event loop.

    python benchmarks/long_chat.py [--repeats 10] [--only RECORDS|TOKENS]

Two conversations: one of 20,000 records, one of 139,000 tokens, which is just below the size at which it is
summarised by itself. Of each: its first turn after a restart, its next ones, a compaction and the turn after
it, through the session service with a scripted model in another process. Bars: CPU of a turn within 1.2 times
a fresh conversation's, no standstill over 50 ms (without the time in which the machine ran other programs on
our processor, which is printed beside it). Turns of both alternate, so that other load meets both. Exit code 1
when a bar is missed.
"""

import argparse
import asyncio
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from support.long_chats import RECORDS_A_TURN, Figures, compare, model_server  # noqa: E402  the path is set first

BAR_CPU = 1.2
BAR_STILL_S = 0.050
CASES = {"RECORDS": (20_000 // RECORDS_A_TURN, 180), "TOKENS": (278, 2_000)}


def shown(name: str, turns: int, size: int, fresh: Figures, long: Figures) -> bool:
    """Print one conversation's figures; return whether the bars are kept."""
    print(f"{name}: {turns * RECORDS_A_TURN:,} records, about {turns * size // 4:,} tokens")
    ratio = long.turn / fresh.turn
    good = ratio <= BAR_CPU
    figures = f"{fresh.turn * 1000:6.2f} ms fresh, {long.turn * 1000:6.2f} ms long: {ratio:.2f} x"
    print(f"  CPU of a turn (median){'':<12}{figures}  {'ok' if good else 'TOO MUCH'}")
    for what, still in long.still.items():
        kept = still <= BAR_STILL_S
        good = good and kept
        wall = f"(on the wall {long.on_wall[what] * 1000:6.1f} ms)"
        print(
            f"  longest standstill, {what:<28}{still * 1000:6.1f} ms  {wall}  {'ok' if kept else 'TOO LONG'}"
        )
    print(f"  (of the fresh one){'':<30}{max(fresh.still.values()) * 1000:6.1f} ms")
    return good


def main() -> int:
    """Measure both conversations."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=10, help="times four turns of each")
    parser.add_argument("--only", choices=sorted(CASES))
    options = parser.parse_args()
    good = True
    with model_server() as model:
        for name, (turns, size) in CASES.items():
            if options.only in (None, name):
                with tempfile.TemporaryDirectory() as directory:
                    compared = compare(
                        Path(directory), model, turns=turns, size=size, repeats=options.repeats
                    )
                    good = shown(name, turns, size, *asyncio.run(compared)) and good
    return 0 if good else 1


if __name__ == "__main__":
    raise SystemExit(main())
