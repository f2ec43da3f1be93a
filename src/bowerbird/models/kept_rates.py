"""Rates that the price package gave before, kept in a small file: most calls are priced without importing it.

The package and what it brings take a tenth of a one-turn run's time and memory. Here: what is kept, for which
package, and up to which size of a call it holds; a file of models in common use comes with the program. Not
here: asking the package, arithmetic (`prices.py`), writing that file (`scripts/packaged_rates.py`).
"""

import contextlib
import zlib
from collections.abc import Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import msgspec

from bowerbird.core.atomic import replace_file
from bowerbird.core.forms import decode

FILE = "prices.json"
PACKAGED = Path(__file__).with_name("packaged_rates.json")
MOST = 256
_LARGEST = 1 << 20


class Rates(msgspec.Struct, frozen=True):
    """USD per million tokens, all None for a model without a price.

    Attributes:
        most_context: the largest context that they hold for, None = any: some models cost more beyond.
        window: tokens that the model takes, None where the package does not say.
    """

    input: float | None = None
    output: float | None = None
    cache_read: float | None = None
    cache_write: float | None = None
    most_context: int | None = None
    window: int | None = None


class RatesFile(msgspec.Struct):
    """Rates by `provider:model`, and the package that they are of."""

    package: str
    rates: dict[str, Rates]


class KeptRates:
    """The rates of one data directory; without one, those of this process.

    Args:
        directory: where the file lies. A file that cannot be read or written keeps nothing, without a word:
            the package is asked again.
    """

    def __init__(self, directory: Path | None = None) -> None:
        self._file = None if directory is None else directory / FILE
        self._known: RatesFile | None = None

    def get(self, provider: str, model: str) -> Rates | None:
        """Return the rates of a model, None when they are not kept."""
        name = f"{provider}:{model}"
        return self._read().rates.get(name) or self.packaged().get(name)

    @staticmethod
    @cache
    def packaged() -> Mapping[str, Rates]:
        """The rates that come with the program; none where another version of the package is installed."""
        found = _load(PACKAGED)
        return found.rates if found is not None and found.package == fingerprint() else {}

    def keep(self, provider: str, model: str, rates: Rates) -> None:
        """Remember them for this process and the next."""
        known = self._read()
        if len(known.rates) >= MOST:
            known.rates.clear()  # they are asked for again: only time is lost
        known.rates[f"{provider}:{model}"] = rates
        if self._file is not None:
            with contextlib.suppress(OSError):
                replace_file(self._file, msgspec.json.encode(known))

    def _read(self) -> RatesFile:
        if self._known is None:
            package = _package()
            found = None if self._file is None else _load(self._file)
            self._known = found if found is not None and found.package == package else RatesFile(package, {})
        return self._known


def _load(file: Path) -> RatesFile | None:
    try:
        if file.stat().st_size > _LARGEST:
            return None
        return decode(file.read_bytes(), RatesFile)
    except (OSError, msgspec.DecodeError):
        return None  # never kept, or not whole


def fingerprint() -> str:
    """Return what is the same wherever the package has the same table; its text is read, in 2 ms."""
    table = _table()
    return "" if table is None else f"{zlib.crc32(table.read_bytes()):08x}"


def _package() -> str:
    """Return what changes with this installation's table."""
    table = _table()
    if table is None:
        return ""
    found = table.stat()
    return f"{found.st_size}-{found.st_mtime_ns}"


def _table() -> Path | None:
    """Return where the package's table lies; finding it imports nothing."""
    spec = find_spec("genai_prices")
    return None if spec is None or spec.origin is None else Path(spec.origin).parent / "data.py"
