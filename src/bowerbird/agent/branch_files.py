"""What a run keeps on its branch beside the work: long outputs, transcripts and images, as private files.

Here: the stores a library run needs (AG-51, AG-56, MO-7). Not here: the stores of sessions, which have
a database. Private files are readable by every tool and in no diff, merge or landing (WS-9).
"""

import hashlib
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from bowerbird.core.errors import NotFound, WorkspaceError
from bowerbird.core.messages import Message, message_to_data
from bowerbird.core.threads import to_thread

if TYPE_CHECKING:
    from bowerbird.workspace import Branch

_BLOBS = "/.agent/blobs"


async def is_taken(branch: "Branch", path: str) -> bool:
    """Whether the merged view has something at `path`; one lookup, nothing is read."""
    try:
        await branch.read_bytes(path, 0, 0)
    except NotFound:
        return False
    except WorkspaceError:
        return True  # a directory, a device: the name is not free
    return True


class BranchStore:
    """Long outputs, transcripts and images of runs on `branch`; forks of it read them too."""

    def __init__(self, branch: "Branch") -> None:
        self._branch = branch

    async def spill(self, call: str, text: str) -> str:
        """Store the whole output of `call`; return the path that `read_file` takes."""
        path = f".agent/out/{call}.txt"
        await to_thread(self._branch.write_private, f"/{path}", text.encode("utf-8", "replace"))
        return path

    async def save(self, messages: Sequence[Message]) -> str:
        """Store `messages` as JSON lines in `.transcripts/transcript_{unix_seconds}.jsonl`."""
        stem = f".transcripts/transcript_{int(time.time())}"
        number, path = 0, f"{stem}.jsonl"
        while await is_taken(self._branch, f"/{path}"):
            number += 1
            path = f"{stem}_{number}.jsonl"
        lines = b"\n".join(msgspec.json.encode(message_to_data(m)) for m in messages)
        await to_thread(self._branch.write_private, f"/{path}", lines + b"\n")
        return path

    async def store_blob(self, content: bytes, media_type: str) -> str:
        """Store `content` once and return its id `sha256:…`; the type is the message's to keep."""
        digest = hashlib.sha256(content).hexdigest()
        path = f"{_BLOBS}/{digest}"
        if await to_thread(self._kept, path) != content:
            await to_thread(self._branch.write_private, path, content)
        return f"sha256:{digest}"

    def read_blob(self, name: str) -> bytes:
        """Return the bytes of the blob `name`; raises NotFound when they are gone or were changed."""
        digest = name.removeprefix("sha256:")
        content = self._kept(f"{_BLOBS}/{digest}")
        # Commands on the branch could write the file; a request must carry what the message names.
        if content is None or hashlib.sha256(content).hexdigest() != digest:
            raise NotFound(f"blob {digest[:12]}… is not on the branch", f"{_BLOBS}/{digest}")
        return content

    def _kept(self, path: str) -> bytes | None:
        return self._branch.read_overlay(path)
