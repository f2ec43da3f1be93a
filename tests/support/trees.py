"""Directory trees for tests and benchmarks, made the same way every time.

Here: a tree like a real project of a given size, writing trees from dicts, reading them back.
"""

import os
import random
import stat
from collections.abc import Mapping
from pathlib import Path

_WORDS = (
    "alpha branch cache delta event field graph handle index journal kernel layer merge node "
    "object parse queue range scope token update value window yield zone"
).split()


def write_tree(root: Path, files: Mapping[str, str | bytes]) -> Path:
    """Write `{"a/b.txt": content}` below `root`; a name ending in `/` is an empty directory."""
    root.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        path = root / name
        if name.endswith("/"):
            path.mkdir(parents=True, exist_ok=True)
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return root


def read_tree(root: Path) -> dict[str, tuple[str, int, bytes | str]]:
    """Return everything below `root`: path → (kind, mode, bytes or link target)."""
    found: dict[str, tuple[str, int, bytes | str]] = {}
    for folder, dirs, files in os.walk(root):
        for name in dirs + files:
            path = Path(folder) / name
            seen = path.lstat()
            key = "/" + str(path.relative_to(root))
            if stat.S_ISLNK(seen.st_mode):
                found[key] = ("symlink", 0, str(path.readlink()))
            elif stat.S_ISDIR(seen.st_mode):
                found[key] = ("dir", stat.S_IMODE(seen.st_mode), "")
            elif stat.S_ISREG(seen.st_mode):
                found[key] = ("file", stat.S_IMODE(seen.st_mode), path.read_bytes())
    return found


def project(root: Path, *, files: int = 10_000, total_bytes: int = 57_000_000, seed: int = 7) -> Path:
    """Make a tree like a grown project: packages ten files wide, a third of it Python.

    Args:
        files: how many regular files.
        total_bytes: about how many bytes in all.
    """
    rng = random.Random(seed)
    body = "".join(
        f"def {a}_{b}(self, {c}):  # {d}\n    return self.{c} + {i}\n"
        for i, (a, b, c, d) in enumerate(tuple(rng.choice(_WORDS) for _ in range(4)) for _ in range(4000))
    )
    mean = total_bytes // files
    suffixes = (".py", ".py", ".py", ".ts", ".md", ".json", ".txt", ".css", ".rs", ".html")
    root.mkdir(parents=True, exist_ok=True)
    (root / ".gitignore").write_text("__pycache__/\n*.pyc\nnode_modules/\n/build/\n*.log\n.venv/\n")
    made = 1
    while made < files:
        number = made // 10
        folder = root / f"pkg{number % 25:02d}" / f"mod{number // 25 % 10}" / f"part{number // 250}"
        folder.mkdir(parents=True, exist_ok=True)
        for index in range(min(10, files - made)):
            size = int(mean * rng.uniform(0.3, 1.7))
            start = rng.randrange(0, max(1, len(body) - size)) if size < len(body) else 0
            (folder / f"{rng.choice(_WORDS)}_{index}{suffixes[index]}").write_text(body[start : start + size])
            made += 1
    return root
