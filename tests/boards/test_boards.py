"""DE-32 … DE-44: boards over real databases, files and branches."""

import asyncio
import fcntl
import json
import os
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from support.databases import database_url, postgres, postgres_url
from support.patience import HANG_S
from support.stores import opened

from bowerbird.boards.boards import BoardKey, Boards, BoardState, board_at, board_of
from bowerbird.boards.rules import TaskChange
from bowerbird.core.errors import InvalidArgument, NotFound
from bowerbird.store import Store
from bowerbird.store.rows.sessions import SessionRow
from bowerbird.workspace import Branch, Workspace

__all__ = ("database_url", "postgres", "postgres_url")


@pytest.fixture
async def stores(tmp_path: Path, database_url: str) -> AsyncIterator[tuple[Store, Store]]:
    """One database, opened by two who know nothing of each other."""
    async with AsyncExitStack() as stack:
        first = await stack.enter_async_context(opened(tmp_path / "data", url=database_url))
        yield first, await stack.enter_async_context(opened(tmp_path / "data", url=database_url))


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "project").mkdir()
    return tmp_path / "project"


@pytest.fixture
def key(project: Path) -> BoardKey:
    return board_at(str(project))


async def test_fifty_tasks_of_each_of_two_at_once_get_the_ids_1_to_100(
    stores: tuple[Store, Store], key: BoardKey
) -> None:
    """Acceptance 7, DE-33."""
    both = [Boards(store) for store in stores]
    made = await asyncio.gather(
        *(both[n % 2].create(key, f"Task {n}", session=f"s{n % 2}") for n in range(100))
    )
    assert sorted(task["id"] for task in made) == list(range(1, 101))
    state = await both[0].state(key)
    assert [task["id"] for task in state.tasks] == list(range(1, 101))
    assert {task["subject"] for task in state.tasks} == {f"Task {n}" for n in range(100)}


@pytest.mark.parametrize("second", [0, 1], ids=["one-session", "two-sessions"])
async def test_completing_frees_reopening_blocks_deleting_leaves_nothing(
    stores: tuple[Store, Store], key: BoardKey, second: int
) -> None:
    """Acceptance 8, DE-37 … DE-39."""
    a, b = Boards(stores[0]), Boards(stores[second])
    for subject in ("one", "two", "three"):
        await a.create(key, subject)
    await a.update(key, 2, TaskChange(add_blocks=(3,)))
    assert (await b.task(key, 3))["blockedBy"] == [2] and (await b.task(key, 2))["blocks"] == [3]
    with pytest.raises(InvalidArgument, match="task 3 is blocked by 2"):
        await b.update(key, 3, TaskChange(status="in_progress", subject="changed"))
    assert (await a.task(key, 3))["subject"] == "three"
    await b.update(key, 2, TaskChange(status="completed"))
    assert (await a.task(key, 3))["blockedBy"] == []
    await a.update(key, 2, TaskChange(status="pending"))
    assert (await b.task(key, 3))["blockedBy"] == [2]
    with pytest.raises(InvalidArgument, match="3 → 2 → 3"):
        await b.update(key, 3, TaskChange(add_blocks=(2,)))
    gone = await b.update(key, 2, TaskChange(status="deleted"))
    assert gone["status"] == "deleted" and gone["id"] == 2
    assert (await a.task(key, 3))["blockedBy"] == []
    assert (await a.create(key, "four"))["id"] == 4
    for number in range(5, 11):
        await a.create(key, str(number))
    assert [t["id"] for t in (await b.state(key)).tasks] == [1, 3, *range(4, 11)]


