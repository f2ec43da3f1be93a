"""The memory that Bowerbird keeps by itself: what a model is asked, what is kept of its answer (SE-44). Pure.

Here: those texts and the limit. Not here: calling a model, storing versions.
"""

from bowerbird.core.lines import lines_of

MAX_BYTES = 4_096
FILE = ".agent/memory.md"

SYSTEM = (
    "You keep the memory of an assistant about one person and one directory. You are given the present "
    "memory and a dialogue that came after it. Rewrite the memory as plain text with one fact per line, "
    "the most important ones last: what the person prefers, decisions and their reasons, facts about the "
    "project that will matter again, what is left to do. Keep what is still true, correct what changed, "
    "leave out what is over, greetings, and everything that can be read in the files themselves. Never write "
    "down passwords, keys or tokens. At most 4,096 bytes. Answer with the memory alone; with the present one "
    "if nothing is new."
)


def question(memory: str, dialogue: str) -> str:
    """Return what the model is asked.

    Example:
        >>> question("", "Hi").startswith("The present memory is empty.")
        True
    """
    present = f"The present memory:\n\n{memory}" if memory.strip() else "The present memory is empty."
    return f"{present}\n\nThe dialogue since then:\n\n{dialogue}"


def fitted(text: str) -> str:
    """Return a memory of at most 4,096 bytes: the oldest lines go first.

    A single line that is too long is cut at its end, between characters.

    Example:
        >>> fitted("a\\n" + "b" * 4095) == "b" * 4095
        True
    """
    lines = lines_of(text.strip())
    kept = "\n".join(lines[_without_room(lines) :]).encode()[:MAX_BYTES]
    return kept.decode("utf-8", "ignore").strip()


def forgotten(text: str) -> list[str]:
    """Return the lines that `fitted` leaves out, the oldest first.

    Example:
        >>> forgotten("a\\n" + "b" * 4095), forgotten("a\\nb")
        (['a'], [])
    """
    lines = lines_of(text.strip())
    return lines[: _without_room(lines)]


def _without_room(lines: list[str]) -> int:
    sizes = [len(line.encode()) + 1 for line in lines]
    size, first = sum(sizes) - 1, 0
    while first < len(lines) - 1 and size > MAX_BYTES:
        size -= sizes[first]
        first += 1
    return first
