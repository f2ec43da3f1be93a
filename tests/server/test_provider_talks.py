"""A few turns of the long sessions of `drills/wires.py`: no provider refuses what is sent, whatever goes wrong."""

from pathlib import Path

import pytest
from support.provider_talks import WIRES, efforts, talk


@pytest.mark.parametrize("wire", WIRES)
async def test_no_request_is_refused_by_the_rules_of_its_provider_and_no_turn_fails_by_itself(
    wire: str, tmp_path: Path
) -> None:
    made = await talk(tmp_path, wire, 1, 8, restarts=wire == "openai")
    assert made.wrong == []
    assert made.counts["turns"] >= 9 and made.counts["requests"] > made.counts["turns"]


@pytest.mark.parametrize("wire", WIRES)
async def test_no_effort_is_refused_by_the_rules_of_a_provider(wire: str) -> None:
    assert await efforts(wire) == []
