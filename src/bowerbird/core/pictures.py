"""Which pictures models are shown: by how a file begins, never by its name.

Here: the formats that every provider takes. Not here: reading, keeping and sending them.
"""

PICTURE_BYTES = 5 << 20
"""The largest that providers take."""
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
