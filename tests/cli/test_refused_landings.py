"""What a terminal says of a landing that was refused (UI-44)."""

from typing import Any, cast

import pytest

from bowerbird.cli.review.dialogue import say_landed
from bowerbird.core.errors import LandingRefused


class Heard:
    """What was said on standard error; questions are asked nobody."""

    prefix = "bowerbird "

    def __init__(self) -> None:
        self.lines: list[str] = []

    def warn(self, text: str, style: str = "") -> None:
        self.lines.append(text)

    note = warn


@pytest.mark.parametrize(("count", "lines"), [(50, 52), (51, 53), (3_000, 53)])
def test_thousands_of_refused_paths_are_no_flood(count: int, lines: int):
    """The first fifty by name, then how many more: what to do about them stays on the screen."""
    heard = Heard()
    rows = [{"path": f"/{number}.txt", "reason": "both_modified"} for number in range(count)]
    say_landed(cast(Any, heard), LandingRefused("nothing landed", rows))
    assert len(heard.lines) == lines and "--partial lands the rest" in heard.lines[-1]
    assert (f"… and {count - 50} more" in heard.lines[-2]) == (count > 50)


@pytest.mark.parametrize("reason", ["both_modified", "flagged: ci", "changed while landing", "busy"])
def test_where_the_rest_was_to_land_already_it_is_not_advised_again(reason: str):
    """UI-63: `land --partial` with nothing but a conflict said that --partial lands the rest."""
    heard = Heard()
    refused = LandingRefused("nothing landed", [{"path": "/a.txt", "reason": reason}])
    say_landed(cast(Any, heard), refused, partial=True)
    assert "--partial" not in heard.lines[-1] and heard.lines[-1]
