"""The abuse corpus with its guards taken away one at a time: each case must then fail (issue 3, must show 2).

    python benchmarks/guards.py [--only WORDS] [--without-control]

For every guard the cases that it stands for run once as they are and once without it (`removed_guards.py`, a plugin
of pytest that changes the product in the test's own process and in a copy of its helper programs). A row is
right when all its cases pass with the guard and fail without it. What a case could do to this machine without
its guard happens in a mount namespace of its own, below limits that the guard has no part in, and under a watch
that ends everything above 1,500 processes.
"""

import argparse
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MOST_PROCESSES = 1500
# /usr and a place for the tests' files are laid over with memory, so nothing that is written there stays.
_APART = """
mount --make-rprivate / && mount -t tmpfs -o size=800m tmpfs "$BOWERBIRD_BASE" || exit 9
mkdir "$BOWERBIRD_BASE/u" "$BOWERBIRD_BASE/w" "$BOWERBIRD_BASE/t" || exit 9
mount -t overlay overlay -o lowerdir=/usr,upperdir="$BOWERBIRD_BASE/u",workdir="$BOWERBIRD_BASE/w" /usr || exit 9
mount -t tmpfs -o size=800m tmpfs "$BOWERBIRD_BASE/t" || exit 9
exec "$@"
"""
READS, WRITES, KERNEL = ("test_abuse_reads.py", "test_abuse_writes.py", "test_abuse_kernel.py")
EXHAUSTION, PROCESSES = ("test_abuse_exhaustion.py", "test_abuse_processes.py")
NETWORK, PLAIN = ("test_network.py", "test_shell_backend.py")
PYTHON = "../monty/test_python_limits.py"
CALLS = (KERNEL, "every_listed_call")


@dataclass(frozen=True)
class Row:
    """A guard and the cases that stand on it.

    Attributes:
        file, cases: which tests, as pytest selects them. apart: only in mounts of its own, so only as root.
        timeout: seconds after which a case that does not end has failed.
    """

    group: str
    guard: str
    file: str
    cases: str
    apart: bool = False
    timeout: int = 40


