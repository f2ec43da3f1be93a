"""What one process discards, restores or removes while another uses it (DE-22)."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.patience import HANG_S

from bowerbird.core.errors import NotFound
from bowerbird.workspace import Workspace
from bowerbird.workspace.branch import Branch

ELSEWHERE = """
import sys
from bowerbird.workspace import Workspace
with Workspace(sys.argv[1], data_dir=sys.argv[2], trash_days=None) as workspace:
    print(workspace.path, flush=True)
    sys.stdin.readline()
    """


class Place:
    """A directory and what other processes do to its branches."""

    def __init__(self, place: Path) -> None:
        self.root, self.data = place / "project", place / "data"
        self.root.mkdir()
        (self.root / "a").write_text("of the user\n")

    def begun(self, script: str) -> subprocess.Popen[str]:
        """Start a process that has opened the workspace and waits for a line."""
        pipe = subprocess.PIPE
        process = subprocess.Popen(
            [sys.executable, "-c", ELSEWHERE + script, str(self.root), str(self.data)],
            stdin=pipe, stdout=pipe, stderr=pipe, text=True,
        )  # fmt: skip
        assert process.stdout is not None
        process.stdout.readline()
        return process

    def elsewhere(self, script: str) -> str:
        """Let another process do this, and return what it printed."""
        return ended(self.begun(script))


def ended(process: subprocess.Popen[str]) -> str:
    out, err = process.communicate("\n", timeout=60)
    assert (process.returncode, err) == (0, "")
    return out.strip()


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.fixture
def workspace(place: Place) -> Iterator[Workspace]:
    with Workspace(place.root, data_dir=place.data, trash_days=None) as workspace:
        yield workspace


async def worked(workspace: Workspace, name: str = "work") -> Branch:
    branch = workspace.branch(name=name)
    await branch.write_file("a", "of the branch\n")
    return branch


async def test_a_branch_out_of_the_trash_is_not_emptied_with_it(place: Place, workspace: Workspace) -> None:
    """Who empties the trash lists it first: what was restored since went with the rest."""
    branch = await worked(workspace)
    lock = workspace.lock_of(branch.id)
    branch.discard()
    with lock.pin("takes it out of the trash"):
        assert place.elsewhere("print(workspace.empty_trash(0))") == "[]"
        back = workspace.restore_discarded(branch.id)
    assert await back.read_bytes("a") == b"of the branch\n"


async def test_two_processes_may_empty_one_trash(place: Place, workspace: Workspace) -> None:
    """The second failed with "no such file" at the first branch that was gone."""
    for number in range(60):
        (await worked(workspace, str(number))).discard()
    both = [place.begun("print(*workspace.empty_trash(0), sep='\\n')") for _ in range(2)]
    for process in both:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    removed = [ended(process).split() for process in both]
    assert len(removed[0]) + len(removed[1]) == len({*removed[0], *removed[1]}) == 60
    assert not workspace.trashed()


@pytest.mark.parametrize("keep", [True, False])
@pytest.mark.parametrize(
    "use",
    [
        pytest.param(Branch.mark, id="mark"),
        pytest.param(Branch.fork, id="fork"),
        pytest.param(Branch.end_turn, id="freeze"),
    ],
)
async def test_a_branch_that_another_process_discarded_takes_no_change(
    place: Place, workspace: Workspace, use: Callable[[Branch], object], keep: bool
) -> None:
    """It went into the trash with what was written after; a fork stood on layers that then were removed."""
    branch = await worked(workspace)
    place.elsewhere(f"workspace.open({branch.id!r}).discard(keep={keep})")
    with pytest.raises(NotFound, match="was discarded.*restore_discarded" if keep else "is gone"):
        use(branch)
    with pytest.raises(NotFound):
        await branch.write_file("b", "lost\n")
    if keep:
        assert place.elsewhere(f"workspace.restore_discarded({branch.id!r})") == ""
        await branch.write_file("b", "kept\n")  # the same handle goes on
        assert await branch.read_bytes("a") == b"of the branch\n"


async def test_a_landing_of_a_branch_that_was_discarded_elsewhere_is_taken_back(
    place: Place, workspace: Workspace
) -> None:
    branch = await worked(workspace)
    landing = branch.land()
    place.elsewhere(f"workspace.open({branch.id!r}).discard()")
    workspace.undo(str(landing.id))
    assert (place.root / "a").read_text() == "of the user\n"


MAKING = """
import sys
from pathlib import Path
from bowerbird.workspace import Workspace
rename = Path.rename
def slow(self, target):
    done = rename(self, target)
    if self.name.startswith(".new-"):
        print(Path(target).name, flush=True)
        sys.stdin.readline()
    return done
Path.rename = slow
try:
    Workspace(sys.argv[1], data_dir=sys.argv[2]).branch(name="work")
except Exception as error:
    print(type(error).__name__, error)
"""


@pytest.mark.parametrize(("keep", "word"), [(False, "removed"), (True, "discarded")])
def test_its_maker_is_told_that_a_branch_went_while_it_was_being_made(
    tmp_path: Path, keep: bool, word: str
) -> None:
    """A raw FileNotFoundError; or its maker worked on in the trash, which is emptied."""
    root, data = tmp_path / "project", tmp_path / "data"
    root.mkdir()
    command = [sys.executable, "-c", MAKING, str(root), str(data)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        made = process.stdout.readline().strip()
        with Workspace(root, data_dir=data) as workspace:
            workspace.open(made).discard(keep=keep)
        said, _ = process.communicate("\n", timeout=HANG_S)
    assert said == f"NotFound branch {made} was {word} while it was being made\n"
    with Workspace(root, data_dir=data) as workspace:
        assert workspace.branches() == [] and [row.id for row in workspace.discarded()] == [made] * keep
