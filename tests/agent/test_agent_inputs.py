"""What a run makes of its inputs: chat, data in a file, templates (AG-9 … AG-18, AG-28 … AG-31)."""

from pathlib import Path
from typing import Any

import pytest
from support.agent_turns import call, fingerprint, texts
from support.fake_models import FakeModels
from support.sample_tools import Verdict

from bowerbird.core.errors import InvalidArgument


async def test_five_megabytes_of_data_make_a_small_request_and_no_change(
    fake: FakeModels, make: Any, project: Path
) -> None:
    """AG-29, AG-30; AG acceptance 13."""
    data = {"text": "ü" * 2_500_000, "rows": list(range(1000)), "none": None}
    fake.script({"tools": [call("read_file", path="inputs.json", limit=2)]}, {"text": "ok"})
    before = fingerprint(project)
    result = await make(project).run(data)
    assert len(str(fake.requests[0]["messages"])) < 10_000
    assert fingerprint(project) == before
    assert result.changes.record() == {"written": [], "deleted": []} and result.branch.unified() == ""
    shown = texts(fake.requests[0])[0]
    assert '"inputs_file":"inputs.json"' in shown and '"size":2500000' in shown
    assert "[0,1,2,3,4]" in shown and '"truncated":true' in shown
    assert result.branch.read_overlay("inputs.json").startswith('{\n  "text": "üü'.encode())
    assert result.inputs is data


async def test_the_inputs_file_takes_the_first_free_name(fake: FakeModels, make: Any, project: Path) -> None:
    """AG-29."""
    (project / "inputs.json").write_text("mine")
    fake.script({"text": "ok"})
    agent = make(project)
    await agent.run({"a": 1})
    await agent.run({"a": 2})
    assert '"inputs_file":"inputs_1.json"' in texts(fake.requests[0])[0]
    assert '"inputs_file":"inputs_2.json"' in texts(fake.requests[1])[0]
    assert (project / "inputs.json").read_text() == "mine"


@pytest.mark.parametrize(
    ("data", "path"),
    [
        ({"a": [1, {"b": {1, 2}}]}, "inputs['a'][1]['b']"),
        ([float("nan")], "inputs[0]"),
        ({"s": "\ud800"}, "inputs['s']"),
    ],
)
async def test_what_has_no_json_form_is_refused_with_its_path(make: Any, data: Any, path: str) -> None:
    """AG-31."""
    with pytest.raises(InvalidArgument) as refused:
        await make().run(data)
    assert path in str(refused.value)


@pytest.mark.parametrize(
    "chat",
    [
        "hello",
        [{"role": "user", "content": "hello"}],
        {"messages": [{"role": "user", "content": [{"type": "text", "text": "hello"}]}]},
    ],
)
async def test_three_forms_of_chat(fake: FakeModels, make: Any, chat: Any) -> None:
    """AG-28."""
    fake.script({"text": "hi"})
    result = await make().run(chat)
    assert texts(fake.requests[0]) == ["hello"]
    assert [m["role"] for m in result.messages] == ["user", "assistant"]


async def test_a_template_gets_its_parts(fake: FakeModels, make: Any) -> None:
    """AG-9, AG-10, AG-14."""
    fake.script({"text": '{"good": true}'})
    agent = make(
        data_model=Verdict,
        prompt_template="IN {inputs} SCHEMA {inputs_schema} OUT {outputs_schema} EX {examples}",
        examples=[{"input": {"a": 1}, "output": {"good": False}}],
    )
    result = await agent.run({"a": 5})
    shown = texts(fake.requests[0])[0]
    assert '"inputs_file"' in shown and '"integer"' in shown and '"good"' in shown and "Examples:" in shown
    assert result.output == Verdict(good=True)


async def test_messages_may_leave_the_inputs_out(fake: FakeModels, make: Any) -> None:
    """AG-18."""
    chat = [
        {"role": "user", "content": "one"},
        {"role": "assistant", "content": "two"},
        {"role": "user", "content": "three"},
    ]
    fake.script({"text": "four"})
    whole = await make().run(chat)
    added = await make(return_inputs_with_trajectory=False).run(chat)
    assert [m["content"][0]["text"] for m in whole.messages] == ["one", "two", "three", "four"]
    assert [m["content"][0]["text"] for m in added.messages] == ["four"]
    assert added.inputs == chat
