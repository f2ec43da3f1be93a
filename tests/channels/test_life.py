"""A channel that cannot start is reported and tried again; the rest runs (AS-3)."""

from pathlib import Path
from typing import Any

from support.chats import ChatService, PlainFacts, chatting
from support.sessions import place

from bowerbird.channels.contract import ChannelError, NotInstalled
from bowerbird.channels.house import Surroundings
from bowerbird.channels.part import Channels
from bowerbird.channels.receiving import state_of
from bowerbird.sessions.values import NewSession


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


async def test_a_library_that_is_missing_is_named_and_the_rest_runs(tmp_path: Path, fake: Any) -> None:
    """AS-3: `channels list` says what is wrong, and sessions of other doors run."""
    fake.script({"text": "fine"})
    around: list[Surroundings] = []

    def made() -> Any:
        raise NotInstalled("telegram")

    def parts(sessions: Any) -> list[Any]:
        around.append(Surroundings(sessions, PlainFacts(), NewSession))
        return [Channels(made, lambda: around[0])]

    async with place(tmp_path, fake, parts=parts) as home:
        turn = await home.ask(await home.session())
        state = await home.store.read(lambda c: state_of(c, "telegram"))
        assert turn.state == "done" and state is not None
        assert (state.state, state.why) == (
            "failed", "channels.telegram is enabled but its library is missing: pip install 'bowerbird[telegram]'"
        )  # fmt: skip
