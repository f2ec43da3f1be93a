"""Every benchmark, one after the other: what stands behind the figures of README and docs.

    python benchmarks/run_all.py [--long] [--drills] [--only NAME …]

Wants an idle machine; the load is printed before each, and a figure taken under load is no figure. Without
`--long` what takes more than a minute runs with a smaller count. `--drills` (`make drills`) runs those that
look for what is lost, torn or refused, at length; they need no idle machine, but hours. Exit code 1 when one of
them missed a bar.
"""

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent

SHORT: dict[str, tuple[str, ...]] = {
    "first_contact": (),
    "model_stream": (),
    "agent_turn": (),
    "journal": (),
    "workspace_files": (),
    "workspace_branches": (),
    "sandbox": (),
    "monty": (),
    "viewers": (),
    "server_load": (),
    "web_scroll": (),
    "stops": ("--n", "20"),
    "subagents": ("--runs", "3", "--files", "100", "10000"),
    "capture_trials": ("--n", "50"),
    "bombs": (),
    "histories": ("--n", "500", "--jobs", "2"),
    "time_lines": ("--n", "200", "--jobs", "2"),
    "kill_run": ("--n", "10"),
    "kill_drill": ("--serve", "--n", "40"),
}
LONG: dict[str, tuple[str, ...]] = SHORT | {
    "capture_trials": ("--n", "1000"),
    "histories": ("--n", "10000", "--jobs", "2"),
    "time_lines": ("--n", "3000", "--jobs", "2"),
    "kill_run": ("--n", "200"),
    "kill_drill": ("--serve", "--n", "1000"),
    "guards": (),
    "subagents": (),
    "real_project": (),
    "ignored_files": (),
    "parallel_agents": (),
}
DRILLS: dict[str, tuple[str, ...]] = {
    "landing_errors": (),
    "landing_turns": (),
    "shared_data": (),
    "upgrade_kills": (),
    "user_saves": (),
    "answers": (),
    "reviews": (),
    "wires": (),
    "knowing": (),
    "patches": (),
    "clock_jumps": (),
    "half_open": (),
    "bombs": (),
    "guards": (),
    "capture_trials": LONG["capture_trials"],
    "histories": LONG["histories"],
    "time_lines": LONG["time_lines"],
    "git_histories": ("--count", "5000"),
    "git_layouts": ("--states",),
    "git_large_pack": (),
    "kill_run": LONG["kill_run"],
    "kill_drill": LONG["kill_drill"],
    "web_axe": (),
    "web_cuts": (),
    "web_fold": (),
    "web_reviews": (),
    "mcp_conformance": (),
    "as_nobody": (),
    "assistant_day": (),
    "assistant_fuzz": (),
    "assistant_kills": (),
    "assistant_thousands": (),
    "chat_load": (),
    "chat_servers": (),
    "schedules": ("--seconds", "600"),
}


def main() -> int:
    """Run them; print a line for each that missed a bar."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--long", action="store_true", help="full counts, an hour and more")
    parser.add_argument("--drills", action="store_true", help="what is lost, torn or refused, at length")
    parser.add_argument("--only", nargs="+", metavar="NAME", choices=sorted(LONG | DRILLS), default=[])
    chosen = parser.parse_args()
    missed: list[str] = []
    some = DRILLS if chosen.drills else LONG if chosen.long else LONG | DRILLS if chosen.only else SHORT
    for name, arguments in some.items():
        if chosen.only and name not in chosen.only:
            continue
        print(f"\n═══ {name} {' '.join(arguments)} (load {os.getloadavg()[0]:.1f})", flush=True)
        begun = time.monotonic()
        drill = HERE.parent / "drills" / f"{name}.py"
        program = drill if drill.exists() else HERE / f"{name}.py"
        done = subprocess.run([sys.executable, str(program), *arguments], check=False)
        print(f"    [{time.monotonic() - begun:.0f} s]", flush=True)
        if done.returncode != 0:
            missed.append(f"{name} (exit code {done.returncode})")
    print("\n" + ("all bars held" if not missed else "missed: " + ", ".join(missed)))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
