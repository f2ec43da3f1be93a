"""Readers of programs that print one JSON value in the end: Gemini CLI, OpenClaw.

Here: those. Not here: programs that print line by line (`jsonl`, `claude`).
"""

from bowerbird.providers.programs.outcome import Outcome, joined
from bowerbird.providers.programs.readers.lines import (
    Whole,
    as_object,
    int_of,
    items,
    said,
    sub,
    text_of,
    total,
)


class GeminiValue(Whole):
    """`gemini -o json`: `response`, `session_id`, `stats`, or `error`."""

    def outcome(self) -> Outcome:
        """See `Reader.outcome`."""
        record = as_object(self.value())
        error, text = record.get("error"), text_of(record.get("response"))
        models = sub(record, "stats", "models")
        figures = [sub(each, "tokens") for each in models.values()]
        return Outcome(
            text=text,
            ended="response" in record and not error,
            error=said(error) or None,
            session=text_of(record.get("session_id")) or None,
            input_tokens=total(*(int_of(each.get("prompt")) for each in figures)),
            output_tokens=total(*(int_of(each.get("candidates")) for each in figures)),
        )


class OpenclawValue(Whole):
    """`openclaw agent --json`: payloads with text, and a `meta` of the run."""

    def outcome(self) -> Outcome:
        """See `Reader.outcome`."""
        record = as_object(self.value())
        result = sub(record, "result") or record
        text = joined([text_of(each.get("text")) for each in items(result.get("payloads"))])
        text = text or text_of(result.get("reply")) or text_of(result.get("text"))
        agent = sub(result, "meta", "agentMeta")
        usage = sub(agent, "usage")
        error = said(record.get("error")) or said(sub(result, "meta").get("error")) or None
        return Outcome(
            text=text,
            ended=bool(text) and error is None,
            error=error,
            session=text_of(agent.get("sessionId")) or None,
            input_tokens=int_of(usage.get("input")),
            output_tokens=int_of(usage.get("output")),
        )