ROWS = (
    Row("SB-51", "files of the host out of sight", READS, "comes_out and (home or directory or branches or links or dot)"),
    Row("SB-51", "files of the host out of reach", READS, "no_socket_of_the_host"),
    Row("SB-51", "abstract sockets kept apart", READS, "no_socket_of_the_host"),
    Row("SB-51", "processes of the host out of sight", READS, "comes_out and environ and server and copy"),
    Row("SB-51", "processes of the host out of sight", READS, "no_process_of_the_host and overlay"),
    Row("SB-51", "environment made anew", READS, "comes_out and own"),
    Row("SB-51", "descriptors closed", READS, "comes_out and inherited"),
    *(
        Row("SB-52", "files of the host out of reach", WRITES, f"host_changes and {case}")
        for case in ("home", "beside", "rename", "truncate", "through", "modes and not by", "times", "reopened")
    ),
    Row("SB-52", "read-only system", WRITES, "host_changes and (usr or modes-by)", apart=True),
    Row("SB-52", "settings of the kernel read-only", WRITES, "host_changes and overlay and kernel"),
    *(
        Row("SB-53", f"filter: {name}", *CALLS)
        for name in (
            "mount family", "unshare, setns", "tracing", "bpf, perf, userfaultfd", "io_uring", "keys",
            "modules, kexec", "clocks, swap, quota, accounts", "clone3",
        )
    ),
    Row("SB-53", "filter: namespaces by clone", KERNEL, "no_trick"),
    Row("SB-53", "filter: socket families", KERNEL, "no_trick"),
    Row("SB-53", "filter: attributes", KERNEL, "no_trick and copy"),
    Row("SB-53", "filter: foreign tables of calls", KERNEL, "foreign"),
    # Not in the copy tier: there the same rules keep signals in, and the case would stop its own test.
    Row("SB-53", "tracing of the init", KERNEL, "not_traced and overlay", timeout=15),
    Row("SB-53", "capabilities dropped", KERNEL, "setuid"),
    Row("SB-54", "count of processes", PROCESSES, "no_more_processes"),
    Row("SB-54", "memory watched", EXHAUSTION, "memory_over and (own or shared)"),
    Row("SB-54", "disk watched", EXHAUSTION, "full_quota and (overlay or copy) and not HOME and not TMPDIR", apart=True),
    Row("SB-54", "size of one file", EXHAUSTION, "sparse"),
    Row("SB-54", "open files, core dumps", EXHAUSTION, "core_dumps"),
    Row("SB-54", "processor time", PROCESSES, "processor and one_process or processor and one-process", timeout=10),
    Row("SB-54", "output cut", EXHAUSTION, "without_a_newline"),
    Row("SB-54", "whole tree killed", PROCESSES, "outlives and return"),
    Row("SB-54", "KILL after TERM", PROCESSES, "ignores_sigterm", timeout=60),
    Row("SB-54", "walking by handles", EXHAUSTION, "two_thousand_deep"),
    Row("SB-55", "network of its own", NETWORK, "closed_is or udp"),
    Row("SB-55", "network of its own", NETWORK, "leads_past and (direct or curl-without or decimal or mapped) and not proxied"),
    Row("SB-55", "private addresses refused", NETWORK, "private-name or proxied-localhost or redirect or changes_its_address"),
    Row("SB-55", "allow-list", NETWORK, "listed_host"),
    Row("SB-55", "resolved once", NETWORK, "changes_its_address"),
    Row("SB-55", "Host is the name asked for", NETWORK, "host_header"),
    Row("SB-55", "TLS name is the name asked for", NETWORK, "tls_name"),
    Row("SB-55", "names are names", NETWORK, "socks_works"),
    Row("SB-55", "64 connections", NETWORK, "at_most_64"),
    Row("SB-55", "transfer limit", NETWORK, "transfer_limit"),
    Row("SB-55", "proxy ends with the session", NETWORK, "proxy_is_gone"),
    Row("SB-56", "no metacharacters", PLAIN, "refusal and (id) and echo or refusal and amp"),
    Row("SB-56", "one line", PLAIN, "refusal and date"),
    Row("SB-56", "the very file of PATH", PLAIN, "refusal and git"),
    Row("SB-56", "names on the list", PLAIN, "refusal and ls"),
    Row("SB-56", "env starts nothing", PLAIN, "refusal and env"),
    Row("SB-56", "files of the host out of reach", PLAIN, "stays_in and (curl-file or python or sort-outside)"),
    Row("SB-56", "environment made anew", PLAIN, "stays_in and environment"),
    Row("SB-57", "Python: time", PYTHON, "limit_ends and (loop or factorial or slow-power)"),
    Row("SB-57", "Python: sleeping", PYTHON, "limit_ends and sleep", timeout=8),
    Row("SB-57", "Python: memory", PYTHON, "limit_ends and (list-bomb or string-bomb)"),
    Row("SB-57", "Python: recursion", PYTHON, "limit_ends and recursion"),
    Row("SB-57", "Python: suspensions", PYTHON, "suspensions"),
    Row("SB-57", "Python: output", PYTHON, "streams_share or output_keeps"),
)  # fmt: skip


Found = dict[str, dict[str, str]]
"""For each tier, "" for cases of none: each case with what went wrong, "" where it passed."""


