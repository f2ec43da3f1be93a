"""Bad input of GI: an agent commits 300 MB, which arrive as one pack, or are refused by the limit while files land.

    python benchmarks/git_large_pack.py [--megabytes 320]

Random bytes in one file, stored without compression. Prints seconds of the review, of a landing under the limit
(`git.max_bytes`), and of one above it; exit code 1 when a file or a commit is not where it belongs.
"""

import argparse
import asyncio
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from support.git_project import GitProject

from bowerbird.sandbox.host import SandboxHost
from bowerbird.sandbox.run.limits import RunLimits
from bowerbird.sandbox.settings import SandboxSettings
from bowerbird.workspace import Branch, HistoryRules, Landing, Workspace

MIB = 1 << 20
T = TypeVar("T")
WORK = """set -e
echo A > a.txt
head -c {megabytes}M /dev/urandom > large.bin
git config core.compression 0; git config pack.window 0
git add .; git commit -qm large; git repack -qad; git config --unset core.compression; git config --unset pack.window
du -m .git/objects/pack
"""


ROOMY = RunLimits(file_bytes=8 << 30, disk_bytes=32 << 30)


def timed(what: str, work: Callable[[], T]) -> T:
    """Do something and print how long it took."""
    begun = time.perf_counter()
    found = work()
    print(f"{what}: {time.perf_counter() - begun:.1f} s", flush=True)
    return found


async def committed(project: GitProject, megabytes: int) -> Branch:
    """Return a branch with one commit of one large file, packed in the sandbox."""
    branch = project.workspace.branch()
    host = SandboxHost(project.base / "data", SandboxSettings(limits=ROOMY))
    try:
        sandbox = await host.sandbox(branch)
        ran = await sandbox.run(
            WORK.format(megabytes=megabytes), env=project.environment("agent"), timeout=1200
        )
        assert ran.exit_code == 0, ran.output
        branch.begin_turn()
    finally:
        await host.close()
    return branch


def landed(project: GitProject, branch: Branch, most_bytes: int) -> Landing:
    """Land under a limit."""
    with Workspace(
        project.root, data_dir=project.base / "data", git=HistoryRules(most_bytes=most_bytes)
    ) as workspace:
        return workspace.open(branch.id).land(commits="fetch", session="s_1")


def main() -> int:
    """Run both; exit code 1 when something is not where it belongs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=320)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="large-pack-") as place:
        project = GitProject(Path(place))
        branch = timed(
            "the agent commits and packs", lambda: asyncio.run(committed(project, given.megabytes))
        )
        (told,) = timed("review", branch.git_story).repositories
        project.workspace.close()
        refused = timed("landing above the limit", lambda: landed(project, branch, 100 * MIB))
        said = " ".join(refused.history[0].troubles)
        is_right = "git.max_bytes" in said and (project.root / "a.txt").read_text() == "A\n"
        print(f"    {said}; the file landed: {is_right}")
        arrived = timed("landing under the limit", lambda: landed(project, branch, 2 * given.megabytes * MIB))
        if not arrived.history[0].refs:
            print(f"    nothing arrived: {arrived.history[0].troubles}")
            return 1
        tip = arrived.history[0].refs[0]
        size = int(project.git("cat-file", "-s", f"{tip.kept_as}:large.bin"))
        print(f"    {tip.kept_as} has a file of {size:,} bytes; git fsck: {project.git('fsck') or 'clean'}")
        is_right = is_right and size == given.megabytes * MIB and told.troubles == ()
    return 0 if is_right else 1


if __name__ == "__main__":
    sys.exit(main())