async def test_a_refused_update_changes_nothing(stores: tuple[Store, Store], key: BoardKey) -> None:
    """DE-36: one transaction."""
    boards = Boards(stores[0])
    await boards.create(key, "one")
    await boards.create(key, "two")
    before = await boards.state(key)
    for wrong in (
        TaskChange(subject="new", add_blocks=(2, 9)), TaskChange(subject="x" * 501), TaskChange(subject="  "),
        TaskChange(owner="ann", status="done"), TaskChange(metadata={"a": 1}, add_blocked_by=(1,)),
    ):  # fmt: skip
        with pytest.raises(InvalidArgument):
            await boards.update(key, 1, wrong)
        assert (await boards.state(key)).tasks == before.tasks
    with pytest.raises(InvalidArgument, match="no task 7"):
        await boards.update(key, 7, TaskChange(subject="x"))
    with pytest.raises(InvalidArgument, match="1 to 500"):
        await boards.create(key, "")
    assert (await boards.state(key)).revision == before.revision


async def test_of_many_claims_at_once_each_task_goes_to_one(
    stores: tuple[Store, Store], key: BoardKey
) -> None:
    """DE-41: the lowest claimable id first; nobody gets what is blocked, owned or done."""
    both = [Boards(store) for store in stores]
    for number in range(1, 13):
        await both[0].create(key, f"Task {number}")
    await both[0].update(key, 1, TaskChange(status="completed"))
    await both[0].update(key, 2, TaskChange(owner="someone"))
    await both[0].update(key, 3, TaskChange(add_blocks=(4,)))
    claims = await asyncio.gather(*(both[n % 2].claim(key, f"mate{n}") for n in range(12)))
    got = sorted(task["id"] for task in claims if task is not None)
    assert got == [3, 5, 6, 7, 8, 9, 10, 11, 12] and sum(task is None for task in claims) == 3
    owners = {t["id"]: t["owner"] for t in (await both[0].state(key)).tasks}
    assert len({owners[number] for number in got}) == len(got)
    with pytest.raises(InvalidArgument, match=f"task 5 is owned by {owners[5]}"):
        await both[1].claim(key, "late", 5)
    with pytest.raises(InvalidArgument, match="task 4 is blocked by 3"):
        await both[1].claim(key, "late", 4)
    with pytest.raises(InvalidArgument, match="task 1 is completed"):
        await both[1].claim(key, "late", 1)


async def test_claims_of_who_ended_are_given_back_with_a_note(
    stores: tuple[Store, Store], key: BoardKey
) -> None:
    """DE-41."""
    boards = Boards(stores[0])
    for number in range(3):
        await boards.create(key, str(number))
    await boards.claim(key, "ann")
    await boards.claim(key, "bob")
    (back,) = await boards.release(key, "ann", "shutdown", session="s.team.ann")
    assert (back["id"], back["status"], back["owner"]) == (1, "pending", "")
    released = back["metadata"]["released"]
    assert released["owner"] == "ann" and released["reason"] == "shutdown"
    claimed = await boards.claim(key, "cid")
    assert claimed is not None and claimed["id"] == 1
    assert (await boards.task(key, 2))["owner"] == "bob"


async def test_boards_of_two_workspaces_and_of_sessions_without_one_are_apart(
    stores: tuple[Store, Store], tmp_path: Path, project: Path
) -> None:
    """DE-32: subagents and teammates share the board of their session."""
    (tmp_path / "link").symlink_to(project)
    at = board_of(SessionRow(thread_id="a", workspace=str(project)))
    assert board_of(SessionRow(thread_id="b", workspace=str(tmp_path / "link"))) == at
    alone = board_of(SessionRow(thread_id="c"))
    assert board_of(SessionRow(thread_id="c.sub0.sub1", kind="subagent")) == alone
    assert board_of(SessionRow(thread_id="c.team.ann", kind="teammate")) == alone
    boards = Boards(stores[0])
    for key in (at, alone, board_of(SessionRow(thread_id="d"))):
        assert (await boards.create(key, "first"))["id"] == 1


# ---------------------------------------------------------------- copies


def files_of(directory: Path) -> dict[str, dict[str, Any]]:
    return {path.name: json.loads(path.read_text()) for path in (directory / ".tasks").glob("*")}


