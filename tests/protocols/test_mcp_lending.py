"""MCP servers whose tools another vendor's program is lent over ACP; what is theirs stays outside (PR-25, PT-20)."""

import json
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest
import pytest_asyncio
from support.agent_programs import KEY, Stage, stage
from support.mcp_servers import http_server, sdk_server, sdk_spec
from support.patience import HANG_S

from bowerbird.protocols.mcp_client import McpClient, ServerSpec
from bowerbird.protocols.mcp_client.lending import lend
from bowerbird.providers.contract.types import AgentRequest, AgentResponse
from bowerbird.providers.programs.ground import LentTools
from bowerbird.workspace import Workspace

pytestmark = pytest.mark.asyncio(loop_scope="module")

HEADER = "tr-SECRET-header-8JkQ"
# Asks what it was given at `session/new`, calls two tools, then says what came of it.
PROGRAM = r"""
import urllib.request, urllib.error
def send(**message): print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)
def say(text): send(method="session/update", params={"sessionId": "n", "update": {
    "sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}})
def ask(server, method, headers=None, **params):
    given = {each["name"]: each["value"] for each in server["headers"]} if headers is None else headers
    given |= {"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
              "MCP-Protocol-Version": "2025-11-25"}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
    try:
        with urllib.request.urlopen(urllib.request.Request(server["url"], body, given)) as answer:
            return json.load(answer).get("result")
    except urllib.error.HTTPError as error:
        return error.code
for line in sys.stdin:
    message = json.loads(line)
    if message["method"] == "initialize":
        send(id=message["id"], result={"protocolVersion": 1, "agentCapabilities": {"mcpCapabilities": {"http": HTTP}}})
    elif message["method"] == "session/new":
        servers = message["params"]["mcpServers"]
        send(id=message["id"], result={"sessionId": "n"})
    elif message["method"] == "session/prompt":
        seen = {"names": [server["name"] for server in servers], "given": servers, "env": dict(os.environ)}
        for server in servers:
            seen["tools"] = [tool["name"] for tool in ask(server, "tools/list")["tools"]]
            seen["sum"] = ask(server, "tools/call", name="add", arguments={"a": 2, "b": 3})
            seen["echo"] = ask(server, "tools/call", name="echo", arguments={"text": "x"})
            seen["other"] = ask(server, "tools/list", headers={"Authorization": "Bearer tools-wrong"})
            seen["away"] = ask({**server, "url": server["url"] + "x"}, "tools/list")
        say(json.dumps(seen))
        send(id=message["id"], result={"stopReason": "end_turn"})
"""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def on_stage(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stage]:
    async with stage(tmp_path_factory.mktemp("lending")) as opened:
        yield opened


async def ran(
    on_stage: Stage, specs: Sequence[ServerSpec], *, http: str = "True", **settings: object
) -> AgentResponse:
    """Run the program with these servers at hand, of which settings name `tracker`."""
    client = McpClient(specs)

    async def lender(names: Sequence[str], agent: str, *, may_change: bool) -> LentTools:
        return await lend(client, names, agent, may_change=may_change)

    on_stage.ground.lender = lender
    on_stage.program("claude-agent-acp", f"HTTP = {http}\n{PROGRAM}")
    agent = on_stage.agent(transport="acp", mcp_servers=["tracker"], **settings)
    try:
        return await agent.execute(AgentRequest("go", timeout=HANG_S))
    finally:
        await client.aclose()


async def test_a_program_calls_what_settings_let_it_and_gets_no_secret(on_stage: Stage) -> None:
    """PR-22, PR-25, PT-20, law 9: it has an address and a token of its run; the header is put in outside."""
    heard: list[dict[str, str]] = []
    with http_server(sdk_server(), heard) as url:
        spec = ServerSpec(
            name="tracker", transport="streamable_http", url=url, headers={"Authorization": f"Bearer {HEADER}"},
            approval={"add": "allow", "echo": "ask"}, deny=("broken",),
        )  # fmt: skip
        answer = await ran(on_stage, [spec])
    assert answer.error is None, answer
    seen = json.loads(answer.content)
    assert seen["names"] == ["tracker"] and seen["tools"] == ["add"]
    assert "5" in seen["sum"]["content"][0]["text"] and not seen["sum"].get("isError")
    assert seen["echo"] is None and (seen["other"], seen["away"]) == (401, 404)
    told = answer.metadata["mcp_servers"]
    assert (
        told["lent"] == told["listed"] == ["tracker"]
        and "nobody can be asked" in told["left_out"]["tracker: echo"]
    )
    assert any(HEADER in json.dumps(headers) for headers in heard), "it is used outside"
    assert HEADER not in answer.content + json.dumps(answer.metadata) and KEY not in answer.content
    with Workspace(on_stage.root, data_dir=on_stage.ground.data_dir) as workspace:
        del workspace
        held = [
            p for p in Path(on_stage.place).rglob("*") if p.is_file() and HEADER.encode() in p.read_bytes()
        ]
    assert held == []


async def test_what_cannot_be_lent_is_named_and_the_run_goes_on(on_stage: Stage) -> None:
    """PR-25, law 7: a server that does not start, one that would ask, a program without HTTP, a run that may not."""
    broken = ServerSpec(name="tracker", transport="stdio", command="/no/such/server", start_timeout_s=5)
    answer = await ran(on_stage, [broken])
    assert answer.error is None and json.loads(answer.content)["names"] == []
    assert answer.metadata["mcp_servers"]["left_out"]["tracker"]
    answer = await ran(on_stage, [sdk_spec(name="tracker", approval="allow")], permission_mode="read_only")
    left_out = answer.metadata["mcp_servers"]["left_out"]
    assert "may not" in left_out["tracker: add"], left_out
    answer = await ran(on_stage, [sdk_spec(name="tracker", approval="allow")], http="False")
    assert answer.error is None and json.loads(answer.content)["names"] == []
    answer = await ran(on_stage, [])
    assert "no such server" in answer.metadata["mcp_servers"]["left_out"]["tracker"]
