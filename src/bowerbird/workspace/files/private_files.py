"""Bowerbird's own records as files of a branch, a directory of them at once (WS-9).

Here: making such a directory hold what it should. Not here: what the records say, single private files
(`file_ops.py`).
"""

from collections.abc import Mapping
from pathlib import Path

from bowerbird.core.errors import NotDirectory
from bowerbird.workspace.files.file_ops import PRIVATE_FILE
from bowerbird.workspace.registry.state import BranchState
from bowerbird.workspace.tree.nodes import Entry
from bowerbird.workspace.tree.paths import shown_path
from bowerbird.workspace.tree.stack import Stack


def sync_private(
    state: BranchState, directory: str, files: Mapping[str, bytes | None], *, complete: bool
) -> None:
    """Put private files into `directory` and take others away; what is right already is left.

    Args:
        directory: virtual path, one level below the root.
        files: content by name; None = it must not be there.
        complete: private files there that are not named are taken away, too.

    Raises:
        NotDirectory: something else has the directory's name. BranchBusy.
    """
    wanted = {f"{directory}/{name}": content for name, content in files.items()}
    with state.writing() as stack:
        above = stack.lookup(directory)
        if above is not None and above.kind != "dir":
            raise NotDirectory(f"{shown_path(directory)} is not a directory", directory)
        private = state.manifest.value.private
        known = [path for path in private if path.startswith(f"{directory}/") and path != f"{directory}/"]
        gone = [path for path in known if path not in wanted] if complete else []
        gone += [path for path, content in wanted.items() if content is None]
        gone = [path for path in gone if stack.lookup(path) is not None]
        put = {path: content for path, content in wanted.items() if content is not None}
        put = {path: content for path, content in put.items() if not _holds(stack.lookup(path), content)}
        made = [f"{directory}/"] if above is None and put else []
        names = tuple(dict.fromkeys([*private, *made, *put, *gone]))
        if names != private:
            # Named first: a kill before the file is there leaves a name without a file.
            state.manifest.update(private=names)
        _write(stack, put, gone)


def _write(stack: Stack, put: Mapping[str, bytes], gone: list[str]) -> None:
    for path, content in put.items():
        stack.put_file(path, content, PRIVATE_FILE)
    for path in gone:
        stack.remove(path)


def _holds(entry: Entry | None, content: bytes) -> bool:
    if entry is None or entry.kind != "file" or entry.source is None or entry.size != len(content):
        return False
    try:
        return Path(entry.source).read_bytes() == content
    except OSError:
        return False  # whatever it was: then it is written again
