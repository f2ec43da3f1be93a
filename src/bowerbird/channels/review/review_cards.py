"""Review from a chat: a summary with buttons, landing, choosing, discarding, taking back (AS-25, AS-26).

Here: what each button does, by the sessions' one review (`sessions/review.py`). Not here: what landing is,
the words (`summary.py`), when a summary is shown (`delivering.py`, `review_commands.py`).

What a button does is done to exactly what was shown: the card knows the plan's id, and a branch or directory
that has changed since has another one.
"""

from collections.abc import Sequence
from typing import Any

from bowerbird.channels.accepting import Desk
from bowerbird.channels.cards import CardDesk, Face, Option, Outcome, Press, Rows, card_of
from bowerbird.channels.review.diff_messages import KIND as DIFF
from bowerbird.channels.review.diff_messages import kept_card, messages_of
from bowerbird.channels.review.review_faces import ask_discard, ask_flagged, choosing, landed_text, whole
from bowerbird.channels.review.summary import MOST_FILES, Summary, merge_request, plural, refusal, summary_of
from bowerbird.core.errors import LandingRefused, SessionError, Stale
from bowerbird.core.threads import to_thread
from bowerbird.sessions.service import SessionService
from bowerbird.sessions.wishes import ToLand
from bowerbird.store.channels.cards import CardRow

DIFFERENT = "The changes are different by now, so nothing was done. The new summary is below."
_LANDING = frozenset({"land", "accept", "landsome", "acceptsome"})
MOST_QUOTED = 4_000  # characters of the user's version in a request to merge


class ReviewCards:
    """Handles the cards of kind `review`; makes them."""

    kind = "review"
    deciding = _LANDING | {"discardall", "merge"}

    def __init__(self, sessions: SessionService, cards: CardDesk, desk: Desk, channel: str) -> None:
        self._sessions = sessions
        self._cards = cards
        self._desk = desk
        self._channel = channel

    # ------------------------------------------------------------ made

    async def summary(self, thread_id: str) -> Summary:
        """Return what a landing of everything would do now; raises BowerbirdError."""
        review = self._sessions.review
        plan = await review.plan(thread_id)
        if not plan.entries and not plan.commits:
            return Summary(plan.id)
        diff = await review.diff(thread_id)
        row = await self._sessions.row(thread_id)
        return summary_of(plan, diff, review.newest_check(row.branch_id))

    def card(self, chat_id: str, thread_id: str, summary: Summary) -> CardRow:
        """Return the card that acts on a summary."""
        return card_of(self._channel, chat_id, thread_id, self.kind, {"plan": summary.plan, "ticked": []})

    # ------------------------------------------------------------ pressed

    async def pressed(self, press: Press) -> Outcome:
        """See `CardKind`."""
        summary = await self.summary(press.card.thread_id)
        if summary.plan != press.card.body.get("plan"):
            return await self._different(press, summary)
        if press.verb in _LANDING:
            return await self._landing(press, summary)
        match press.verb:
            case "choose" | "tick" | "page":
                return _choose(press, summary)
            case "discard":
                return Outcome(face=ask_discard(summary))
            case "discardall":
                return await self._discard(press)
            case "merge":
                return await self._merge(press, summary)
            case "diff":
                return await self._diff(press)
            case _:
                return Outcome(face=whole(summary), body=press.card.body | {"ticked": []})

    async def _landing(self, press: Press, summary: Summary) -> Outcome:
        """Land everything or what is ticked; flagged paths are named and asked about first."""
        is_whole = press.verb in ("land", "accept")
        flagged = summary.flagged if is_whole else _flagged_among(press, summary)
        if flagged and press.verb in ("land", "landsome"):
            return Outcome(face=ask_flagged(flagged, "accept" if is_whole else "acceptsome"))
        return await self._land(press, summary, None) if is_whole else await self._land_some(press, summary)

    async def _different(self, press: Press, summary: Summary) -> Outcome:
        """Show what there is now; nothing was done (AS-25)."""
        card = press.card
        if summary.is_empty:
            said = "There is nothing to land any more."
            return Outcome(said, Face(said), is_decided=True)
        fresh = self.card(card.chat_id, card.thread_id, summary)
        await self._cards.show(card.chat_id, whole(summary), fresh)
        return Outcome(DIFFERENT, Face(DIFFERENT), is_decided=True)

    async def _land(self, press: Press, summary: Summary, paths: Sequence[str] | None) -> Outcome:
        plan = summary.plan
        if paths is not None:
            # The plan of these paths is made first: what changes after it makes it stale.
            plan = (await self._sessions.review.plan(press.card.thread_id, paths)).id
            summary = await self.summary(press.card.thread_id)
            if summary.plan != press.card.body.get("plan"):
                return await self._different(press, summary)
        is_accepted = press.verb in ("accept", "acceptsome")
        flagged = [path for path in summary.flagged if paths is None or path in paths]
        wanted = ToLand(paths=paths, plan=plan, accept=flagged if is_accepted else ())
        card = press.card
        try:
            landing = await self._sessions.review.land(
                card.thread_id, wanted, actor=press.message.user_id, door=self._channel
            )
        except Stale:
            return await self._different(press, await self.summary(card.thread_id))
        except LandingRefused as error:
            return _refused(error, summary)
        said = landed_text(landing)
        body = {"landing": landing.id, "directory": landing.workspace}
        following = card_of(self._channel, card.chat_id, card.thread_id, "landed", body)
        rows: Rows = ((Option("Undo", "undo", who="owner"),),)
        return Outcome(said, Face(said, rows), is_decided=True, following=following)

    async def _land_some(self, press: Press, summary: Summary) -> Outcome:
        paths = [summary.rows[index].path for index in _ticked(press.card.body, summary)]
        if not paths:
            return Outcome("Tick what is to land first.")
        outcome = await self._land(press, summary, paths)
        if outcome.following is not None:
            left = await self.summary(press.card.thread_id)
            if not left.is_empty:
                card = press.card
                fresh = self.card(card.chat_id, card.thread_id, left)
                await self._cards.show(card.chat_id, whole(left), fresh)
        return outcome

    async def _discard(self, press: Press) -> Outcome:
        gone = await self._sessions.review.discard(press.card.thread_id)
        said = f"Discarded {plural(len(gone.paths), 'file')}; they can be restored for 7 days."
        return Outcome(said, Face(said), is_decided=True)

    async def _merge(self, press: Press, summary: Summary) -> Outcome:
        paths = summary.conflicts
        if not paths:
            return Outcome("There is no conflict any more.", face=whole(summary))
        words = merge_request(paths)
        for path in paths[:MOST_FILES]:
            mine = await self._mine(press.card.thread_id, path)
            words += (
                f"\n\nIn {path}, the places that we both changed read so in my version:\n{mine}"
                if mine
                else ""
            )
        await self._sessions.submit(
            press.card.thread_id, words, self._channel, self._desk.sender(press.message, press.role),
            f"{press.card.card_id}:merge",
        )  # fmt: skip
        said = "I asked the agent to merge. A new summary follows its answer."
        return Outcome(said, Face(said), is_decided=True)

    async def _mine(self, thread_id: str, path: str) -> str:
        found = await self._sessions.review.conflict(thread_id, path)
        places = [place.ours for place in found.places or () if place.kind == "conflict"]
        return "\n".join(f"```\n{text}\n```" for text in places)[:MOST_QUOTED]

    async def _diff(self, press: Press) -> Outcome:
        said = await self.show_diff(press.card.chat_id, press.card.thread_id)
        return Outcome(said or "The changes are below.")

    async def show_diff(self, chat_id: str, thread_id: str, path: str | None = None) -> str:
        """Show changes as a patch whose messages can be answered; returns what to say where there are none.

        Raises:
            BowerbirdError: they cannot be shown.
        """
        branch = await self._sessions.branch(thread_id)
        patch = await to_thread(branch.unified, [path] if path else None, ignored=False)
        if not patch.strip():
            return f"{path} is not changed." if path else "Nothing is changed."
        for message in messages_of(patch, "" if path else " /diff PATH shows one file."):
            sent = await self._cards.say(chat_id, message.text)
            card = card_of(self._channel, chat_id, thread_id, DIFF, {})
            await self._cards.remember(kept_card(card, message.lines), sent)
        return ""