def run(row: Row, base: Path, *, removed: bool) -> Found:
    """Run a row's cases."""
    words = [
        sys.executable, "-m", "pytest", "-p", "removed_guards", "-p", "no:cacheprovider", "-p", "no:xdist", "-rA", "-q",
        "--tb=no", "--show-capture=no", f"--timeout={row.timeout}", str(next(Path("tests/sandbox").rglob(row.file))), "-k", row.cases,
    ]  # fmt: skip
    inside = base / "t" if row.apart else base
    words += ["--basetemp", str(inside / "run")]
    if row.apart:
        words = ["unshare", "--mount", "sh", "-c", _APART, "sh", *words]
    environment = {
        **os.environ, "PYTHONPATH": f"{ROOT}/benchmarks:{ROOT}/src", "BOWERBIRD_BASE": str(inside if not row.apart else base),
        "BOWERBIRD_REMOVED": row.guard if removed else "",
    }  # fmt: skip
    process = subprocess.Popen(
        words, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        start_new_session=True,
    )  # fmt: skip
    said = _watched(process, 60 + 20 * row.timeout)
    found: Found = {}
    for verdict, case, why in re.findall(
        r"^(PASSED|FAILED|ERROR) \S*::(\S.*?)(?: - (.*))?$", said, re.MULTILINE
    ):
        tier = re.search(r"\[(?:.*-)?(overlay|copy)(?:-.*)?\]", case)
        found.setdefault(tier.group(1) if tier else "", {})[case] = (
            "" if verdict == "PASSED" else why or verdict
        )
    if not found:
        print(said[-2000:])
    return found


def _watched(process: "subprocess.Popen[str]", most_s: float) -> str:
    """Return what it printed; end its whole session when it takes too long or too many processes live."""
    deadline = time.monotonic() + most_s
    while True:
        try:
            return process.communicate(timeout=0.5)[0]
        except subprocess.TimeoutExpired:
            living = sum(1 for name in os.listdir("/proc") if name.isdigit())
            if living > MOST_PROCESSES or time.monotonic() > deadline:
                os.killpg(process.pid, signal.SIGKILL)


def shown(found: Found, *, want: bool) -> str:
    """Return how many cases came out as wanted, by tier."""
    counts = ((tier, [not why for why in cases.values()]) for tier, cases in sorted(found.items()))
    return ", ".join(
        f"{tier or 'host'} {sum(p == want for p in passed)}/{len(passed)}" for tier, passed in counts
    )


def one(row: Row, options: argparse.Namespace) -> bool:
    """Run and print one row; return whether it is right."""
    with tempfile.TemporaryDirectory(prefix="bowerbird-guards-", ignore_cleanup_errors=True) as folder:
        kept = {} if options.without_control else run(row, Path(folder), removed=False)
        lost = run(row, Path(folder), removed=True)
    broken = [(case, why) for cases in kept.values() for case, why in cases.items() if why]
    standing = [case for cases in lost.values() for case, why in cases.items() if not why]
    right = bool(lost) and not broken and not standing
    mark = "" if right else "  NOT RIGHT"
    print(
        f"{row.group:6} {row.guard:40} {shown(kept, want=True):24} {shown(lost, want=False):24}{mark}",
        flush=True,
    )
    for case, why in broken:
        print(f"       fails with its guard: {case}: {why}")
    for case in standing:
        print(f"       passes without its guard: {case}")
    if options.reasons:
        for cases in lost.values():
            print("".join(f"       {case}: {why[:150]}\n" for case, why in cases.items()), end="")
    return right


def main() -> int:
    """Run and print the table; exit code 1 when a row is not right."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--only", default="", help="rows whose group or guard holds this")
    parser.add_argument(
        "--without-control", action="store_true", help="do not run the cases with their guard"
    )
    parser.add_argument("--reasons", action="store_true", help="print what each case says when it fails")
    options = parser.parse_args()
    wrong = 0
    print(f"{'':6} {'guard taken away':40} {'pass with it':24} {'fail without it':24}")
    for row in ROWS:
        if options.only not in f"{row.group} {row.guard}":
            continue
        if row.apart and os.getuid() != 0:
            print(f"{row.group:6} {row.guard:40} only as root: needs mounts of its own to be safe")
        else:
            wrong += not one(row, options)
    print(f"{wrong} rows not right")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
