"""Commands about a chat's changes (AS-15, section 4): `/diff /land /discard /undo`.

Here: those commands. Not here: the buttons that do the same (`review_cards.py`).
"""

from bowerbird.channels.accepting import Desk
from bowerbird.channels.cards import CardDesk
from bowerbird.channels.commands import Answer, Asked, Command, Commands, Reply
from bowerbird.channels.review.review_cards import LandedCards, ReviewCards
from bowerbird.channels.review.review_faces import ask_discard, whole
from bowerbird.channels.review.summary import refusal
from bowerbird.channels.session_commands import NOTHING_YET
from bowerbird.core.errors import LandingRefused
from bowerbird.sessions.service import SessionService
from bowerbird.store.channels.cards import newest_card

NOTHING = "There is nothing to land."


class ReviewCommands:
    """Those commands, for one channel."""

    def __init__(
        self, sessions: SessionService, desk: Desk, cards: CardDesk, review: ReviewCards, landed: LandedCards
    ) -> None:
        self._sessions = sessions
        self._desk = desk
        self._cards = cards
        self._review = review
        self._landed = landed

    def add_to(self, commands: Commands) -> None:
        """Add them to a table."""
        commands.add(
            Command("diff", "what is changed, or one file's diff", self._diff, "[PATH]"),
            Command("land", "bring the changes that you saw into your files", self._land, act="land"),
            Command("discard", "throw the changes away", self._discard),
            Command("undo", "take the last landing back", self._undo, act="undo", may_repeat=False),
        )

    async def _diff(self, asked: Asked) -> Answer:
        thread_id = await self._desk.known(asked.message.chat_id)
        if thread_id is None:
            return NOTHING_YET
        if asked.argument:
            return (await self._review.show_diff(asked.message.chat_id, thread_id, asked.argument)) or None
        summary = await self._review.summary(thread_id)
        return Reply(whole(summary), self._review.card(asked.message.chat_id, thread_id, summary))

    async def _land(self, asked: Asked) -> Answer:
        """Land what was shown last, if it is still that; else show what there is now."""
        thread_id = await self._desk.known(asked.message.chat_id)
        if thread_id is None:
            return NOTHING_YET
        summary = await self._review.summary(thread_id)
        if summary.is_empty:
            return NOTHING
        shown = await self._sessions.store.read(lambda c: newest_card(c, thread_id, ReviewCards.kind))
        is_as_shown = shown is not None and shown.state == "open" and shown.body.get("plan") == summary.plan
        if shown is None or not is_as_shown or shown.chat_id != asked.message.chat_id or summary.flagged:
            return Reply(whole(summary), self._review.card(asked.message.chat_id, thread_id, summary))
        return await self._cards.act(shown, "land", asked.message, asked.role)

    async def _discard(self, asked: Asked) -> Answer:
        thread_id = await self._desk.known(asked.message.chat_id)
        if thread_id is None:
            return NOTHING_YET
        summary = await self._review.summary(thread_id)
        if summary.is_empty:
            return NOTHING
        return Reply(ask_discard(summary), self._review.card(asked.message.chat_id, thread_id, summary))

    async def _undo(self, asked: Asked) -> Answer:
        thread_id = await self._desk.known(asked.message.chat_id)
        if thread_id is None:
            return NOTHING_YET
        row = await self._sessions.row(thread_id)
        known = await self._sessions.review.landings(row.workspace) if row.workspace else []
        undone = {one.undoes for one in known if one.state == "done" and one.whole}
        mine = [
            one
            for one in known
            if one.branch == row.branch_id
            and one.kind == "land"
            and one.id not in undone
            and one.state == "done"
        ]
        if not mine or row.workspace is None:
            return "There is no landing of this conversation to take back."
        try:
            return await self._landed.undo(row.workspace, mine[-1].id, asked.message.user_id)
        except LandingRefused as error:
            return refusal(error, error.refused)