class LandedCards:
    """Handles the cards of landings: the one button takes it back."""

    kind = "landed"
    deciding = frozenset({"undo"})

    def __init__(self, sessions: SessionService, channel: str) -> None:
        self._sessions = sessions
        self._channel = channel

    async def pressed(self, press: Press) -> Outcome:
        """See `CardKind`."""
        body = press.card.body
        try:
            said = await self.undo(str(body["directory"]), str(body["landing"]), press.message.user_id)
        except LandingRefused as error:
            rows: Rows = ((Option("Undo", "undo", who="owner"),),)
            return Outcome("Nothing was changed.", Face(refusal(error, error.refused), rows))
        return Outcome(said, Face(said), is_decided=True)

    async def undo(self, directory: str, landing_id: str, actor: str) -> str:
        """Take a landing back; returns what to say.

        Raises:
            LandingRefused: files were edited since. SessionError: it is taken back already.
        """
        known = await self._sessions.review.landings(directory)
        if any(one.undoes == landing_id and one.whole and one.state == "done" for one in known):
            raise SessionError(f"{landing_id} was taken back before.")
        undone = await self._sessions.review.undo(directory, landing_id, actor=actor, door=self._channel)
        files = [entry for entry in undone.entries if "dir" not in (entry.before, entry.after)]
        return f"Took {landing_id} back: {plural(len(files), 'file')} as before."


def _refused(error: LandingRefused, summary: Summary) -> Outcome:
    rows: list[Sequence[Option]] = []
    if summary.conflicts:
        rows.append((Option("Ask the agent to merge", "merge"),))
    rows.append((Option("Back", "back"),))
    return Outcome("Nothing landed.", Face(refusal(error, error.refused), rows))


def _choose(press: Press, summary: Summary) -> Outcome:
    body: dict[str, Any] = dict(press.card.body)
    ticked = set(_ticked(body, summary))
    page = int(body.get("page", 0))
    if press.verb == "tick" and press.argument.isdecimal() and int(press.argument) < len(summary.rows):
        ticked ^= {int(press.argument)}
    elif press.verb == "page" and press.argument.isdecimal():
        page = int(press.argument)
    body |= {"ticked": sorted(ticked), "page": page}
    return Outcome(face=choosing(summary, ticked, page), body=body)


def _ticked(body: dict[str, Any], summary: Summary) -> list[int]:
    return [int(index) for index in body.get("ticked", ()) if int(index) < len(summary.rows)]


def _flagged_among(press: Press, summary: Summary) -> tuple[str, ...]:
    chosen = {summary.rows[index].path for index in _ticked(press.card.body, summary)}
    return tuple(path for path in summary.flagged if path in chosen)
