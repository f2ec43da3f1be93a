"""Which mounts stand below a directory (WS-8). Not here: making any."""

import os
import re
from pathlib import Path

from bowerbird.core.lines import lines_of


def submounts(directory: Path) -> tuple[Path, ...]:
    """Return the mount points below `directory`, sorted; none where the system does not tell."""
    try:
        table = Path("/proc/self/mountinfo").read_bytes()
    except FileNotFoundError:
        return ()  # no such table: not Linux
    lines = lines_of(os.fsdecode(table))  # a mount point may have any control character but newline and tab
    points = {Path(_plain(line.split(" ")[4])) for line in lines}
    return tuple(sorted(point for point in points if directory in point.parents))


def _plain(name: str) -> str:
    """Undo the octal escapes of blanks and backslashes."""
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found.group(1), 8)), name)
