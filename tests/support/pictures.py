"""Pictures of any size in few bytes: beginnings that are right, and no pixels.

Here: PNG, JPEG, GIF and all three kinds of WebP. Not here: what providers take of them (`provider_rules`).
"""

import struct
import zlib


def png(width: int = 4, height: int = 3, more: bytes = b"") -> bytes:
    """Return a grey PNG; `more` makes it longer."""
    shown = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    rows = (b"IHDR", shown), (b"tEXt", b"x\0" + more), (b"IDAT", zlib.compress(b"")), (b"IEND", b"")
    chunks = (
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        for name, data in rows
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


def jpeg(width: int = 4, height: int = 3) -> bytes:
    """Return a JPEG whose size stands behind a long comment with marks of its own."""
    comment = b"\xff\xfe" + struct.pack(">H", 2_002) + b"\xff\xc0\0\x11" * 500
    size = b"\xff\xc2" + struct.pack(">HBHHB", 17, 8, height, width, 3) + b"\1\x22\0\2\x11\1\3\x11\1"
    return b"\xff\xd8\xff\xe0" + struct.pack(">H", 16) + b"JFIF\0" + bytes(9) + comment + size + b"\xff\xd9"


def gif(width: int = 4, height: int = 3) -> bytes:
    """Return a GIF."""
    return b"GIF89a" + struct.pack("<HH", width, height) + b"\0\0\0;"


def webp(kind: bytes, width: int = 4, height: int = 3) -> bytes:
    """Return a WebP of kind `VP8 ` (lossy), `VP8L` (lossless) or `VP8X` (extended)."""
    if kind == b"VP8X":
        data = b"\0\0\0\0" + (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
    elif kind == b"VP8L":
        data = b"\x2f" + ((width - 1) | (height - 1) << 14).to_bytes(4, "little")
    else:
        data = b"\x30\1\0\x9d\1\x2a" + struct.pack("<HH", width, height)
    chunk = kind + struct.pack("<I", len(data)) + data
    return b"RIFF" + struct.pack("<I", len(chunk) + 4) + b"WEBP" + chunk
