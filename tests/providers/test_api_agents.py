"""Agents behind HTTP: what they send, what they answer, how they fail (PR-1, PR-4, PR-6, PR-9, PR-12, PR-14)."""

import asyncio
import socket
import time
from collections.abc import AsyncIterator

import pytest
from genai_prices.data_snapshot import get_snapshot
from support.agent_wires import AgentWires
from support.patience import HANG_S, patience

from bowerbird.config.sections.agent import ProviderEntry
from bowerbird.core.errors import InvalidArgument
from bowerbird.models.settings import ModelSettings, RetryPolicy
from bowerbird.providers.api.agent import ApiAgent
from bowerbird.providers.catalogue import CATALOGUE
from bowerbird.providers.contract.types import AgentCapabilities, AgentRequest, MemoryLog

KEY = "sk-SECRET-0123456789abcdef"
API = [entry.name for entry in CATALOGUE.values() if entry.type == "api"]
MODELS = ModelSettings(retry=RetryPolicy(retries=0), secrets=(KEY,))


def agent(name: str, url: str, **settings: object) -> ApiAgent:
    key = {} if CATALOGUE[name].type == "local" else {"api_key": KEY}
    return ApiAgent(
        CATALOGUE[name], ProviderEntry.model_validate({**key, "base_url": url, **settings}), MODELS
    )


@pytest.fixture
async def wires() -> AsyncIterator[AgentWires]:
    async with AgentWires().serving() as served:
        yield served


def pieces_of_key(text: str) -> list[str]:
    return [KEY[at : at + 4] for at in range(len(KEY) - 3) if KEY[at : at + 4] in text]


@pytest.mark.parametrize("name", [*API, "ollama"])
async def test_every_agent_streams_and_answers(wires: AgentWires, name: str) -> None:
    """PR-11, PR-12: text as it comes, then the answer with ids, tokens and time."""
    asked = agent(name, wires.url)
    request = AgentRequest(
        "hi", id="r1", max_tokens=77, history=(MemoryLog("user", "a"), MemoryLog("assistant", "b"))
    )
    events = [event async for event in asked.stream(request)]
    assert "".join(e.text for e in events if e.kind == "text") == "hello there"
    answer = events[-1].response
    assert events[-1].kind == "done" and answer is not None and answer.success
    assert (answer.content, answer.request_id, answer.trace_id) == ("hello there", "r1", request.trace_id)
    assert answer.tokens_used == 15 and answer.execution_time > 0
    body = wires.bodies[-1]
    limits = [body.get(key) for key in ("max_tokens", "max_completion_tokens", "max_output_tokens")]
    limits.append((body.get("options") or {}).get("num_predict"))
    assert 77 in limits
    assert "hi" in str(body) and "'a'" in str(body)
    await asked.close()


async def test_o1_and_codex_speak_as_their_vendor_wants(wires: AgentWires) -> None:
    """Acceptance 14, PR-1."""
    request = AgentRequest("hi", history=(MemoryLog("system", "be brief"),))
    o1, codex = agent("o1", f"{wires.url}/v1"), agent("codex", f"{wires.url}/v1")
    assert (await o1.execute(request)).success and (await codex.execute(request)).success
    (path, _, body), (codex_path, headers, codex_body) = wires.asked
    assert path == "/v1/chat/completions" and codex_path == "/v1/responses"
    assert "max_completion_tokens" in body and "temperature" not in body and "max_tokens" not in body
    assert [m["role"] for m in body["messages"]] == ["developer", "user"]
    assert codex_body["instructions"] == "be brief" and codex_body["model"] == CATALOGUE["codex"].model
    assert headers["Authorization"] == f"Bearer {KEY}" and codex_body["store"] is False
    await o1.close()
    await codex.close()


