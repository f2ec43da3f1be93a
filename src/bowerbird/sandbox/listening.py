"""A Unix socket below a sandbox's directory, however long its path is.

Here: binding it. Not here: who serves it (`network`, `run/doors`).
"""

import contextlib
import os
import socket
from pathlib import Path


def listen(directory: Path, name: str) -> socket.socket:
    """Return a socket bound in `directory`, whose path may be longer than a socket's name."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    with contextlib.suppress(FileNotFoundError):
        (directory / name).unlink()
    listener = socket.socket(socket.AF_UNIX)
    folder = os.open(directory, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        listener.bind(f"/proc/self/fd/{folder}/{name}")
        listener.setblocking(False)
    except OSError:
        listener.close()
        raise
    finally:
        os.close(folder)
    return listener
