"""A repository with a branch of it, and real git run on both sides: by the user, and by an agent.

The agent's commands run in a whole copy of the branch's view, whose changes then become the branch's.
"""

import asyncio
import os
import shutil
import subprocess
from pathlib import Path

from support.patience import HANG_S

from bowerbird.workspace import Branch, Workspace

TOGETHER = ["-c", "commit.gpgsign=false", "-c", "init.defaultBranch=main", "-c", "gc.auto=0"]


class GitProject:
    """A workspace that is a repository with one commit, or a linked worktree of it, and branches of it."""

    def __init__(
        self, base: Path, root: Path | None = None, data: Path | None = None, *, linked: bool = False
    ) -> None:
        self.base, self.root, self.home = base, root or base / "project", base / "git-home"
        self.home.mkdir()
        self.root.mkdir(exist_ok=True)
        self.git("init", "-q", "-b", "main")
        self.write("a.txt", "a\n")
        self.write("b.txt", "b\n")
        self.git("add", ".")
        self.git("commit", "-q", "-m", "first")
        if linked:
            self.git("checkout", "-q", "--detach")
            top, self.root = self.root, base / "linked"
            self.git("worktree", "add", "-q", str(self.root), "main", at=top)
        self.workspace = Workspace(self.root, data_dir=data or base / "data")

    def write(self, name: str, text: str) -> None:
        """Write a file of the user's."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def git(self, *arguments: str, at: Path | None = None, who: str = "user", fails: bool = False) -> str:
        """Run git as somebody; returns what it prints."""
        done = subprocess.run(
            ["git", *TOGETHER, *arguments], cwd=at or self.root, env=self.environment(who), check=False,
            capture_output=True, stdin=subprocess.DEVNULL, timeout=HANG_S,
        )  # fmt: skip
        if done.returncode and not fails:
            raise AssertionError(f"git {arguments}: {done.stderr.decode()}")
        return done.stdout.decode("utf-8", "replace").strip()

    def environment(self, who: str) -> dict[str, str]:
        """The variables of somebody's git."""
        return {
            "HOME": str(self.home), "PATH": os.environ["PATH"], "GIT_TERMINAL_PROMPT": "0", "GIT_EDITOR": "true",
            "GIT_AUTHOR_NAME": who, "GIT_AUTHOR_EMAIL": f"{who}@example.org",
            "GIT_COMMITTER_NAME": who, "GIT_COMMITTER_EMAIL": f"{who}@example.org",
        }  # fmt: skip

    def agent(self, branch: Branch, *steps: "list[str] | tuple[str, str]", who: str = "agent") -> list[str]:
        """Run git commands (lists) and write files ((name, text)) on a branch; returns what git printed."""
        place = self.base / f"view-{branch.id}"
        branch.show_git()
        shutil.rmtree(place, ignore_errors=True)
        branch.export(place, "dir")
        before = _tree(place)
        said: list[str] = []
        for step in steps:
            if isinstance(step, list):
                said.append(self.git(*step, at=place, who=who, fails=True))
            else:
                (place / step[0]).parent.mkdir(parents=True, exist_ok=True)
                (place / step[0]).write_text(step[1])
        asyncio.run(_take(branch, before, _tree(place)))
        shutil.rmtree(place)
        return said

    def close(self) -> None:
        """End it."""
        self.workspace.close()


def _tree(place: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(place)): path.read_bytes()
        for path in place.rglob("*")
        if path.is_file() and not path.is_symlink()
    }


async def _take(branch: Branch, before: dict[str, bytes], after: dict[str, bytes]) -> None:
    for name in before.keys() - after.keys():
        await branch.delete(name)
    for name, data in after.items():
        if before.get(name) != data:
            await branch.write_file(name, data)
