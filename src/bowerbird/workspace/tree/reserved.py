"""Names at a root that hold Bowerbird's own records (TO-9).

Here: which they are. Every tool may read them; file tools neither list nor write them;
`write_private` does. Not here: who enforces it (`find/walk.py`, `find/listing.py`, `registry/state.py`).
"""

RESERVED = frozenset((".agent", ".transcripts", ".tasks", ".team"))


def is_reserved(path: str) -> bool:
    """Whether a virtual path is one of those directories, or below it.

    Example:
        >>> is_reserved("/.agent/memory.md"), is_reserved("/src/.agent")
        (True, False)
    """
    return path.partition("/")[2].partition("/")[0] in RESERVED
