"""Which pictures models are shown: by how a file begins, never by its name.

Here: the formats that every provider takes, how large a picture is. Not here: reading, keeping and sending.
"""

import struct

PICTURE_BYTES = 5 << 20
"""The largest that providers take."""
_MOST_SEGMENTS = 5_000  # of a JPEG before its first frame; a profile of colours takes a few hundred
_BEGINNINGS = ((b"\x89PNG\r\n\x1a\n", "image/png"), (b"\xff\xd8\xff", "image/jpeg"), (b"GIF8", "image/gif"))


def picture_type(content: bytes) -> str | None:
    """Return the media type that a picture's first 12 bytes say, None for what is none of them.

    Example:
        >>> picture_type(b"GIF89a"), picture_type(b"RIFF1234WEBP"), picture_type(b"plain")
        ('image/gif', 'image/webp', None)
    """
    if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for begin, kind in _BEGINNINGS if content.startswith(begin)), None)


def picture_size(content: bytes) -> tuple[int, int] | None:
    """Return width and height in pixels, None for what is no picture or ends before it says them.

    Example:
        >>> picture_size(b"GIF89a" + bytes((4, 0, 3, 0)))
        (4, 3)
    """
    try:
        match picture_type(content), content[12:16]:
            case "image/png", _:
                size = struct.unpack_from(">II", content, 16)
            case "image/gif", _:
                size = struct.unpack_from("<HH", content, 6)
            case "image/jpeg", _:
                size = _size_in_frame(content)
            case "image/webp", b"VP8X":
                low, width, high, height = struct.unpack_from("<HBHB", content, 24)
                size = (low + (width << 16) + 1, high + (height << 16) + 1)
            case "image/webp", b"VP8L":
                (bits,) = struct.unpack_from("<I", content, 21)
                size = ((bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1)
            case "image/webp", b"VP8 ":
                width, height = struct.unpack_from("<HH", content, 26)
                size = (width & 0x3FFF, height & 0x3FFF)
            case _:
                return None
    except struct.error:
        return None
    return (size[0], size[1]) if all(size) else None


def _size_in_frame(content: bytes) -> tuple[int, int]:
    """Return the size that stands in a JPEG's first frame, behind segments of any length."""
    at = 2
    for _ in range(_MOST_SEGMENTS):
        mark, kind, length = struct.unpack_from(">BBH", content, at)
        if mark != 0xFF:
            break
        if 0xC0 <= kind <= 0xCF and kind not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack_from(">HH", content, at + 5)
            return width, height
        at += 1 if kind == 0xFF else 2 + length
    return 0, 0
