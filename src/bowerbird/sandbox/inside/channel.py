"""JSON messages with descriptors over a SOCK_SEQPACKET socket, one message a packet.

Shared by the two helper processes and the server's side of them. Not here: what the messages mean.
"""

import array
import json
import socket

TYPE_CHECKING = False  # `import typing` would cost milliseconds at every cold start
if TYPE_CHECKING:
    from typing import Any

    Message = dict[str, Any]

LONGEST_MESSAGE = 1 << 18
_MOST_FDS = 64


def pair() -> "tuple[socket.socket, socket.socket]":
    """Return the two ends of a new channel, with room for the longest message."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    for end in (ours, theirs):
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, LONGEST_MESSAGE * 2)
    return ours, theirs


def send(channel: socket.socket, message: "Message", fds: "list[int] | None" = None) -> None:
    """Send one message; raises OSError when the other end is gone or the message is too long."""
    socket.send_fds(channel, [json.dumps(message).encode()], fds or [])


def receive(channel: socket.socket) -> "tuple[Message | None, list[int]]":
    """Read one message and the descriptors beside it (close-on-exec); None when the other end is gone."""
    space = socket.CMSG_SPACE(_MOST_FDS * array.array("i").itemsize)
    data, ancillary, _, _ = channel.recvmsg(LONGEST_MESSAGE, space, socket.MSG_CMSG_CLOEXEC)
    fds = array.array("i")
    for level, kind, payload in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            fds.frombytes(payload[: len(payload) - len(payload) % fds.itemsize])
    return (json.loads(data) if data else None), list(fds)
