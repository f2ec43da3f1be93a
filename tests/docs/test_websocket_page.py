"""The manual has every frame, made from the frames themselves, and its prose names what there is (server 2)."""

import json
import re
from pathlib import Path

import pytest

from bowerbird.core import wire
from bowerbird.core.wire.reference import page
from bowerbird.server.socket import viewer
from bowerbird.server.socket.endpoint import BadFrame, parse

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = (DOCS / "websocket.md").read_text()


def test_the_page_of_frames_is_that_of_the_code() -> None:
    """server 2, house R3: `python -m bowerbird.core.wire.reference > docs/reference/websocket-frames.md`."""
    assert page() == (DOCS / "reference" / "websocket-frames.md").read_text()


@pytest.mark.parametrize("kind", [*wire.CLIENT_FRAMES, *wire.SERVER_FRAMES])
def test_every_frame_has_a_place_with_an_example_on_the_page(kind: str) -> None:
    _, _, rest = page().partition(f"\n### `{kind}`\n")
    example = re.search(r"```json\n(.*?)\n```", rest)
    assert example is not None
    assert json.loads(example.group(1))["type"] == kind


def test_what_frames_hold_is_on_the_page_of_frames() -> None:
    headings = {line.strip("# `").lower() for line in page().splitlines() if line.startswith("##")}
    links = set(re.findall(r"\]\(#([^)]+)\)", page()))
    assert links and links <= headings


def test_what_the_prose_shows_is_read_or_sent() -> None:
    block = re.search(r"```json\n(.*?)```", PAGE, re.S)
    assert block is not None
    for line in filter(None, block.group(1).splitlines()):
        assert not isinstance(parse(line), BadFrame), line
    links = set(re.findall(r"reference/websocket-frames\.md#(\w+)\)", PAGE))
    assert links
    assert links <= {*wire.CLIENT_FRAMES, *wire.SERVER_FRAMES}


def test_every_close_code_is_on_the_page() -> None:
    """server 2."""
    names = ("UNAUTHORIZED", "UNKNOWN", "TOO_MANY", "GOING_AWAY", "TRY_AGAIN", "POLICY", "TOO_BIG", "BROKEN")
    for name in names:
        assert f"\n| {getattr(viewer, name)} |" in PAGE
