"""What becomes of the agent's own questions: declined, or answered before nobody can be asked (TO-36)."""

from collections.abc import Callable
from typing import Any

import pytest
from support.agent_turns import call, result_of, results
from support.fake_models import FakeModels

from bowerbird.agent.context.history import History
from bowerbird.core.events import ApprovalAnswer, ApprovalRequest
from bowerbird.tools.plan import plan_tools

from .test_turn_controls import LOOK, Person

Run = Callable[..., Any]


@pytest.mark.parametrize(
    ("options", "feedback", "status", "said"),
    [
        ([], None, "denied", "does not want to answer"),
        ([], "ask me tomorrow", "denied", "does not want to answer this question: ask me tomorrow"),
        (["allow", "deny"], None, "ok", "deny"),
    ],
)
async def test_deny_declines_a_question_unless_it_is_one_of_its_answers(
    fake: FakeModels, turn: Run, options: list[str], feedback: str | None, status: str, said: str
) -> None:
    """TO-36: over REST and sockets the model was given the word "deny" for an answer."""
    fake.script({"tools": [call("ask_user", question="red?", options=options)]}, {"text": "ok"})
    told = await turn(tools=plan_tools(), approver=Person("deny", feedback=feedback))
    assert told.outcomes[0].status == status
    assert said in result_of(results(fake.requests[1])[0])


async def test_an_answer_from_before_is_told_where_nobody_can_be_asked_any_more(
    fake: FakeModels, turn: Run
) -> None:
    """TO-36, SE-20: the question was answered while no process ran; the run goes on unattended."""
    fake.script({"tools": [call("ask_user", question="red?")]}, {"text": "ok"})
    first = await turn(tools=plan_tools(), approver=Person(None))
    use = History.of(first.events).pending_calls[0]
    late = {use.id: ApprovalAnswer(first.of(ApprovalRequest)[0].id, "blue")}
    told = await turn(None, tools=[LOOK], history=History.of(first.events), answers=late)
    assert [(o.status, o.content) for o in told.outcomes] == [("ok", "blue")]
