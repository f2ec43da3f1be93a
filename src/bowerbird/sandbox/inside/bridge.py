"""A relay from a port of the sandbox's loopback to a Unix socket of the server's: the only way out.

Runs beside the zygote, outside every command's process namespace, so no command can see or stop it.
"""

import contextlib
import os
import signal
import socket
import threading

from . import kernel

PORT = 3128
PROXY_SOCKET = "proxy.sock"
_SOCKETS = "/run/bowerbird/net"
_CHUNK = 1 << 16
_MOST = 64


def start(port: int, name: str) -> int:
    """Fork a relay from a port to the socket of that name; return its process id. It dies with its parent."""
    listener = socket.create_server(("127.0.0.1", port), backlog=_MOST)
    pid = os.fork()
    if pid:
        listener.close()
        return pid
    try:
        kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
        kept = listener.fileno()
        os.closerange(3, kept)  # the zygote's channels are not this process's to hold open
        os.closerange(kept + 1, 1 << 16)
        kernel.drop_all_capabilities()
        _serve(listener, f"{_SOCKETS}/{name}")
    finally:
        os._exit(0)


def _serve(listener: socket.socket, target: str) -> None:
    """Accept until killed; each connection has two threads, so a slow one holds up no other."""
    room = threading.BoundedSemaphore(_MOST)
    while True:
        near, _ = listener.accept()
        far = socket.socket(socket.AF_UNIX)
        if not room.acquire(blocking=False):
            near.close()
            continue
        try:
            far.connect(target)
        except OSError:
            near.close()
            far.close()
            room.release()
            continue
        threading.Thread(target=_relay, args=(near, far, room), daemon=True).start()


def _relay(near: socket.socket, far: socket.socket, room: threading.BoundedSemaphore) -> None:
    back = threading.Thread(target=_pump, args=(far, near), daemon=True)
    back.start()
    _pump(near, far)
    back.join()
    near.close()
    far.close()
    room.release()


def _pump(source: socket.socket, sink: socket.socket) -> None:
    """Copy until `source` ends, then tell `sink` that no more will come."""
    with contextlib.suppress(OSError):
        while chunk := source.recv(_CHUNK):
            sink.sendall(chunk)
    with contextlib.suppress(OSError):
        sink.shutdown(socket.SHUT_WR)
