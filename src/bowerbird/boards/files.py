"""Task files in a real directory: `.tasks/task_{id}.json` (DE-32, DE-43; architecture, law 2).

Here: their form, writing them, reading those that somebody else left. Not here: when either is due
(`boards.py`), copies on branches (`workspace/files/private_files.py`).

Files are written for people and never read back as truth; they are read once, when a workspace gets its
board. All work goes through one handle of the directory, so that a link in its place leads nowhere.
"""

import contextlib
import os
import re
import stat
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from bowerbird.boards.rules import MAX_DESCRIPTION, MAX_OWNER, MAX_SUBJECT, MAX_TASKS, TaskData
from bowerbird.core.atomic import replace_at
from bowerbird.core.forms import decode
from bowerbird.store.rows.board import Edge, TaskRow

DIRECTORY = ".tasks"
MAX_FILE_BYTES = 1 << 20

_NAME = re.compile(r"task_([1-9][0-9]{0,17})\.json")


def file_name(task_id: int) -> str:
    """Return the name of a task's file."""
    return f"task_{task_id}.json"


def file_content(task: TaskData) -> bytes:
    """Return a task as its file holds it."""
    return msgspec.json.format(msgspec.json.encode(task), indent=2) + b"\n"


class TaskFile(msgspec.Struct, frozen=True):
    """What a file may hold; everything but id and subject may be missing."""

    id: Annotated[int, msgspec.Meta(ge=1)]
    subject: Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_SUBJECT)]
    description: Annotated[str, msgspec.Meta(max_length=MAX_DESCRIPTION)] = ""
    status: Literal["pending", "in_progress", "completed"] = "pending"
    blockedBy: list[int] = msgspec.field(default_factory=list[int])
    blocks: list[int] = msgspec.field(default_factory=list[int])
    owner: Annotated[str, msgspec.Meta(max_length=MAX_OWNER)] | None = ""
    activeForm: Annotated[str, msgspec.Meta(max_length=MAX_SUBJECT)] | None = ""
    metadata: dict[str, Any] | None = None

    def row(self, board: str) -> TaskRow:
        """Return the task as a row of `board`."""
        return TaskRow(
            board=board,
            id=self.id,
            subject=self.subject,
            description=self.description,
            status=self.status,
            owner=self.owner or "",
            active_form=self.activeForm or "",
            metadata=self.metadata or {},
        )

    def edges(self) -> list[Edge]:
        """Return its links."""
        return [(u, self.id) for u in self.blockedBy] + [(self.id, v) for v in self.blocks]


class Left(msgspec.Struct, frozen=True):
    """What somebody left in a directory.

    Attributes:
        files: those that can be read, in the order of their ids.
        damaged: names of the others, each with what is wrong.
        highest: of all ids, those of damaged files too; 0 without files.
    """

    files: Sequence[TaskFile] = ()
    damaged: Sequence[tuple[str, str]] = ()
    highest: int = 0


def read_left(workspace: Path) -> Left:
    """Read the task files of a workspace; nothing is changed. Blocks."""
    files: list[TaskFile] = []
    damaged: list[tuple[str, str]] = []
    highest = 0
    with _opened(workspace) as directory:
        names = [] if directory is None else sorted(os.listdir(directory))
        for name in names:
            found = _NAME.fullmatch(name)
            if found is None or directory is None:
                continue
            highest = max(highest, int(found[1]))
            read = _read(directory, name, int(found[1]))
            if isinstance(read, str):
                damaged.append((name, read))
            elif len(files) >= MAX_TASKS:
                damaged.append((name, f"a board holds at most {MAX_TASKS} tasks"))
            else:
                files.append(read)
    return Left(sorted(files, key=lambda file: file.id), damaged, highest)


def write_files(workspace: Path, files: Mapping[int, bytes | None], *, complete: bool) -> None:
    """Make `.tasks` of a workspace hold these files; None = gone. Blocks.

    Args:
        complete: readable task files that are not named are taken away, too; damaged ones stay.

    Raises:
        OSError: the directory cannot be written, or something else has its name.
    """
    if not workspace.is_dir():
        return
    if any(content is not None for content in files.values()):
        with contextlib.suppress(FileExistsError):
            (workspace / DIRECTORY).mkdir()
    with _opened(workspace) as directory:
        if directory is None:
            return
        for task_id, content in files.items():
            if content is None:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(file_name(task_id), dir_fd=directory)
            elif _content(directory, file_name(task_id)) != content:
                replace_at(directory, file_name(task_id), content)
        if complete:
            _remove_others(directory, files)


def _remove_others(directory: int, files: Mapping[int, bytes | None]) -> None:
    for name in os.listdir(directory):
        found = _NAME.fullmatch(name)
        if found is None or int(found[1]) in files:
            continue
        if isinstance(_read(directory, name, int(found[1])), TaskFile):
            os.unlink(name, dir_fd=directory)


@contextmanager
def _opened(workspace: Path) -> Generator[int | None]:
    """Give a handle of the directory, None when there is none."""
    try:
        handle = os.open(workspace / DIRECTORY, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        handle = None
    try:
        yield handle
    finally:
        if handle is not None:
            os.close(handle)


def _content(directory: int, name: str) -> bytes | None:
    """The bytes of a regular file of reasonable size, None for anything else."""
    try:
        handle = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=directory)
    except OSError:
        return None
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        return None
    with os.fdopen(handle, "rb") as file:
        content = file.read(MAX_FILE_BYTES + 1)
    return content if len(content) <= MAX_FILE_BYTES else None


def _read(directory: int, name: str, task_id: int) -> TaskFile | str:
    content = _content(directory, name)
    if content is None:
        return f"it is no regular file of at most {MAX_FILE_BYTES >> 20} MiB that can be read"
    try:
        file = decode(content, TaskFile)
    except msgspec.DecodeError as error:
        return str(error)
    if file.id != task_id:
        return f"its id is {file.id}"
    return file if file.subject.strip() else "its subject is empty"
