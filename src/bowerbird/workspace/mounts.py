"""Which mounts stand below a directory (WS-8). Not here: making any."""

import re
from pathlib import Path


def submounts(directory: Path) -> tuple[Path, ...]:
    """Return the mount points below `directory`, sorted; none where the system does not tell."""
    try:
        table = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return ()
    points = {Path(_plain(line.split(" ")[4])) for line in table.splitlines()}
    return tuple(sorted(point for point in points if directory in point.parents))


def _plain(name: str) -> str:
    """Undo the octal escapes of blanks and backslashes."""
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found.group(1), 8)), name)
