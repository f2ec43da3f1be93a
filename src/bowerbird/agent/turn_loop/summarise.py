"""Making room: a summary by a model, or the oldest exchanges left out (AG-56 … AG-58).

Here: the calls and events of a compaction. Not here: what is summarised and what is sent afterwards
(`context/compaction`, pure), when it is time (`loop`).
"""

from dataclasses import replace
from typing import Literal

from bowerbird.agent.context.compaction import (
    WRITTEN_SHARE,
    SummaryPlan,
    as_text,
    estimate_tokens,
    exchanges,
    plan_summary,
    sent_view,
    standing_messages,
    summary_text,
    summary_tokens,
    text_tokens,
)
from bowerbird.agent.context.history import History
from bowerbird.agent.context.sending import summary_message
from bowerbird.agent.turn_loop.flow import Flow
from bowerbird.agent.turn_loop.state import Turn
from bowerbird.core.errors import ModelError, WorkspaceError
from bowerbird.core.events import Compaction, Notice, UsageStep
from bowerbird.core.messages import user_text
from bowerbird.core.requests import ModelRequest
from bowerbird.core.threads import to_thread
from bowerbird.core.usage import Usage
from bowerbird.models.protocol import complete

Reason = Literal["auto", "overflow", "tool", "user"]

SUMMARY_TOKENS = 4_096
INPUT_SHARE = 0.6  # of the summariser's window, for the dialogue it reads
SMALL_SHARE = 0.1  # of the window: a view below it is small
LEFT_SHARE = 0.5  # of the window, for what stays when the oldest exchanges are left out
_SYSTEM = (
    "You summarise the work of an agent so that it can go on without the full text. Write plain text under "
    "these headings: Goal (what the user wants, with each rule they set), Decisions (with reasons; every "
    "question asked and its answer), Facts (what was found, with file names), Changes (what was changed and "
    "where), Failed (what was tried and how it failed), Next step (what was being done, and exactly what is "
    "first now). Keep names, numbers, paths, commands and errors word for word. Of an earlier summary keep "
    "all that still holds. The user's messages and the commands are repeated beside your text: do not copy "
    "them. Do not call tools and do not address anyone."
)


async def compact(turn: Turn, reason: Reason, focus: str = "") -> Flow:
    """Put a summary in place of the old messages; yields the steps that record it.

    Nothing is yielded when there is nothing to summarise. A summary that fails or does not shrink
    gives way to leaving out the oldest exchanges.
    """
    history = turn.view()
    # Who asks for it wants it now, however little there is; a turn that is gone on with keeps its own steps.
    asked = reason == "user"
    plan = await to_thread(lambda: plan_summary(history, turn.window, before_request=asked))
    if plan is None or (history.compactions and history.compactions[-1].to_id == plan.old[-1].id):
        return
    transcripts = turn.run.storage.transcripts
    transcript = await turn.stop.guard(transcripts.save(history.messages)) if transcripts else None
    notes = await turn.stop.guard(_notes(turn))
    yield _summarise(turn, plan, focus)
    text, turn.summary = turn.summary, ""
    window = turn.window
    made = _made(plan, summary_text(text, plan, transcript, notes, 0, window), reason, focus, transcript)
    left_out = 0
    if not text or not await to_thread(_shrinks, turn.window, history, made):
        if reason != "overflow":  # then the window is smaller than anybody knows
            plan = plan_summary(history, window, share=LEFT_SHARE) or plan
        left_out = exchanges(plan.old)
        stated = summary_text("", plan, transcript, notes, left_out, window)
        made = _made(plan, stated, reason, focus, transcript)
    yield made
    yield Notice("compact", _message(plan, left_out, transcript))


def _made(plan: SummaryPlan, text: str, reason: Reason, focus: str, transcript: str | None) -> Compaction:
    return Compaction(plan.old[0].id, plan.old[-1].id, text, reason, focus or None, transcript)


def _shrinks(window: int, history: History, made: Compaction) -> bool:
    """Whether the sent view gets smaller, or is small anyway: a short summary is not worth losing.

    For a thread: of a long history the view after the summary is made from its beginning.
    """
    after = sent_view(replace(history, compactions=(*history.compactions, made))).tokens
    before = max(sent_view(history).tokens, history.last_context)
    return after < max(before, int(window * SMALL_SHARE))


async def _summarise(turn: Turn, plan: SummaryPlan, focus: str) -> Flow:
    """Set `turn.summary` to what the summariser writes, "" when it fails."""
    model = turn.run.summaries.model or turn.model
    room = int(min(model.info.context_window, turn.window) * INPUT_SHARE) * 4 - len(focus)
    # What stands for older messages already is summarised again with the rest.
    known = tuple(turn.history.compactions)
    earlier = {summary_message(made, "").id for made in known}
    said = await to_thread(lambda: as_text(standing_messages(History(plan.old, known)), room, earlier))
    words = int(summary_tokens(turn.window) * WRITTEN_SHARE * 0.7)
    about = f" Pay attention to: {focus}" if focus else ""
    ask = f"Summarise this dialogue in at most {words} words.{about}\n\n{said}"
    request = ModelRequest(
        messages=(user_text(ask),),
        system=(_SYSTEM,),
        max_tokens=min(SUMMARY_TOKENS, model.info.max_output_tokens, turn.run.limits.max_output_tokens),
        temperature=turn.run.summaries.temperature,
        purpose="compact",
        session=turn.run.who.session,
    )
    try:
        end = await turn.stop.guard(complete(model, request))
    except ModelError as error:
        yield Notice("compact_failed", f"the summary failed: {error}")
        return
    usage = end.usage if end.usage.model_calls else end.usage + Usage(model_calls=1)
    yield UsageStep("compact", end.model or model.info.name, usage)
    turn.summary = end.message.text.strip()


async def _notes(turn: Turn) -> dict[str, str]:
    asked = turn.run.summaries.notes
    notes = dict(await asked()) if asked is not None else {}
    if turn.run.branch is not None:
        try:
            changed = await to_thread(turn.run.branch.changes)
        except WorkspaceError as error:
            notes["Changed files"] = f"(cannot be listed: {error})"
        else:
            paths = [f"{p.lstrip('/')}" for p in changed.written]
            paths += [f"{p.lstrip('/')} (deleted)" for p in changed.deleted]
            notes["Changed files"] = "\n".join(paths)
    return notes


def _message(plan: SummaryPlan, left_out: int, transcript: str | None) -> str:
    where = f"; full text in {transcript}" if transcript else ""
    if left_out:
        return f"{left_out} earlier exchanges are left out{where}"
    return f"{len(plan.old)} earlier messages are summarised{where}"


def too_large(turn: Turn) -> str | None:
    """Return what to say when one message alone does not fit the window, else None."""
    view = sent_view(turn.view()).messages
    fixed = text_tokens(*turn.system)
    largest = max(view, key=lambda m: estimate_tokens((m,)), default=None)
    if largest is None:
        return None
    tokens = estimate_tokens((largest,))
    if tokens + fixed <= turn.window and len(view) > 1:
        return None
    return (
        f"one message of about {tokens:,} tokens ({tokens * 4:,} characters) does not fit the model's window "
        f"of {turn.window:,} tokens; shorten it or put the text into a file"
    )
