"""Readable copies of the memory that is kept in the store (SE-44; architecture, law 2).

Here: where a copy is, and replacing it in one step. Not here: its text, which is never read back.
"""

import contextlib
import hashlib
import os
from pathlib import Path

from bowerbird.core.atomic import replace_at
from bowerbird.memory.rewriting import FILE

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def copy_path(owner: str, workspace: str, data_dir: Path, *, is_own: bool) -> Path:
    """Return where the copy of a memory is.

    Args:
        owner: user id, "" for the one user of a server without auth. workspace: path, "" for none.
        is_own: Bowerbird made the workspace for itself; there the one user's copy lies beside the files.
    """
    if not owner and is_own:
        return Path(workspace) / FILE
    name = hashlib.sha256("\0".join((owner, workspace)).encode("utf-8", "surrogateescape")).hexdigest()
    return data_dir / "memory" / f"{name[:32]}.md"


def write_copy(path: Path, text: str) -> None:
    """Replace a copy, readable for its owner only. Blocks.

    A link in the place of the directory or the file leads nowhere.

    Raises:
        OSError: the directory cannot be written, or something else has its name.
    """
    with contextlib.suppress(FileExistsError):
        path.parent.mkdir(mode=0o700)
    directory = os.open(path.parent, _DIRECTORY)
    try:
        replace_at(directory, path.name, text.encode("utf-8", "surrogateescape") + b"\n", mode=0o600)
    finally:
        os.close(directory)
