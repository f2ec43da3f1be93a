"""Prices without the price package: kept, right, and asked for again when they cannot be (MO-48, UI-51)."""

import json
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bowerbird.config.sections.agent import DEFAULT_MODEL
from bowerbird.core.usage import Usage
from bowerbird.models import price
from bowerbird.models.kept_rates import FILE, PACKAGED, KeptRates, Rates, RatesFile, fingerprint
from bowerbird.models.prices import _asked, packaged_rates

SONNET = "claude-sonnet-4-5-20250101"
"""A name of no table that the program brings along, and of a family that the package knows."""
TOKENS = st.integers(0, 400_000)
MODELS = st.sampled_from(
    [("anthropic", SONNET), ("anthropic", "claude-3-5-haiku-latest"), ("openai", "gpt-4o"), ("openai", "o3")]
)


@given(MODELS, st.builds(Usage, TOKENS, TOKENS, TOKENS, TOKENS))
def test_what_is_kept_gives_the_price_of_the_package(named: tuple[str, str], usage: Usage) -> None:
    """MO-48: below and beyond the size from which a call costs more."""
    assert price(usage, *named) == pytest.approx(_asked(usage, *named, None))


PRICED = """
import sys
from pathlib import Path
from bowerbird.core.usage import Usage
from bowerbird.models.prices import keep_rates_in, price
keep_rates_in(Path(sys.argv[1]))
known = price(Usage(input_tokens=1000, output_tokens=10), "anthropic", sys.argv[2])
print(known, price(Usage(input_tokens=1), "anthropic", "no-such-model"), "genai_prices" in sys.modules)
"""


def priced(directory: Path, model: str = SONNET) -> list[str]:
    run = [sys.executable, "-c", PRICED, str(directory), model]
    return subprocess.run(run, capture_output=True, text=True, check=True).stdout.split()


def test_the_second_process_needs_no_package(tmp_path: Path) -> None:
    """UI-51: neither for a model with a price nor for one without."""
    first, second = priced(tmp_path), priced(tmp_path)
    assert first[2] == "True" and second[2] == "False"
    assert second[:2] == first[:2] and float(first[0]) == pytest.approx(0.00315) and first[1] == "None"


def test_the_first_process_of_all_needs_no_package_for_a_model_in_common_use(tmp_path: Path) -> None:
    """UI-51: a new installation's first answer waits for no table of prices; what it costs is the same."""
    known, _, _ = priced(tmp_path, DEFAULT_MODEL)
    assert float(known) == pytest.approx(0.0021)
    only = PRICED.replace(', price(Usage(input_tokens=1), "anthropic", "no-such-model")', ", 0")
    run = [sys.executable, "-c", only, str(tmp_path / "new"), DEFAULT_MODEL]
    said = subprocess.run(run, capture_output=True, text=True, check=True).stdout.split()
    assert said == [known, "0", "False"]


def test_the_rates_that_come_along_are_those_of_the_package_that_is_pinned() -> None:
    """MO-48: else `python scripts/packaged_rates.py` writes them anew."""
    file = msgspec.json.decode(PACKAGED.read_bytes(), type=RatesFile)
    assert file.package == fingerprint()
    for name, rates in file.rates.items():
        seller, _, model = name.partition(":")
        assert rates == packaged_rates(seller, model), name
    assert f"anthropic:{DEFAULT_MODEL}" in file.rates


def test_the_rates_that_come_along_hold_for_no_other_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "rates.json"
    other.write_bytes(msgspec.json.encode(RatesFile("0", {f"anthropic:{SONNET}": Rates(999.0, 999.0)})))
    monkeypatch.setattr("bowerbird.models.kept_rates.PACKAGED", other)
    KeptRates.packaged.cache_clear()
    try:
        assert KeptRates(tmp_path).get("anthropic", SONNET) is None
    finally:
        KeptRates.packaged.cache_clear()


@pytest.mark.parametrize(
    "content", [b"", b"\xff", b"[]", b'{"package": "of another version", "rates": {"anthropic:x": {}}}']
)
def test_a_file_that_is_none_is_asked_for_again(tmp_path: Path, content: bytes) -> None:
    (tmp_path / FILE).write_bytes(content)
    assert priced(tmp_path)[2] == "True"
    assert priced(tmp_path)[2] == "False"


def test_rates_of_another_package_are_not_used(tmp_path: Path) -> None:
    priced(tmp_path)
    known = json.loads((tmp_path / FILE).read_text())
    known["package"] = "1-1"
    known["rates"][f"anthropic:{SONNET}"]["input"] = 999.0
    (tmp_path / FILE).write_text(json.dumps(known))
    assert float(priced(tmp_path)[0]) == pytest.approx(0.00315)


def test_a_directory_that_takes_no_file_costs_nothing_but_time(tmp_path: Path) -> None:
    assert float(priced(tmp_path / "gone" / "deeper")[0]) == pytest.approx(0.00315)


def test_it_stays_small(tmp_path: Path) -> None:
    kept = KeptRates(tmp_path)
    for number in range(600):
        kept.keep("openai", f"m{number}", Rates(1.0, 2.0))
    assert len(json.loads((tmp_path / FILE).read_text())["rates"]) <= 256
    assert kept.get("openai", "m599") == Rates(1.0, 2.0)
