"""One chat channel with everything that belongs to it, and what the channels of a process stand on.

Here: putting the pieces of one channel together. Not here: its life (`part.py`), making a channel from
settings (`make.py`), any of the pieces.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from bowerbird.channels.accepting import Desk
from bowerbird.channels.admission import Role
from bowerbird.channels.cards import CardDesk
from bowerbird.channels.claude.mode import ClaudeMode, ClaudeRules
from bowerbird.channels.claude.states import ClaudeStates
from bowerbird.channels.commands import Command, Commands
from bowerbird.channels.contract import Channel
from bowerbird.channels.delivering import ChannelDeliverer
from bowerbird.channels.details import DetailCards
from bowerbird.channels.facts import Facts
from bowerbird.channels.live import LiveAnswers, LiveRules
from bowerbird.channels.people import People
from bowerbird.channels.request_cards import RequestCards, RetryCards
from bowerbird.channels.review.review_cards import LandedCards, ReviewCards
from bowerbird.channels.review.review_commands import ReviewCommands
from bowerbird.channels.router import Router
from bowerbird.channels.session_commands import SessionCommands
from bowerbird.channels.speaking import Speaker
from bowerbird.channels.waiting import WaitingMarks
from bowerbird.sessions.service import SessionService
from bowerbird.sessions.values import NewSession

CLAUDE_IS_OFF = "Claude Code is off here; set claude_code.enabled to true."


@dataclass(frozen=True, slots=True)
class Rules:
    """What settings say of one channel, as they are now."""

    listed: Callable[[], Mapping[str, Role]]
    trigger: Callable[[], str]
    live: LiveRules = field(default_factory=LiveRules)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the channels of a process stand on.

    Attributes:
        sessions: of the process. facts: what chats show. defaults: what a new chat's session begins with.
        claude: what settings say of Claude Code now. claude_file: states of an earlier program.
        extra: further commands of a channel, say those of the schedule.
    """

    sessions: SessionService
    facts: Facts
    defaults: Callable[[], NewSession]
    extra: Callable[[str], Iterable[Command]] = lambda _: ()
    tier: str = ""
    claude: Callable[[], ClaudeRules] = lambda: ClaudeRules(None, Path(), why=CLAUDE_IS_OFF)
    claude_file: Path | None = None


class House:
    """One channel with everything that belongs to it."""

    def __init__(self, channel: Channel, rules: Rules, around: Surroundings) -> None:
        sessions, name = around.sessions, channel.name
        self.channel = channel
        self.desk = Desk(sessions, name, around.defaults)
        self.cards = CardDesk(sessions.store, channel)
        self.review = ReviewCards(sessions, self.cards, self.desk, name)
        self.requests = RequestCards(sessions, self.cards, name)
        self.live = LiveAnswers(sessions, channel, rules.live)
        self.waiting = WaitingMarks(sessions, channel)
        details = DetailCards(sessions, self.cards, channel, rules.live)
        self.people = People(sessions.store, name, rules.listed)
        self.commands = Commands()
        landed = LandedCards(sessions, name)
        SessionCommands(sessions, self.desk, around.facts, around.tier).add_to(self.commands)
        ReviewCommands(sessions, self.desk, self.cards, self.review, landed).add_to(self.commands)
        self.commands.add(*around.extra(name))
        states = ClaudeStates(sessions.store, name, around.claude_file)
        claude = ClaudeMode(sessions, name, self.desk, states, around.claude)
        claude.add_to(self.commands)
        for kind, handler in (
            (ReviewCards.kind, self.review), (LandedCards.kind, landed), (RequestCards.kind, self.requests),
            (RetryCards.kind, RetryCards(sessions)), (DetailCards.kind, details), (ClaudeMode.kind, claude),
        ):  # fmt: skip
            self.cards.handle(kind, handler)
        self.router = Router(
            sessions.store, channel, people=self.people, desk=self.desk, cards=self.cards,
            commands=self.commands, speaker=Speaker(channel, self.cards), trigger=rules.trigger,
            accepted=self.waiting.accepted, claude=claude,
        )  # fmt: skip
        self.deliverer = ChannelDeliverer(
            sessions,
            channel,
            cards=self.cards,
            review=self.review,
            requests=self.requests,
            live=self.live,
            details=details,
        )
