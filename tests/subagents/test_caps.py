"""Caps of subagents, over the whole tree of a session (DE-2, DE-15, DE-16; issue 5, must-show 7)."""

import asyncio
import threading
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from support.agent_turns import call, events_of, results
from support.children import last_result, play, said
from support.fake_models import FakeModels
from support.patience import HANG_S

from bowerbird.agent.limits import Limits
from bowerbird.agent.stop import StopSignal
from bowerbird.core.events import ToolOutcome
from bowerbird.core.usage import Usage
from bowerbird.models.budget import BudgetRefusal
from bowerbird.subagents.entries import Caps, admit
from bowerbird.subagents.shared_budget import Purse, PurseBudget
from bowerbird.subagents.slots import Slots


async def test_forty_tasks_sixteen_run_eight_at_a_time(fake: FakeModels, make: Any) -> None:
    """DE acceptance 15."""
    most = Watermark()
    fake.answer(most.answer)
    agent = make()
    entries = (await agent.spawn_subagents([f"task {n}" for n in range(40)])).record()["subagents"]
    assert len(entries) == 40 and [e["task"] for e in entries] == [f"task {n}" for n in range(40)]
    assert all(e["result"] == "ok" for e in entries[:16])
    assert all("16 tasks per call" in e["error"] and e["handle"] is None for e in entries[16:])
    assert most.highest <= 8 and fake.request_count == 16


class Watermark:
    """Answers after a pause; knows how many requests were open at once."""

    def __init__(self) -> None:
        self.highest = 0
        self._open: list[float] = []
        self._lock = threading.Lock()

    def answer(self, _body: dict[str, Any], _n: int) -> dict[str, Any]:
        import time

        with self._lock:
            now = time.monotonic()
            # A request is open for at least its time to the first byte.
            self._open = [t for t in self._open if now - t < 0.05] + [now]
            self.highest = max(self.highest, len(self._open))
        return {"text": "ok", "ttft_s": 0.05}


async def test_a_model_that_spawns_without_end_is_stopped_with_the_reason(
    fake: FakeModels, make: Any
) -> None:
    """Depth and caps hold across the tree; children that wait lend their slots, so none is stuck."""

    def answer(body: dict[str, Any], _n: int) -> dict[str, Any]:
        if results(body):
            return {"text": "enough"}
        return {"tools": [call("spawn_subagents", tasks=["more"] * 8)]}

    fake.answer(answer)
    agent = make(max_subagent_depth=2, max_iterations=3)
    result = await asyncio.wait_for(agent.run("start"), HANG_S)
    assert result.stop_reason == "completed" and result.text == "enough"
    # 32 subagents in all: the cap counts over every depth.
    assert {said(body) for body in fake.requests} == {"start", "more"}
    firsts = [body for body in fake.requests if not results(body)]
    assert len(firsts) == 1 + 32
    told = [last_result(body) for body in fake.requests if results(body)]
    assert any("32 subagents per turn (delegation.per_turn)" in text for text in told)
    offered = [{tool["name"] for tool in body["tools"]} for body in firsts]
    assert any("spawn_subagents" not in names for names in offered)  # at the last depth
    assert result.usage.subagents.model_calls == fake.request_count - 2


async def test_children_share_what_their_callers_turn_has_left(fake: FakeModels, make: Any) -> None:
    """DE-16: eight at once under 1 budget of tokens never use more than it."""
    use = {"input": 1_000, "output": 100}
    play(fake, {
        "small": [{"text": "ok", "usage": use, "ttft_s": 0.05}],
        "lead": [{"tools": [call("spawn_subagents", tasks=["small"] * 8)]}, {"text": "done", "usage": use}],
    })  # fmt: skip
    agent = make(limits=Limits(max_tokens_total=8_000, max_output_tokens=1_024))
    events = await events_of(agent, "lead")
    assert events[-1].usage.budget_tokens <= 8_000
    (outcome,) = (e for e in events if isinstance(e, ToolOutcome))
    errors = [e["error"] for e in outcome.data["subagents"] if "error" in e]
    assert 0 < len(errors) < 8 and all(e.startswith("token_budget: ") for e in errors)