@pytest.mark.parametrize("name", [*API, "ollama"])
async def test_an_address_where_nobody_answers_is_an_error_in_time(name: str) -> None:
    """Acceptance 15: a server that accepts and says nothing, and one that is not there."""
    with socket.create_server(("127.0.0.1", 0)) as silent, socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        for listener, within, kind in ((silent, 0.3, "AgentTimeout"), (closed, HANG_S, "AgentUnavailable")):
            asked = agent(name, f"http://127.0.0.1:{listener.getsockname()[1]}", model="m")
            began = time.monotonic()
            answer = await asked.execute(AgentRequest("hi", timeout=within))
            assert answer.error and answer.metadata["error_type"] == kind, answer
            assert time.monotonic() - began < patience(3.3)
            await asked.close()


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (401, "AgentAuthError"),
        (429, "AgentRateLimited"),
        (503, "AgentUnavailable"),
        (400, "AgentExecutionError"),
    ],
)
async def test_refusals_have_their_type_and_show_no_piece_of_the_key(
    wires: AgentWires, status: int, kind: str
) -> None:
    """PR-9, PR-12, PR-13, acceptance 2: vendors quote a part of the key that they refuse."""
    wires.status, wires.said = status, f"wrong key {KEY[:7]}…{KEY[-5:]}, whole: {KEY}"
    asked = agent("deepseek", wires.url)
    answer = await asked.execute(AgentRequest("hi"))
    assert answer.error and answer.metadata["error_type"] == kind
    assert not pieces_of_key(answer.error + repr(asked) + str((await asked.probe(live=True)).detail))
    await asked.close()


async def test_a_capability_that_is_missing_is_said_before_any_call(wires: AgentWires) -> None:
    """PR-12, PR-14."""
    asked = agent("claude", wires.url)
    answer = await asked.execute(AgentRequest("hi", capabilities=(AgentCapabilities.FILE_OPERATIONS,)))
    assert answer.error == "claude does not support file_operations"
    for prompt in (" \n", "a\0b", "x" * 200_001):
        with pytest.raises(InvalidArgument):
            await asked.execute(AgentRequest(prompt))
    assert not wires.asked


async def test_context_is_fenced_behind_the_prompt(wires: AgentWires) -> None:
    """PR-14."""
    asked = agent("deepseek", wires.url)
    await asked.execute(AgentRequest("hi", context={"a": "```"}))
    assert wires.bodies[0]["messages"][-1]["content"] == 'hi\n\n````json\n{\n  "a": "```"\n}\n````'
    await asked.close()


async def test_probes_of_keys_cost_nothing_unless_they_are_live(wires: AgentWires) -> None:
    """PR-6."""
    asked = agent("claude", wires.url)
    assert (await asked.probe()).status == "operative" and not wires.asked
    assert (await asked.probe(live=True)).status == "operative" and wires.asked[0][0] == "/v1/models"
    wires.status = 403
    rejected = await asked.probe(live=True)
    assert (rejected.status, "key rejected" in rejected.detail) == ("key_missing", True)
    wires.status = 500
    assert (await asked.probe(live=True)).status == "unreachable" and not await asked.test_connection()
    without = await agent("claude", wires.url, api_key=" ").probe(live=True)
    assert without.status == "key_missing" and "ANTHROPIC_API_KEY" in without.detail


async def test_ollama_takes_its_first_model_and_stays_on_this_machine(wires: AgentWires) -> None:
    """PR-4, PR-6."""
    asked = agent("ollama", f"{wires.url}/v1/")
    wires.models = [f"m{n}" for n in range(7)]
    probe = await asked.probe()
    assert (probe.status, probe.detail) == ("operative", "7 models: m0, m1, m2, m3, m4, …")
    answer = await asked.execute(AgentRequest("hi"))
    assert answer.success and wires.bodies[0]["model"] == "m0" and answer.metadata["model"] == "m0"
    wires.models = []
    assert (await asked.probe()).detail == "no models pulled"
    assert "no models pulled" in str((await asked.execute(AgentRequest("hi"))).error)
    far = agent("ollama", "http://192.0.2.1:11434")
    assert "allow_remote" in (await far.probe()).detail and "allow_remote" in str(
        (await far.execute(AgentRequest("x"))).error
    )
    await asked.close()


async def test_closing_a_stream_closes_the_request(wires: AgentWires) -> None:
    """PR-11: who stops reading stops the agent."""
    asked = agent("claude", wires.url)
    stream = asked.stream(AgentRequest("hi"))
    assert (await anext(stream)).kind == "text"
    async with asyncio.timeout(patience(1)):
        await stream.aclose()  # pyright: ignore[reportAttributeAccessIssue] - it is a generator
    await asked.close()


def test_models_that_ship_are_sold_today() -> None:
    """PR-1: a retired model cannot be shipped."""
    table = {provider.id: {m.id: m for m in provider.models} for provider in get_snapshot().providers}
    for name in API:
        entry = CATALOGUE[name]
        assert entry.model is not None and entry.prices_as is not None
        provider, model = entry.prices_as
        assert model.endswith(entry.model) and not table[provider][model].deprecated, name
