"""An answer for each call of a batch, and a command that a person edits before it runs (UI-71, AG-62)."""

from collections.abc import Callable
from typing import Any

from support.agent_turns import call, result_of, results
from support.fake_models import FakeModels

from bowerbird.agent.context.history import History
from bowerbird.agent.policy import Policy
from bowerbird.core.events import ApprovalAnswer, ApprovalRequest, CallAnswer, ToolIntent
from bowerbird.tools import Tool

Run = Callable[..., Any]
ASKING = Policy.of({"enable_approval": True})


async def run(command: str, note: str = "") -> str:
    """Run.

    Args:
        command: What.
        note: Why.
    """
    return f"ran {command} {note}".strip()


RUN = Tool(run, effect="branch")


class Person:
    """Answers with what is said of each call, by its command."""

    def __init__(self, **said: CallAnswer) -> None:
        self._said = said

    async def ask(self, request: ApprovalRequest) -> ApprovalAnswer:
        found = {str(t["id"]): self._said.get(t["input"]["command"]) for t in request.tools}
        return ApprovalAnswer(request.id, "approve", "ann", None, {c: s for c, s in found.items() if s})


async def test_each_call_has_its_own_answer_and_an_edited_command_is_the_one_that_runs(
    fake: FakeModels, turn: Run
) -> None:
    """UI-71: the intent on record is the edited one; the model is told what ran."""
    person = Person(
        b=CallAnswer("deny", "not that"), c=CallAnswer("approve", command="see; ls"), d=CallAnswer("approve")
    )
    calls = [call("run", command=word, note="n") for word in "abcd"]
    fake.script({"tools": calls}, {"text": "ok"})
    told = await turn(tools=[RUN], policy=ASKING, approver=person)
    assert [i.input["command"] for i in told.of(ToolIntent)] == ["a", "see; ls", "d"]
    assert [result_of(r) for r in results(fake.requests[1])] == [
        "ran a n",
        "User denied this tool call: not that",
        "The user changed the command. What ran: see; ls\nran see; ls n",
        "ran d n",
    ]


async def test_what_a_person_made_of_a_command_runs_again_after_a_crash(fake: FakeModels, turn: Run) -> None:
    """UI-71, SE-25: the answer is on record, so the call that is resumed is the edited one; nobody is asked."""

    class Gone:
        async def ask(self, _: ApprovalRequest) -> None:
            return None

    fake.script({"tools": [call("run", command="rm x")]}, {"text": "ok"}, {"text": "ok"})
    left = await turn(tools=[RUN], policy=ASKING, approver=Gone())
    [request] = left.of(ApprovalRequest)
    said = ApprovalAnswer(
        request.id, "approve", calls={request.calls[0]: CallAnswer("approve", command="rm y")}
    )
    for decision in ("approve", "run_again"):
        earlier = {request.calls[0]: ApprovalAnswer(request.id, decision, calls=said.calls)}
        told = await turn(
            None,
            tools=[RUN],
            policy=ASKING,
            approver=Gone(),
            history=History.of(left.events),
            answers=earlier,
        )
        assert [i.input for i in told.of(ToolIntent)] == [{"command": "rm y"}]
        assert told.outcomes[0].status == "ok" and "What ran: rm y" in str(told.outcomes[0].content)


async def test_an_edited_command_is_judged_as_the_models_own(fake: FakeModels, turn: Run) -> None:
    """AG-60: what is denied stays denied, whoever writes it."""
    policy = Policy.of({"enable_approval": True, "deny": ["run(rm *)"]})
    fake.script({"tools": [call("run", command="ls")]}, {"text": "ok"})
    told = await turn(
        tools=[RUN], policy=policy, approver=Person(ls=CallAnswer("approve", command="rm -r x"))
    )
    assert told.outcomes[0].status == "denied" and told.of(ToolIntent) == []
