"""Small things that programs meet first: empty inputs, plain functions, approvers, a model for tests (engine 8)."""

import threading
import time
from typing import Any

import pytest

from bowerbird import Agent, ApprovalAnswer, ApprovalRequest, ModelError, Tool
from bowerbird.core.errors import InvalidArgument
from bowerbird.testing import Call, ScriptedModel


def make(*answers: Any, **parameters: Any) -> tuple[ScriptedModel, Agent]:
    model = ScriptedModel(*answers)
    return model, Agent(language_model=model, data_dir=":memory:", **parameters)


@pytest.mark.parametrize("inputs", [[], None, "", "  \n", {"messages": []}, ()], ids=repr)
async def test_empty_inputs_are_refused_alike_and_no_model_is_asked(inputs: Any) -> None:
    """Engine 8: "`agent.run([])`, `run(None)`, `run("")` call the model"."""
    model, agent = make("never")
    for start in (agent.run, agent.step):
        with pytest.raises(InvalidArgument):
            await start(inputs)
    assert model.requests == []
    agent.close()


async def test_a_run_or_step_on_no_branch_is_refused() -> None:
    _, agent = make("never")
    given: Any = "x"
    with pytest.raises(InvalidArgument, match="branch is 'x'"):
        await agent.run("hi", branch=given)


async def test_a_plain_function_is_a_tool_that_runs_in_a_thread() -> None:
    """Engine 8: "sync functions as tools are refused with a plain TypeError"."""
    threads: list[int] = []

    def word_count(text: str) -> int:
        """Count words.

        Args:
            text: The text.
        """
        threads.append(threading.get_ident())
        time.sleep(0.01)
        return len(text.split())

    model, agent = make(Call("word_count", {"text": "a b c"}), "three", tools=[word_count])
    with agent:
        result = await agent.run("count")
    assert result.text == "three" and threads != [threading.get_ident()]
    assert '{"result":3}' in str(model.requests[1].messages[-1])


class Yes:
    """Approves what the test says, and keeps what it was asked."""

    def __init__(self) -> None:
        self.asked: list[ApprovalRequest] = []

    async def ask(self, request: ApprovalRequest) -> ApprovalAnswer | None:
        self.asked.append(request)
        return ApprovalAnswer(id=request.id, decision="approve")


async def test_an_approver_is_asked_with_public_names_alone() -> None:
    sent: list[str] = []

    async def send(text: str) -> str:
        """Send.

        Args:
            text: What.
        """
        sent.append(text)
        return "sent"

    _, agent = make(Call("send", {"text": "hello"}), "done", tools=[Tool(send, effect="outside")])
    yes = Yes()
    with agent:
        assert (await agent.run("go", approver=yes)).text == "done"
    assert sent == ["hello"] and [each["name"] for each in yes.asked[0].tools] == ["send"]


async def test_the_scripted_model_gives_texts_calls_errors_and_what_functions_say() -> None:
    model, agent = make(
        [
            "Let me see.",
            Call("write_file", {"path": "a.txt", "content": "1"}),
            Call("think", {"thought": "x"}),
        ],
        lambda request: f"{len(request.messages)} messages",
    )
    with agent:
        result = await agent.run("go")
        assert (result.text, result.stop_reason) == ("3 messages", "completed")
        assert result.changes.written == ("/a.txt",)
        beyond = await agent.run("more")
    assert beyond.stop_reason == "model_error" and "add an answer" in str(beyond.error)
    assert len(model.requests) == 3
    failing, agent = make(ModelError("busy", kind="overloaded"))
    with agent:
        assert (await agent.run("go")).stop_reason == "model_error"
    assert len(failing.requests) == 1
