"""Sign-ins at MCP servers, encrypted on disk (PT-17).

Here: one file for each server in a directory of the data directory, readable by its owner alone and sealed
with a key that lies beside them. Not here: how somebody signs in (`oauth.py`).

The key keeps tokens out of whatever copies or searches single files. Who reads the whole data directory has
both: full-disk encryption is for that.
"""

import contextlib
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from bowerbird.core.forms import decode

_KEY_BYTES, _NONCE_BYTES = 32, 12
_ENDING = ".sealed"


class LoginNeeded(Exception):
    """A person has to sign in; `str(error)` says how."""


@dataclass(frozen=True, slots=True)
class Logins:
    """The sign-ins kept in a directory. Every method blocks.

    Args:
        directory: made when the first is kept.
    """

    directory: Path

    def read(self, name: str, url: str) -> dict[str, Any] | None:
        """Return what is kept for a server; None for nothing, another address, and what is damaged."""
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        try:
            sealed = self._file(name).read_bytes()
            key = (self.directory / "key").read_bytes()
            text = AESGCM(key).decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], _bound(name, url))
            return decode(text, dict[str, Any])
        except (OSError, InvalidTag, ValueError, msgspec.DecodeError):
            return None

    def write(self, name: str, url: str, kept: dict[str, Any]) -> None:
        """Keep a sign-in in place of an earlier one; raises OSError."""
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        nonce = os.urandom(_NONCE_BYTES)
        sealed = nonce + AESGCM(self._key()).encrypt(nonce, msgspec.json.encode(kept), _bound(name, url))
        self._put(self._file(name), sealed)

    def remove(self, name: str) -> bool:
        """Forget a sign-in; return whether there was one."""
        try:
            self._file(name).unlink()
        except FileNotFoundError:
            return False
        return True

    def has(self, name: str) -> bool:
        """Whether something is kept for a server."""
        return self._file(name).exists()

    def _file(self, name: str) -> Path:
        return self.directory / f"{name}{_ENDING}"

    def _key(self) -> bytes:
        path = self.directory / "key"
        with contextlib.suppress(FileNotFoundError):
            found = path.read_bytes()
            if len(found) == _KEY_BYTES:
                return found
        with tempfile.NamedTemporaryFile(dir=self.directory, delete=False) as file:  # 0600
            file.write(os.urandom(_KEY_BYTES))
        try:
            os.link(file.name, path)  # whoever was first keeps theirs
        except FileExistsError:
            if path.stat().st_size != _KEY_BYTES:
                Path(file.name).replace(path)
        Path(file.name).unlink(missing_ok=True)
        return path.read_bytes()

    def _put(self, path: Path, data: bytes) -> None:
        with tempfile.NamedTemporaryFile(dir=self.directory, delete=False) as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        Path(file.name).replace(path)


def _bound(name: str, url: str) -> bytes:
    """Return what a sign-in is sealed to: tokens of one address are never sent to another."""
    return f"{name}\0{url}".encode()
