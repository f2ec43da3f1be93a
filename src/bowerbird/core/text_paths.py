"""Whether a path can stand in records, which are text.

Here: that question. Not here: names of files on a branch, which may be any bytes (`workspace/tree/paths.py`).
"""

import os


def is_utf_8(path: str | os.PathLike[str]) -> bool:
    """Whether a path is UTF-8; Linux allows other bytes, which Python shows as lone surrogates.

    Example:
        >>> is_utf_8("/home/ann/café"), is_utf_8("/home/ann/caf\\udce9")
        (True, False)
    """
    try:
        os.fspath(path).encode()
    except UnicodeEncodeError:
        return False
    return True