async def test_in_the_servers_own_workspace_copies_are_real_files(
    stores: tuple[Store, Store], project: Path, key: BoardKey
) -> None:
    """DE-32, DE-39; architecture, law 2."""
    both = [Boards(store, own=project) for store in stores]
    await asyncio.gather(*(both[n % 2].create(key, f"T{n}") for n in range(12)))
    await both[0].update(key, 1, TaskChange(add_blocks=(2,)))
    await both[1].update(key, 3, TaskChange(status="deleted"))
    state = await both[0].state(key)
    assert files_of(project) == {f"task_{task['id']}.json": task for task in state.tasks}
    (project / ".tasks" / "task_2.json").write_text("{}")  # never read back as truth
    (project / ".tasks" / "notes.txt").write_text("mine")
    assert (await both[1].task(key, 2))["blockedBy"] == [1]
    await both[1].refresh(key)
    assert json.loads((project / ".tasks" / "task_2.json").read_text())["blockedBy"] == [1]
    assert (project / ".tasks" / "notes.txt").exists()


async def copy_on(branch: Branch, number: int) -> Any:
    return json.loads((await branch.read_file(f".tasks/task_{number}.json"))["content"])


async def test_copies_of_other_workspaces_are_private_paths_of_their_branches(
    stores: tuple[Store, Store], tmp_path: Path, project: Path, key: BoardKey
) -> None:
    """In no listing, diff or landing; the directory itself is not touched."""
    boards = Boards(stores[0])
    with Workspace(project, data_dir=tmp_path / "data") as workspace:
        branch, other = workspace.branch("a"), workspace.branch("b")
        await boards.create(key, "before")
        await boards.attach(key, branch)
        task = await boards.create(key, "after")
        assert await copy_on(branch, 2) == task
        assert (await copy_on(branch, 1))["subject"] == "before"
        await boards.update(key, 1, TaskChange(status="deleted"))
        with pytest.raises(NotFound):
            await copy_on(branch, 1)
        await boards.attach(key, other)
        assert await copy_on(other, 2) == task
        for each in (branch, other):
            assert each.changes().written == () and each.changes().deleted == ()
            assert (await each.list_files())["files"] == []
        boards.detach(branch.id)
        await boards.create(key, "unseen")
        with pytest.raises(NotFound):
            await copy_on(branch, 3)
    assert not (project / ".tasks").exists()


# ---------------------------------------------------------------- import


def left(project: Path, name: str, content: object) -> None:
    (project / ".tasks").mkdir(exist_ok=True)
    text = content if isinstance(content, str) else json.dumps(content)
    (project / ".tasks" / name).write_text(text)


async def test_task_files_are_taken_over_once_and_damaged_ones_named_and_left(
    stores: tuple[Store, Store], project: Path, key: BoardKey
) -> None:
    """DE-43."""
    left(project, "task_2.json", {"id": 2, "subject": "Two", "status": "pending", "blocks": [4]})
    left(
        project,
        "task_4.json",
        {"id": 4, "subject": "Four", "blockedBy": [2, 99], "owner": None, "metadata": {"a": 1}},
    )
    left(project, "task_5.json", {"id": 5, "subject": "Five", "blocks": [2], "blockedBy": [4]})
    damaged = {
        "task_7.json": "{not json",
        "task_8.json": {"id": 1, "subject": "x"},
        "task_9.json": {"id": 9, "subject": ""},
    }
    for name, content in damaged.items():
        left(project, name, content)
    (project / ".tasks" / "task_12.json").symlink_to("/etc/passwd")
    left(project, "task_x.json", "no task file")
    boards = Boards(stores[0], own=project)
    warnings = await boards.begin(key)
    assert [w.split()[0] for w in warnings] == [
        ".tasks/task_12.json", ".tasks/task_7.json", ".tasks/task_8.json", ".tasks/task_9.json",
    ]  # fmt: skip
    tasks = {task["id"]: task for task in (await boards.state(key)).tasks}
    assert set(tasks) == {2, 4, 5} and tasks[4]["blockedBy"] == [2] and tasks[4]["metadata"] == {"a": 1}
    assert tasks[2]["blockedBy"] == []  # 2 → 4 → 5 → 2 cannot all be kept
    assert (await boards.create(key, "new"))["id"] == 13
    await boards.refresh(key)
    assert (project / ".tasks" / "task_7.json").read_text() == "{not json"
    assert (project / ".tasks" / "task_12.json").is_symlink()
    left(project, "task_40.json", {"id": 40, "subject": "late"})
    assert await Boards(stores[1], own=project).begin(key) == ()
    assert 40 not in {task["id"] for task in (await boards.state(key)).tasks}


