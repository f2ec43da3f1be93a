"""Packages that an environment of the workspace takes from the workspace itself (`pip install -e .`).

Such an environment names the workspace's own path, where the copy tier shows nothing: there the copy's
packages have to be named to Python besides. Here: which directories those are. Not here: the copy, scripts
(`copy_projection`).
"""

import ast
import contextlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from bowerbird.sandbox.run.shown_trees import is_below

_MOST_FILES, _MOST_BYTES = 200, 1 << 20
_MAPPING = "MAPPING"
"""The table of name → path in the finders that setuptools writes for packages beside other directories."""


def own_packages(environments: Iterable[Path], workspace: Path) -> list[str]:
    """Return the directories of a workspace that its environments import from. Blocks.

    Args:
        environments: directories with `lib/python3*/site-packages`; those that have none are passed over.
    """
    found: dict[str, None] = {}
    for environment in environments:
        for site in sorted(environment.glob("lib/python3*/site-packages")):
            for file in [*sorted(site.glob("*.pth")), *sorted(site.glob("__editable__*.py"))][:_MOST_FILES]:
                found |= dict.fromkeys(_named(file))
    top = str(workspace)
    return [path for path in found if is_below(path, top) and Path(path).is_dir()]


def _named(file: Path) -> Iterator[str]:
    """Yield the directories that a file of an environment adds to what Python imports from."""
    with contextlib.suppress(
        OSError, ValueError, SyntaxError
    ):  # not to be read: then Python reads it neither
        if file.stat().st_size > _MOST_BYTES:
            return
        text = file.read_text()
        if file.suffix == ".pth":
            yield from (line.strip() for line in text.splitlines() if line.startswith("/"))
            return
        for line in text.splitlines():
            if line.startswith(_MAPPING) and "=" in line:
                table = ast.literal_eval(line.partition("=")[2].strip())
                yield from (str(Path(place).parent) for place in table.values())
