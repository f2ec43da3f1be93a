"""Writes `src/bowerbird/models/packaged_rates.json`: what the price package says of the models in common use.

Run it after the price package changed in `locks/`: `python scripts/packaged_rates.py`. With the file, a new
installation prices its first call without importing the package. `tests/models/test_kept_rates.py` holds it
current. The models are those of providers that sell their own, not a reseller's thousand.
"""

import sys
import warnings

import msgspec

from bowerbird.core.model_presets import PRESETS
from bowerbird.models.kept_rates import PACKAGED, KeptRates, RatesFile, fingerprint
from bowerbird.models.offered import conversing
from bowerbird.models.prices import packaged_rates
from bowerbird.models.settings import ModelSettings

RESELLER = "openrouter"


def current() -> bytes:
    """Return what the file holds where it is current."""
    sellers = sorted({p.prices_as for p in PRESETS.values() if p.prices_as} - {RESELLER})
    named = [(seller, model) for seller in sellers for model in sorted(conversing(seller))]
    named.append(("anthropic", ModelSettings().model))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = {f"{seller}:{model}": packaged_rates(seller, model) for seller, model in named}
    kept = {name: rates for name, rates in sorted(found.items()) if rates is not None}
    return msgspec.json.format(msgspec.json.encode(RatesFile(fingerprint(), kept)), indent=1) + b"\n"


if __name__ == "__main__":
    PACKAGED.write_bytes(current())
    print(f"{PACKAGED.name}: {len(KeptRates.packaged())} models", file=sys.stderr)
