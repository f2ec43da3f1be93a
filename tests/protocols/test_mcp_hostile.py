"""MCP servers whose schemas are traps: they hold up nobody but their own calls (security 3 and 18; PT-19, TO-52)."""

import json
from pathlib import Path
from typing import Any

import pytest
from support.fake_models import FakeModels
from support.heartbeat import heartbeat
from support.mcp_servers import raw_spec

from bowerbird.agent.context.history import History
from bowerbird.agent.policy import Policy, Rule
from bowerbird.core.events import Notice
from bowerbird.core.messages import Message, ToolUseBlock, user_text
from bowerbird.models.answers.bounded_fitting import is_plain
from bowerbird.protocols.mcp_client.messages import is_readable, read_message, without_depths
from bowerbird.protocols.mcp_client.schemas import MOST_PARTS, schema_problem

from .conftest import Connect
from .test_mcp_turns import calls, turn

ALLOWED = Policy(allow=(Rule("mcp__raw__*"),))
STANDSTILL_S = 1.0  # far below what a trap takes, far above what other work on this machine causes


def chain(depth: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(depth):
        value = {"c": value}
    return value


def doubling(count: int, keyword: str = "allOf") -> dict[str, Any]:
    parts: dict[str, Any] = {f"d{i}": {keyword: [{"$ref": f"#/$defs/d{i + 1}"}] * 2} for i in range(count)}
    parts[f"d{count}"] = {"type": "string"}
    return {"type": "object", "properties": {"x": {"$ref": "#/$defs/d0"}}, "$defs": parts}


@pytest.mark.parametrize("keyword", ["allOf", "anyOf", "oneOf"])
def test_references_that_multiply_are_refused(keyword: str) -> None:
    """Security 3: 3 KB of references are 2^40 parts."""
    assert schema_problem(doubling(5, keyword)) is None
    problem = schema_problem(doubling(40, keyword))
    assert problem == f"its references make it larger than {MOST_PARTS:,} parts"


def test_a_part_that_applies_itself_to_the_same_value_is_refused_and_a_tree_is_not() -> None:
    def with_node(node: dict[str, Any]) -> dict[str, Any]:
        return {"type": "object", "properties": {"x": {"$ref": "#/$defs/node"}}, "$defs": {"node": node}}

    node = {"$ref": "#/$defs/node"}
    assert schema_problem(with_node({"anyOf": [{"type": "null"}, {"not": node}]})) is not None
    assert schema_problem(with_node({"properties": {"left": node, "right": node}, "items": node})) is None


def test_only_what_looks_at_each_value_a_few_times_is_checked_in_this_process() -> None:
    plain = {"type": "object", "properties": {"a": {"anyOf": [{"type": "null"}, {"type": "string"}]}}}
    assert is_plain(plain)
    for part in (
        {"$ref": "#"},
        {"pattern": "a"},
        {"allOf": [{}]},
        {"anyOf": [plain]},
        {"enum": ["x" * 9_000]},
    ):
        assert not is_plain({"type": "object", "properties": {"a": part}})


async def test_a_call_whose_check_would_not_end_is_an_error_and_nobody_waits(
    connect: Connect, fake: FakeModels, tmp_path: Path
) -> None:
    """Security 3: such a call froze the whole server, before anybody was asked."""
    client = await connect(raw_spec(tmp_path / "notes", "hostile"))
    fake.script({"text": "hello"}, calls("twice", x=chain(60)), {"text": "sorry"})
    await turn(fake, client)  # the first turn of a process also loads what it needs
    async with heartbeat() as heart:
        told = await turn(fake, client, policy=ALLOWED)
    [outcome] = told.outcomes
    assert outcome.status == "error" and "could not be checked" in str(outcome.content)
    assert heart.longest < STANDSTILL_S


async def test_a_turn_that_goes_on_after_a_restart_does_not_stand_still_either(
    connect: Connect, fake: FakeModels, tmp_path: Path
) -> None:
    """Security 3: the resumed turn froze the server again."""
    client = await connect(raw_spec(tmp_path / "notes", "hostile"))
    fake.script({"text": "hello"}, {"text": "sorry"})
    await turn(fake, client)
    call = ToolUseBlock("c1", "mcp__raw__twice", {"x": chain(60)})
    history = History((user_text("go"), Message("assistant", (call,))))
    async with heartbeat() as heart:
        told = await turn(fake, client, policy=ALLOWED, history=history, new=())
    assert [o.status for o in told.outcomes] == ["error"]
    assert heart.longest < STANDSTILL_S


async def test_what_is_denied_is_not_checked_first(
    connect: Connect, fake: FakeModels, tmp_path: Path
) -> None:
    client = await connect(raw_spec(tmp_path / "notes", "hostile"))
    fake.script(calls("twice", x=chain(60)), {"text": "sorry"})
    told = await turn(fake, client, policy=Policy(deny=(Rule("mcp__raw__twice"),)))
    assert [o.status for o in told.outcomes] == ["denied"]


async def test_what_a_server_promises_of_its_results_is_checked_within_a_bound(
    connect: Connect, fake: FakeModels, tmp_path: Path
) -> None:
    """The SDK evaluated a server's output schema on the event loop, its patterns with Python's `re`."""
    client = await connect(raw_spec(tmp_path / "notes", "hostile"))
    fake.script({"text": "hello"}, calls("promise"), {"text": "sorry"})
    await turn(fake, client)
    async with heartbeat() as heart:
        told = await turn(fake, client, policy=ALLOWED)
    [outcome] = told.outcomes
    assert outcome.status == "error" and "breaks the protocol" in str(outcome.content)
    assert heart.longest < STANDSTILL_S


async def test_a_tool_that_breaks_the_form_of_mcp_is_named_and_the_others_are_offered(
    connect: Connect, fake: FakeModels, tmp_path: Path
) -> None:
    client = await connect(raw_spec(tmp_path / "notes", "broken"))
    fake.script({"text": "hi"})
    await turn(fake, client)
    offered = {tool["name"] for tool in fake.requests[0]["tools"]}
    assert {"mcp__raw__echo", "mcp__raw__whole"} <= offered
    assert not offered & {"mcp__raw__loose", "mcp__raw__odd", "mcp__raw__bare"}
    said = "\n".join((await client.gather()).warnings)
    assert "loose: its inputSchema is no schema" in said and "bare: its inputSchema" in said
    assert "it has no name" in said and "it is no object" in said and "odd: its description" in said


async def test_a_tool_that_cannot_be_offered_takes_no_other_with_it(
    connect: Connect, fake: FakeModels, tmp_path: Path
) -> None:
    """Security 18: one schema nested 400 deep lost every tool of its server."""
    client = await connect(raw_spec(tmp_path / "notes", "hostile"))
    fake.script({"text": "hi"})
    told = await turn(fake, client)
    offered = {tool["name"]: tool for tool in fake.requests[0]["tools"]}
    assert {"mcp__raw__echo", "mcp__raw__loud", "mcp__raw__twice"} <= set(offered)
    assert not {"mcp__raw__nested", "mcp__raw__doubling"} & set(offered)
    said = [event.text for event in told.events if isinstance(event, Notice)]
    assert any("nested: it is nested too deep" in text for text in said)
    assert any("doubling: its references make it larger" in text for text in said)
    shown = json.dumps(offered["mcp__raw__loud"])
    assert "Does it." in shown and "The x." in shown and "\\u001b" not in shown


def test_a_message_keeps_all_but_its_depths() -> None:
    deep = b'{"jsonrpc":"2.0","id":1,"result":{"a":"[[\\"","b":' + b"[" * 9_000 + b"]" * 9_000 + b',"c":3}}'
    message: Any = read_message(deep)
    assert (message.result["a"], message.result["c"]) == ('[["', 3)
    assert without_depths(b'{"a":[1,[2]],"b":3}', 2) == b'{"a":[1,null],"b":3}'
    with pytest.raises(ValueError, match="Invalid JSON"):
        read_message(b"welcome!")


@pytest.mark.parametrize("part", [b"[", b'"",', b"{},", b"1,"])
def test_a_message_of_millions_of_parts_is_not_read(part: bytes) -> None:
    assert is_readable(part * 20_000)
    assert not is_readable(part * 2_000_000)
    assert is_readable(b'"' + b"a, [b]" * 2_000_000 + b'"')
