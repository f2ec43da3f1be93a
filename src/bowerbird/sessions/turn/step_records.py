"""One step event as one commit: its record, its ledger row, its usage row (SE-13, 25, 41). Pure.

Here: what belongs into the transaction of an event. Not here: committing, fencing, batching.
"""

import msgspec

from bowerbird.core.events import AssistantStep, StepEvent, ToolIntent, ToolOutcome, UsageStep
from bowerbird.core.usage import Usage
from bowerbird.sessions.journal.events_as_records import MessageSeqs, ledger_class, to_record
from bowerbird.store.journal.journal import Append, Intent, NewRecord, Outcome, UsageRow, encode_body


class Writer(msgspec.Struct, frozen=True):
    """On whose behalf a driver writes: thread, turn, the lease's epoch, and the agent's name."""

    thread_id: str
    turn_id: str
    epoch: int
    agent: str = "main"


def append_of(event: StepEvent, writer: Writer, seqs: MessageSeqs) -> Append:
    """Return what to append for `event`.

    Args:
        seqs: where the messages so far are; needed for compactions.
    """
    record = to_record(event, writer.turn_id, seqs)
    return Append(
        writer.thread_id,
        writer.epoch,
        () if record is None else (record,),
        intents=_intents(event, writer),
        outcomes=_outcomes(event),
        usage=_usage(event, writer),
    )


def followed_by(prepared: Append, record: NewRecord) -> Append:
    """Return an append with one record more behind its own, for things that must be one transaction.

    Args:
        prepared: with the bodies of its records (`Store.prepared`).
    """
    return msgspec.structs.replace(
        prepared,
        records=(*prepared.records, record),
        bodies=(*prepared.bodies, encode_body(record.body)),
    )


def _intents(event: StepEvent, writer: Writer) -> tuple[Intent, ...]:
    if not isinstance(event, ToolIntent):
        return ()
    row_class = ledger_class(event.effect, event.key)
    return (Intent(event.call, writer.turn_id, event.tool, row_class, event.mark),)


def _outcomes(event: StepEvent) -> tuple[Outcome, ...]:
    if not isinstance(event, ToolOutcome):
        return ()
    return (Outcome(event.call, "abandoned" if event.status == "abandoned" else "outcome"),)


def _usage(event: StepEvent, writer: Writer) -> tuple[UsageRow, ...]:
    if isinstance(event, AssistantStep):
        return (usage_row(event.usage, writer, "main", event.model),)
    if isinstance(event, UsageStep):
        return (usage_row(event.usage, writer, event.purpose, event.model),)
    return ()


def usage_row(usage: Usage, writer: Writer, purpose: str, model: str) -> UsageRow:
    """Return the usage row of one model call; an unknown price stays unknown."""
    return UsageRow(
        turn=writer.turn_id,
        agent=writer.agent,
        purpose=purpose,
        model=model,
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cache_read_tokens=usage.cache_read_tokens,
        cache_write_tokens=usage.cache_write_tokens,
        cost=usage.cost,
        estimated=usage.estimated,
    )
