"""What a call asks for: its entries read, and how many of them the caps let in (DE-5, DE-16). Pure.

Here: `Wanted`, `Caps` and the admission. Not here: counting what is there, running anything.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

import msgspec

from bowerbird.core.errors import InvalidArgument

TEXT_KEYS = ("task", "instructions", "prompt")


class Wanted(msgspec.Struct, frozen=True):
    """One subagent as asked for; "" leaves a choice open.

    Attributes:
        provider: another vendor's agent that does the task in a subagent's place.
    """

    task: str
    agent_type: str = "general"
    tier: str = ""
    model: str = ""
    provider: str = ""


def read_entry(entry: Any) -> Wanted:
    """Return an entry of `spawn_subagents`: a text, or an object with one.

    >>> read_entry({"prompt": "look", "agent_type": "explore"})
    Wanted(task='look', agent_type='explore', tier='', model='', provider='')
    """
    if isinstance(entry, str):
        return Wanted(entry)
    if not isinstance(entry, Mapping):
        return Wanted(json.dumps(entry, ensure_ascii=False))
    given = cast("Mapping[str, Any]", entry)
    text = next((given[key] for key in TEXT_KEYS if isinstance(given.get(key), str) and given[key]), None)
    return Wanted(
        task=json.dumps(given, ensure_ascii=False) if text is None else text,
        agent_type=str(given.get("agent_type") or "general"),
        tier=str(given.get("model_tier") or ""),
    )


class Caps(msgspec.Struct, frozen=True):
    """Limits of subagents; all but the first count over the whole tree of a session.

    Args:
        tasks_per_call: entries of one call. parallel: running at once. per_turn: made in one turn.
        unmerged: neither merged nor discarded. child_s: seconds of one subagent.
    """

    tasks_per_call: int = 16
    parallel: int = 8
    per_turn: int = 32
    unmerged: int = 64
    child_s: float = 1800.0

    def __post_init__(self) -> None:
        for name in ("tasks_per_call", "parallel", "per_turn", "unmerged", "child_s"):
            if getattr(self, name) < 1:
                raise InvalidArgument(f"delegation.{name} is {getattr(self, name)}; use at least 1")


def admit(problems: Sequence[str | None], caps: Caps, *, in_turn: int, unmerged: int) -> list[str | None]:
    """Return, entry by entry, why it is not started; None for those that are.

    Args:
        problems: what is wrong with each entry by itself.
        in_turn, unmerged: subagents there are already, of this turn and waiting.

    >>> admit([None, None, None], Caps(tasks_per_call=2), in_turn=0, unmerged=0)[2]
    'over the cap of 2 tasks per call (delegation.tasks_per_call)'
    """
    verdicts: list[str | None] = []
    started = 0
    for index, problem in enumerate(problems):
        reason = problem
        if index >= caps.tasks_per_call:
            reason = f"over the cap of {caps.tasks_per_call} tasks per call (delegation.tasks_per_call)"
        elif reason is None and in_turn + started >= caps.per_turn:
            reason = f"over the cap of {caps.per_turn} subagents per turn (delegation.per_turn)"
        elif reason is None and unmerged + started >= caps.unmerged:
            reason = (
                f"over the cap of {caps.unmerged} unmerged subagents (delegation.unmerged); "
                "merge or discard some first"
            )
        started += reason is None
        verdicts.append(reason)
    return verdicts
