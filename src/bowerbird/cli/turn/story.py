"""What a person needs to remember of the turn being watched. Holds no output.

Here: calls by number, results for `/show N`, what was denied, the context's size. Not here:
drawing (`painter.py`), events of the wire.
"""

from typing import Any

import msgspec

from bowerbird.core.events import ApprovalAnswer, ApprovalRequest, AssistantStep, ToolIntent, ToolOutcome
from bowerbird.core.messages import text_of
from bowerbird.core.usage import Usage
from bowerbird.sessions.live.hub import Published, TurnMark

_NOBODY = "denied: nobody can answer here"  # as `agent.turn_loop.asking` says it; rules deny in other words
MOST_RESULTS = 500  # of a session; older ones are in the journal


class Call(msgspec.Struct, frozen=True):
    """One tool call: its number in this session, name, arguments."""

    number: int
    tool: str
    arguments: dict[str, Any]


class Story(msgspec.Struct):
    """Grows with each event; shared by all turns of one terminal session.

    `model` is the one that answered last, as `provider:model`; "" before the first answer.
    """

    calls: dict[str, Call] = msgspec.field(default_factory=dict[str, Call])
    results: dict[int, str] = msgspec.field(default_factory=dict[int, str])
    diffs: dict[int, dict[str, Any]] = msgspec.field(default_factory=dict[int, dict[str, Any]])
    denied: list[str] = msgspec.field(default_factory=list[str])
    context_tokens: int = 0
    model: str = ""
    usage: Usage = msgspec.field(default_factory=Usage)
    total: Usage = msgspec.field(default_factory=Usage)
    end: TurnMark | None = None
    plan: str = ""
    _numbers: int = 0

    def begin_turn(self) -> None:
        """Forget what belongs to the last turn only."""
        self.denied = []
        self.end = None
        self.usage = Usage()

    def add(self, published: Published) -> None:
        """Note one event."""
        event = published.event
        if isinstance(event, AssistantStep):
            self.model = event.model or self.model
            self.context_tokens = event.usage.context_tokens + event.usage.output_tokens
            self.usage += event.usage
            self.total += event.usage
            for use in event.message.tool_uses:
                self._number(use.id, use.name, use.input)
        elif isinstance(event, ToolIntent):
            self._number(event.call, event.tool, event.input)
        elif isinstance(event, ToolOutcome):
            call = self.calls.get(event.call) or self._number(event.call, event.tool, {})
            self.results[call.number] = text_of(event.content)
            if (diff := event.diff) is not None:
                self.diffs[call.number] = diff
            self.results.pop(call.number - MOST_RESULTS, None)
            self.diffs.pop(call.number - MOST_RESULTS, None)
            if event.status == "denied" and text_of(event.content).startswith(_NOBODY):
                self.denied.append(event.tool)
        elif isinstance(event, ApprovalRequest) and event.kind == "plan":
            self.plan = event.text
        elif isinstance(event, ApprovalAnswer):
            for call, said in event.calls.items():
                if said.command is not None and (known := self.calls.get(call)) is not None:
                    self.calls[call] = msgspec.structs.replace(
                        known, arguments={**known.arguments, "command": said.command}
                    )
        elif isinstance(event, TurnMark) and event.has_stopped and event.stop_reason is not None:
            self.end = event
            self.usage = event.usage or self.usage

    def _number(self, call: str, tool: str, arguments: dict[str, Any]) -> Call:
        known = self.calls.get(call)
        if known is None:
            self._numbers += 1
            known = Call(self._numbers, tool, arguments)
            self.calls[call] = known
        return known