async def test_two_that_begin_a_board_at_once_take_its_files_over_once(
    stores: tuple[Store, Store], project: Path, key: BoardKey
) -> None:
    left(project, "task_1.json", {"id": 1, "subject": "One"})
    both = [Boards(store) for store in stores]
    made = await asyncio.gather(*(both[n % 2].create(key, f"T{n}") for n in range(6)))
    assert sorted(task["id"] for task in made) == [2, 3, 4, 5, 6, 7]
    assert next(t["subject"] for t in (await both[0].state(key)).tasks) == "One"


async def test_who_listens_hears_of_the_last_state(stores: tuple[Store, Store], key: BoardKey) -> None:
    heard: list[tuple[BoardKey, BoardState]] = []
    boards = Boards(stores[0], heard=lambda which, state: heard.append((which, state)))
    await boards.create(key, "one")
    await boards.update(key, 1, TaskChange(status="completed"))
    assert [which for which, _ in heard] == [key, key]
    assert [task["status"] for _, state in heard for task in state.tasks] == ["pending", "completed"]


CHILD = """
import asyncio, sys
from pathlib import Path
sys.path[:0] = [sys.argv[1]]
from support.stores import opened
from bowerbird.boards.boards import Boards, board_at
async def main():
    async with opened(Path(sys.argv[2])) as store:
        boards = Boards(store, own=Path(sys.argv[3]))
        for n in range(25):
            await boards.create(board_at(sys.argv[3]), f"child {n}")
asyncio.run(main())
"""


@pytest.fixture
def child_path() -> Iterator[str]:
    yield str(Path(__file__).parents[1])


async def test_who_is_cancelled_while_another_process_copies_keeps_nobody_out(
    stores: tuple[Store, Store], key: BoardKey
) -> None:
    first, second = (Boards(store) for store in stores)
    await first.create(key, "Task")
    await first.refresh(key)
    (lock,) = (stores[0].data_dir / "boards").iterdir()
    other = os.open(lock, os.O_RDWR)
    fcntl.flock(other, fcntl.LOCK_EX)
    try:
        waiting = asyncio.create_task(first.refresh(key))
        _, still = await asyncio.wait([waiting], timeout=0.2)
        assert still
        waiting.cancel()
        await asyncio.wait([waiting])
        assert waiting.cancelled()
    finally:
        os.close(other)
    for boards in (first, second):
        assert len((await asyncio.wait_for(boards.refresh(key), HANG_S)).tasks) == 1


async def test_two_processes_on_one_file_overwrite_nothing(
    tmp_path: Path, project: Path, key: BoardKey, child_path: str
) -> None:
    """Acceptance 7: also not each other's copies."""
    async with opened(tmp_path / "data") as store:
        boards = Boards(store, own=project)
        child = await asyncio.create_subprocess_exec(
            sys.executable, "-c", CHILD, child_path, str(tmp_path / "data"), str(project)
        )
        try:
            for n in range(25):
                await boards.create(key, f"parent {n}")
            assert await child.wait() == 0
        finally:  # a child must not outlive its test
            if child.returncode is None:
                child.kill()
                await child.wait()
        state = await boards.state(key)
        assert [task["id"] for task in state.tasks] == list(range(1, 51))
        assert files_of(project) == {f"task_{task['id']}.json": task for task in state.tasks}