async def test_unmerged_forks_are_capped_until_some_are_merged_or_discarded(
    fake: FakeModels, make: Any
) -> None:
    """DE-16."""
    fake.script({"text": "ok"})
    agent = make()
    for _ in range(4):
        await agent.spawn_subagents(["x"] * 16)
    (entry,) = (await agent.spawn_subagents(["x"])).record()["subagents"]
    assert "64 unmerged subagents (delegation.unmerged)" in entry["error"]
    await agent.discard_subagent("subagent_3")
    await agent.merge_subagent("subagent_4")
    entries = (await agent.spawn_subagents(["x", "x", "x"])).record()["subagents"]
    assert [e["handle"] for e in entries] == ["subagent_64", "subagent_65", None]


@given(
    problems=st.lists(st.sampled_from([None, "bad"]), max_size=30),
    per_call=st.integers(1, 20), per_turn=st.integers(1, 20), unmerged=st.integers(1, 20),
    in_turn=st.integers(0, 25), waiting=st.integers(0, 25),
)  # fmt: skip
def test_admission_keeps_every_cap_and_refuses_no_more(
    problems: list[str | None], per_call: int, per_turn: int, unmerged: int, in_turn: int, waiting: int
) -> None:
    """DE-16: excess entries get an error naming the cap, the rest runs."""
    caps = Caps(tasks_per_call=per_call, per_turn=per_turn, unmerged=unmerged)
    verdicts = admit(problems, caps, in_turn=in_turn, unmerged=waiting)
    started = sum(verdict is None for verdict in verdicts)
    good = sum(problem is None for problem in problems[:per_call])
    assert started == max(0, min(good, per_turn - in_turn, unmerged - waiting))
    assert all(v == "bad" for p, v in zip(problems[:per_call], verdicts, strict=False) if p)
    assert all(
        "delegation." in v
        for p, v in zip(problems, verdicts, strict=True)
        if (v and v != "bad") or (p is None and v)
    )


async def test_a_slot_lent_is_taken_back_only_when_one_is_free() -> None:
    slots, stop = Slots(1), StopSignal()
    order: list[str] = []

    async def inner() -> None:
        async with slots.held(stop):
            order.append("inner")

    async with slots.held(stop) as slot:
        async with slot.lent(), slot.lent():  # two calls at once lend it once
            await asyncio.gather(inner(), inner())
        order.append("outer")
    assert order == ["inner", "inner", "outer"]
    async with asyncio.timeout(HANG_S), slots.held(stop):
        pass


async def test_a_purse_counts_what_ended_children_used_once() -> None:
    """The caller's totals hold its ended children, which the purse knows already."""
    purse = Purse(Limits(max_tokens_total=10_000, max_cost=1.0))
    budget = PurseBudget(purse, lambda usage: usage.budget_tokens / 10_000)
    held = await budget.reserve(Usage(input_tokens=1_000), 2_000)
    assert not isinstance(held, BudgetRefusal)
    await budget.settle(held.id, Usage(input_tokens=1_000, output_tokens=500, cost=None))
    await budget.settle(held.id, Usage(input_tokens=9_000))  # a second time changes nothing
    child = Usage(input_tokens=1_000, output_tokens=500, cost=0.15)
    purse.note(Usage(input_tokens=100, cost=0.01) + child.as_subagents)
    tokens, money = purse.scopes()
    assert tokens.spent == 1_600 and abs(money.spent - 0.16) < 1e-9
    assert isinstance(await budget.reserve(Usage(input_tokens=9_000), 1_024), BudgetRefusal)
    again = Purse(Limits(max_tokens_total=10_000), child)  # the turn is resumed by another process
    again.note(Usage(input_tokens=100) + child.as_subagents)
    assert again.scopes()[0].spent == 1_600
