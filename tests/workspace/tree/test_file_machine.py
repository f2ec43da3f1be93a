"""Random file operations on a branch against a plain directory (acceptance 1)."""

import asyncio
import shutil
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from support.branches import view_of
from support.trees import read_tree, write_tree

from bowerbird.core.errors import InvalidArgument, WorkspaceError
from bowerbird.workspace.tree.layers import Storage
from bowerbird.workspace.workspace import Workspace

NAMES = st.sampled_from(["a", "b", "c"])
PATHS = st.lists(NAMES, min_size=1, max_size=3).map("/".join)
TEXTS = st.sampled_from(["", "one\n", "two\r\nlines\r\n", "\u00e9" * 50])
TREE = {"a/a": "1\n", "a/b/c": "2\n", "b": "3\n", "c/": "", "a/c/a": "x"}


class FileTools(RuleBasedStateMachine):
    """The model is a directory that the same operations are done to with plain calls."""

    def __init__(self) -> None:
        super().__init__()
        self.place = Path(tempfile.mkdtemp())
        self.loop = asyncio.new_event_loop()
        self.marks: list[tuple[str, Path]] = []
        self.copies = 0

    @initialize()
    def start(self) -> None:
        write_tree(self.place / "ws", TREE)
        self.model = self.place / "model"
        shutil.copytree(self.place / "ws", self.model, symlinks=True)
        self.open_workspace()
        self.branch = self.workspace.branch()

    def open_workspace(self) -> None:
        self.workspace = Workspace(self.place / "ws", data_dir=self.place / "data")

    def done(self, call):
        """Run a call; tell whether it was done (it must change nothing otherwise)."""
        try:
            return self.loop.run_until_complete(call) is not None
        except (WorkspaceError, InvalidArgument):
            return False

    @rule(path=PATHS, text=TEXTS)
    def write(self, path, text):
        target = self.model / path
        blocked = target.is_dir() or any(p.is_file() for p in target.parents if p != self.model)
        assert self.done(self.branch.write_file(path, text)) is not blocked
        if not blocked:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(text.encode())

    @rule(path=PATHS, recursive=st.booleans())
    def delete(self, path, recursive):
        target = self.model / path
        full = target.is_dir() and any(target.iterdir()) and not recursive
        possible = target.exists() and not full
        assert self.done(self.branch.delete(path, recursive)) is possible
        if possible:
            shutil.rmtree(target) if target.is_dir() else target.unlink()

    @rule(src=PATHS, dst=PATHS, overwrite=st.booleans())
    def move(self, src, dst, overwrite):
        source, target = self.model / src, self.model / dst
        possible = (
            source.exists()
            and source != target
            and source not in target.parents
            and not any(p.is_file() for p in target.parents if p != self.model)
            and (
                not target.exists()
                or (
                    overwrite
                    and source.is_dir() == target.is_dir()
                    and not (target.is_dir() and any(target.iterdir()))
                )
            )
        )
        assert self.done(self.branch.move(src, dst, overwrite)) is possible
        if possible:
            target.parent.mkdir(parents=True, exist_ok=True)
            if target.is_dir():
                target.rmdir()
            source.rename(target)

    @rule(path=PATHS)
    def mkdir(self, path):
        target = self.model / path
        possible = not target.is_file() and not any(p.is_file() for p in target.parents if p != self.model)
        assert self.done(self.branch.mkdir(path)) is possible
        if possible:
            target.mkdir(parents=True, exist_ok=True)

    @rule(path=PATHS, on=st.booleans())
    def set_executable(self, path, on):
        target = self.model / path
        assert self.done(self.branch.set_executable(path, on)) is target.is_file()
        if target.is_file():
            target.chmod(0o755 if on else 0o644)

    @rule()
    def freeze(self):
        self.branch.end_turn("t_x")

    @rule()
    def mark(self):
        self.copies += 1
        copy = self.place / f"copy{self.copies}"
        shutil.copytree(self.model, copy, symlinks=True)
        self.marks.append((self.branch.mark(), copy))

    @rule()
    def rollback(self):
        if self.marks:
            mark, copy = self.marks.pop()
            try:
                self.branch.rollback(mark)
            except WorkspaceError:
                return  # its layers were joined at a turn's end
            shutil.rmtree(self.model)
            copy.rename(self.model)

    @rule()
    def go_on_in_a_fork(self):
        self.branch = self.branch.fork()
        self.marks.clear()

    @rule()
    def reopen(self):
        branch_id = self.branch.id
        self.workspace.close()
        self.open_workspace()
        self.branch = self.workspace.open(branch_id)

    @invariant()
    def the_view_is_the_model(self):
        if not hasattr(self, "branch"):
            return
        model = read_tree(self.model)
        expected = {
            path: ("dir", None) if kind == "dir" else (kind, (mode, data))
            for path, (kind, mode, data) in model.items()
        }
        assert self.loop.run_until_complete(view_of(self.branch)) == expected
        files = sorted(path for path, (kind, _, _) in model.items() if kind == "file")
        assert self.loop.run_until_complete(self.branch.list_files())["files"] == files

    def teardown(self) -> None:
        if hasattr(self, "workspace"):
            self.workspace.close()
        self.loop.run_until_complete(self.loop.shutdown_default_executor())
        self.loop.close()
        shutil.rmtree(self.place)


TestFileTools = FileTools.TestCase
TestFileTools.settings = settings(
    max_examples=20, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)
)


class FileToolsWithoutWhiteouts(FileTools):
    """The same where the filesystem cannot hold whiteouts (WS-3)."""

    def open_workspace(self) -> None:
        super().open_workspace()
        self.workspace._shared.registry.storage = Storage(False, "no devices here")


TestFileToolsWithoutWhiteouts = FileToolsWithoutWhiteouts.TestCase
TestFileToolsWithoutWhiteouts.settings = settings(TestFileTools.settings, max_examples=8)
