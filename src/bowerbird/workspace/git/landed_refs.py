"""Which refs of a branch were brought into the user's repository, and as what.

Here: one small file in the branch's directory. A file that cannot be read counts as none: bringing a ref once
more does no harm.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from bowerbird.core.atomic import replace_file
from bowerbird.core.forms import decode

_NAME = "landed-refs.json"
_MOST = 20
Landed = dict[str, dict[str, list[str]]]


class LandedRefs:
    """By repository and ref, the object ids that landed, the newest last."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / _NAME

    def read(self) -> Landed:
        """Return all of them."""
        try:
            return decode(self._path.read_bytes(), Landed)
        except (OSError, msgspec.MsgspecError):
            return {}

    def newest(self) -> dict[str, dict[str, str]]:
        """Return what each ref landed as last."""
        return {
            root: {ref: ids[-1] for ref, ids in refs.items() if ids} for root, refs in self.read().items()
        }

    def add(self, root: str, refs: Mapping[str, Sequence[str]]) -> None:
        """Note that refs landed as some objects, the branch's own last; may be done twice."""
        known = self.read()
        mine = known.setdefault(root, {})
        for ref, names in refs.items():
            mine[ref] = [*(old for old in mine.get(ref, []) if old not in names), *names][-_MOST:]
        replace_file(self._path, msgspec.json.encode(known))
