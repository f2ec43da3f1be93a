"""Evaluated beginnings of prompts, kept on disk: the next process need not evaluate them again (D-24).

Here: the directory, its files' names, checks and bounds; asking the engine to write or read one.
Not here: what a beginning is (`prompt.py`), when the engine is loaded (`engine.py`).

A file's name says what it belongs to and what its bytes hash to, so a file that was cut short, changed or
made by another engine is never read. Whatever fails here costs the evaluation that it would have saved,
nothing else.
"""

import contextlib
import hashlib
import http.client
import json
import os
import secrets
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

MOST_FILES = 6
"""Of about 40 MB each; those not used for longest go first."""

_CALL_S = 60.0


@dataclass(frozen=True, slots=True)
class Door:
    """The engine's own socket, before it is removed, and its key."""

    path: Path
    key: str

    def ask(self, action: str, filename: str) -> bool:
        """Ask the engine to `save` its state to, or `restore` it from, a file of its directory."""
        connection = _UnixConnection(self.path)
        try:
            connection.request(
                "POST",
                f"/slots/0?action={action}",
                json.dumps({"filename": filename}),
                {"Authorization": f"Bearer {self.key}", "Content-Type": "application/json"},
            )
            return connection.getresponse().status == 200
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: Path) -> None:
        super().__init__("localhost")
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(_CALL_S)
        self.sock.connect(str(self._path))


def prepared(directory: Path) -> bool:
    """Make the private directory; return whether it can be used."""
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(directory, os.W_OK | os.X_OK)


def key_of(weights: Path, engine: str, context: int, beginning: Sequence[Mapping[str, str]]) -> str:
    """Return the name of a beginning: another file, engine, window or text gives another one."""
    found = weights.stat()
    facts = [str(weights), found.st_size, found.st_mtime_ns, engine, context, [dict(m) for m in beginning]]
    return hashlib.blake2b(json.dumps(facts).encode(), digest_size=12).hexdigest()


def bring_back(directory: Path, key: str, door: Door, evaluate: Callable[[], bool]) -> None:
    """Give the engine the evaluated beginning `key`: from disk, else evaluated now and kept.

    Args:
        directory: where they lie, and the engine's own directory for such files.
        evaluate: evaluates the beginning; returns False when it was stopped.
    """
    with contextlib.suppress(OSError):  # a full or vanished disk costs the evaluation only
        for file in directory.glob(f"{key}-*.state"):
            if file.stem == f"{key}-{_digest(file)}" and door.ask("restore", file.name):
                os.utime(file)
                return
            file.unlink(missing_ok=True)
        if evaluate():
            _keep(directory, key, door)


def _keep(directory: Path, key: str, door: Door) -> None:
    fresh = directory / f"{secrets.token_hex(8)}.new"
    try:
        if door.ask("save", fresh.name):
            fresh.chmod(0o600)
            fresh.rename(directory / f"{key}-{_digest(fresh)}.state")
    finally:
        fresh.unlink(missing_ok=True)
    files = sorted(directory.iterdir(), key=lambda file: file.stat().st_mtime, reverse=True)
    for file in files[MOST_FILES:]:
        file.unlink(missing_ok=True)


def _digest(file: Path) -> str:
    with file.open("rb") as content:
        return hashlib.file_digest(content, lambda: hashlib.blake2b(digest_size=16)).hexdigest()
