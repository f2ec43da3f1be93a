"""Questions to a person in a chat: approvals, plans, effects, money, the agent's own (AS-28).

Here: how each looks, and what its buttons answer; a question that was answered elsewhere is shown so. Not
here: what an answer does, the turn that waits.
"""

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from bowerbird.channels.cards import CardDesk, Face, Option, Outcome, Press, Rows, card_of
from bowerbird.channels.review.summary import plain, quoted
from bowerbird.core.errors import AlreadyAnswered, NoPendingRequest
from bowerbird.core.events import ApprovalAnswer
from bowerbird.sessions.service import SessionService
from bowerbird.store.channels.cards import CardRow, open_cards

INPUT_CHARS = 300
WHOLE_CHARS = 12_000

CHOICES: Mapping[str, Sequence[tuple[str, str]]] = {
    "approval": (("Approve", "approve"), ("Deny", "deny"), ("Approve rest", "auto_approve")),
    "plan": (("Approve", "approve"), ("Reject", "reject")),
    "effect": (
        ("It happened", "happened"), ("It did not", "did_not_happen"), ("Run it again", "run_again"),
    ),
    "budget": (("Stop", "stop"),),
}  # fmt: skip
SAID = {
    "approve": "Approved", "deny": "Denied", "auto_approve": "Approved, like all that follows here",
    "reject": "Rejected", "happened": "It happened", "did_not_happen": "It did not happen",
    "run_again": "It is run again", "raise": "Raised", "stop": "Stopped", "unanswered": "Not answered",
}  # fmt: skip
"""What people are told of decisions; the text of an answer to the agent's own question is not repeated."""


def face_of(content: Mapping[str, Any], *, whole: bool = False) -> Face:
    """Return how a question looks. Pure.

    Args:
        content: of its parcel: `text`, `request_kind`, `tools`.
    """
    kind = str(content.get("request_kind"))
    tools: Sequence[Mapping[str, Any]] = content.get("tools") or ()
    lines = [_HEADS.get(kind, "**A question**")] if kind != "user" else []
    text = str(content.get("text") or "").strip()
    if text:
        lines.append(text)
    is_cut = False
    for tool in tools:
        if kind == "budget":
            break  # what it holds are figures, and the text says them
        given = json.dumps(tool.get("input") or {}, ensure_ascii=False, indent=1 if whole else None)
        shown = given[: WHOLE_CHARS if whole else INPUT_CHARS]
        is_cut = is_cut or len(shown) < len(given)
        ends = " …" if len(shown) < len(given) else ""
        lines.append(f"**{quoted(str(tool.get('name')))}** `{quoted_input(shown)}{ends}`")
    rows: list[Sequence[Option]] = []
    options = [Option(label, "answer", decision, "owner") for label, decision in CHOICES.get(kind, ())]
    if kind == "budget":
        options = [
            *(Option(f"Raise by ${amount}", "raise", amount, "owner") for amount in amounts_of(tools)),
            *options,
        ]
    if options:
        rows.append(options)
    if is_cut and not whole:
        rows.append([Option("Show", "show")])
    if kind == "user":
        lines.append("_Write the answer._")
    return Face("\n".join(lines), rows)


def amounts_of(tools: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """Return by how many USD a limit can be raised at a press: enough to go on, and ten times that. Pure.

    Example:
        >>> amounts_of([{"limit": 0.05, "spent": 0.047, "needed": 0.0612}])
        ('0.059', '0.59')
    """
    if not tools:
        return ()
    limit, spent, needed = (tools[0].get(name) for name in ("limit", "spent", "needed"))
    figures = [float(one) for one in (limit, spent, needed) if isinstance(one, int | float)]
    if len(figures) < 3 or not all(map(math.isfinite, figures)):
        return ()
    least = max(figures[1] + figures[2] - figures[0], figures[0], 0.01)
    digit = 10 ** (math.floor(math.log10(least)) - 1)
    step = math.ceil(least / digit - 1e-9) * digit
    return (f"{step:.6g}", f"{step * 10:.6g}")


def quoted_input(text: str) -> str:
    """Return a tool's input so that it ends no quotation."""
    return "".join("'" if char == "`" else char if char.isprintable() else " " for char in text)


def decided(face: Face, answer: ApprovalAnswer) -> Face:
    """Return how a question looks that has its answer. Pure."""
    said = SAID.get(answer.decision, "Answered")
    by = f" by {plain(answer.by)}" if answer.by else ""
    return Face(f"{face.text}\n\n**{said}{by}.**")


class RequestCards:
    """Handles the cards of kind `ask`; makes and closes them."""

    kind = "ask"
    deciding = frozenset({"answer", "raise"})

    def __init__(self, sessions: SessionService, cards: CardDesk, channel: str) -> None:
        self._sessions = sessions
        self._cards = cards
        self._channel = channel

    def card(self, chat_id: str, thread_id: str, content: Mapping[str, Any]) -> CardRow:
        """Return the card of a question."""
        kept = {name: content.get(name) for name in ("request_id", "request_kind", "text", "tools")}
        return card_of(self._channel, chat_id, thread_id, self.kind, kept)

    async def pressed(self, press: Press) -> Outcome:
        """See `CardKind`."""
        body = press.card.body
        if press.verb == "show":
            await self._cards.say(press.card.chat_id, face_of(body, whole=True).text)
            return Outcome("It is below.")
        kind = str(body["request_kind"])
        decision = "raise" if press.verb == "raise" and kind == "budget" else press.argument
        if decision != "raise" and decision not in [known for _, known in CHOICES.get(kind, ())]:
            return Outcome("Expired", is_decided=True)
        said = SAID[decision]
        amount = press.argument if decision == "raise" else None
        try:
            await self._sessions.answer(
                str(body["request_id"]), decision, thread_id=press.card.thread_id, by=press.by,
                feedback=amount, door=self._channel, authority="admin",  # owners alone get this far (AS-5)
            )  # fmt: skip
        except (AlreadyAnswered, NoPendingRequest) as error:
            closed = Face(f"{face_of(body).text}\n\n**Nothing to decide any more.**")
            return Outcome(str(error), closed, is_decided=True)
        answer = ApprovalAnswer(str(body["request_id"]), decision, press.by)
        return Outcome(said, decided(face_of(body), answer), is_decided=True)

    async def answered(self, thread_id: str, answer: ApprovalAnswer) -> None:
        """Show a question as answered that was answered elsewhere.

        Raises:
            StoreError, RetryLater, Rejected, Gone: it still looks open.
        """
        found = await self._sessions.store.read(lambda c: open_cards(c, self._channel, thread_id, self.kind))
        for card in found:
            if card.body.get("request_id") == answer.id:
                said = SAID.get(answer.decision, "Answered")
                await self._cards.close(card, decided(face_of(card.body), answer), said)


class RetryCards:
    """Handles the button under a turn that failed."""

    kind = "retry"
    deciding = frozenset({"resume"})
    rows: Rows = ((Option("Retry", "resume"),),)

    def __init__(self, sessions: SessionService) -> None:
        self._sessions = sessions

    async def pressed(self, press: Press) -> Outcome:
        """See `CardKind`; goes on with the turn."""
        await self._sessions.resume(str(press.card.body["turn_id"]))
        said = "Going on."
        return Outcome(said, Face(f"{press.card.body['text']}\n\n**{said}**"), is_decided=True)


_HEADS = {
    "approval": "**May I?**",
    "plan": "**The plan**",
    "effect": "**What happened?**",
    "budget": "**The limit is reached**",
}
