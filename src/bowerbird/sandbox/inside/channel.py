"""JSON messages with descriptors over a SOCK_SEQPACKET socket, one message a packet.

Shared by the two helper processes and the server's side of them. Not here: what the messages mean.

A message too long for a packet (a command line may have megabytes) travels as a descriptor of memory.
"""

import array
import errno
import json
import os
import socket

TYPE_CHECKING = False  # `import typing` would cost milliseconds at every cold start
if TYPE_CHECKING:
    from typing import Any

    Message = dict[str, Any]

LONGEST_PACKET = 1 << 16
_MOST_FDS = 64
_IN_MEMORY = b"@"  # no JSON text begins with it; the message is in the last descriptor


def pair() -> "tuple[socket.socket, socket.socket]":
    """Return the two ends of a new channel, with room for some packets."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    for end in (ours, theirs):
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, LONGEST_PACKET * 8)
    return ours, theirs


def send(channel: socket.socket, message: "Message", fds: "list[int] | None" = None) -> None:
    """Send one message; raises OSError when the other end is gone or does not listen."""
    data = json.dumps(message).encode()
    if len(data) < LONGEST_PACKET:
        socket.send_fds(channel, [data], fds or [])
        return
    memory = os.memfd_create("message", os.MFD_CLOEXEC)
    try:
        while data:
            data = data[os.write(memory, data) :]
        socket.send_fds(channel, [_IN_MEMORY], [*(fds or []), memory])
    finally:
        os.close(memory)


def receive(channel: socket.socket) -> "tuple[Message | None, list[int]]":
    """Read one message and the descriptors beside it (close-on-exec); None when the other end is gone.

    Raises:
        OSError: EMFILE, this process may have no more descriptors; the message is lost, the channel is not.
    """
    space = socket.CMSG_SPACE(_MOST_FDS * array.array("i").itemsize)
    try:
        data, ancillary, flags, _ = channel.recvmsg(LONGEST_PACKET, space, socket.MSG_CMSG_CLOEXEC)
    except ConnectionResetError:
        return None, []  # it was killed with a message of ours still unread
    received = array.array("i")
    for level, kind, payload in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            received.frombytes(payload[: len(payload) - len(payload) % received.itemsize])
    fds = list(received)
    if flags & socket.MSG_CTRUNC:
        for fd in fds:
            os.close(fd)
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
    if data == _IN_MEMORY:
        memory = fds.pop()
        try:
            data = os.pread(memory, os.fstat(memory).st_size, 0)
        finally:
            os.close(memory)
    return (json.loads(data) if data else None), fds
