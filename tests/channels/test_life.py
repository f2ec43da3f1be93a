"""A channel that cannot start is reported and tried again; the rest runs (AS-3)."""

from pathlib import Path
from typing import Any

from support.chats import ChatService, chatting

from bowerbird.channels.contract import ChannelError
from bowerbird.channels.receiving import state_of


async def test_a_channel_that_fails_to_start_is_tried_again(
    tmp_path: Path, fake: Any, service: ChatService
) -> None:
    """AS-3: whatever its library raises; sessions of other doors run meanwhile."""
    service.start_failures = [ChannelError("no token"), ZeroDivisionError("a defect")]
    fake.script({"text": "fine"})
    async with chatting(tmp_path, fake, service) as chat:
        assert service.starts == 3
        await service.say("hi")
        await service.wait_text("fine")
        state = await chat.home.store.read(lambda c: state_of(c, service.name))
        assert state is not None and state.state in ("receives", "failed")
