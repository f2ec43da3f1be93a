"""What a review comment quotes (SV-28)."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pytest
from support.branches import branch_of

from bowerbird.sessions.inbox.comments import comment_text


@dataclass(frozen=True)
class Remark:
    path: str
    side: Literal["old", "new"]
    line: int
    text: str = "why?"
    end_line: int | None = None


@pytest.mark.parametrize("side", ["old", "new"])
async def test_a_quote_is_of_the_line_that_was_meant(side: Literal["old", "new"], tmp_path: Path) -> None:
    """Engine finding 5: form feeds and U+2028 above the line do not move the quote."""
    before = "a\x0cb\u2028c\r\x85d\nsecond\n"
    with branch_of(tmp_path, {"f": before}) as branch:
        await branch.write_file("f", before + "third\n")
        message = await comment_text(branch, [Remark("f", side, 2)])
    assert "> second\nwhy?" in message
