"""PR-22, acceptance 2 and 15: the real key stays outside, the relay leads to the vendor's host and no other."""

import asyncio
import gc
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st
from support.agent_programs import KEY, Stage
from support.patience import HANG_S, patience

from bowerbird.providers.contract.types import AgentRequest
from bowerbird.providers.programs.relay.counting import TokenCount
from bowerbird.providers.programs.relay.relay import Budget, Relay, Upstream

pytestmark = [pytest.mark.filterwarnings("error")]


class Vendor:
    """An API that says which keys it saw."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, dict[str, str]]] = []
        self.status = 200
        self.url = ""

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.seen.append((request.path_qs, {k.lower(): v for k, v in request.headers.items()}))
        if self.status != 200:
            return web.json_response(
                {"error": {"message": f"bad key {KEY[:7]}***{KEY[-4:]}"}}, status=self.status
            )
        if request.path.endswith("/stream"):
            back = web.StreamResponse(headers={"content-type": "text/event-stream"})
            await back.prepare(request)
            start = {"type": "message_start", "message": {"usage": {"input_tokens": 11, "output_tokens": 1}}}
            end = {"type": "message_delta", "usage": {"output_tokens": 9}}
            for event in (start, end):
                await back.write(f"event: x\ndata: {json.dumps(event)}\n\n".encode())
            return back
        if request.path.endswith("/away"):
            raise web.HTTPFound("http://127.0.0.1:1/elsewhere")
        return web.json_response({"usage": {"prompt_tokens": 5, "completion_tokens": 2}})


@asynccontextmanager
async def vendor() -> AsyncIterator[Vendor]:
    state = Vendor()
    app = web.Application()
    app.router.add_route("*", "/{p:.*}", state.answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    state.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield state
    finally:
        await runner.cleanup()


@asynccontextmanager
async def served(relay: Relay, place: Path) -> AsyncIterator[aiohttp.ClientSession]:
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(place / "s"))
    await relay.serve(listener)
    connector = aiohttp.UnixConnector(str(place / "s"))
    try:
        async with aiohttp.ClientSession("http://relay", connector=connector) as session:
            yield session
    finally:
        await relay.close()


async def test_a_token_becomes_the_key_on_the_way_out_and_tokens_are_counted(tmp_path: Path):
    """PR-22: in whichever header the program puts it; streams and whole answers; headers that settings name."""
    async with vendor() as far:
        relay = Relay(Upstream(f"{far.url}/base/v1", KEY, "x-api-key", {"X-Team": "t"}))
        async with served(relay, tmp_path) as near:
            for given_token in ({"x-api-key": relay.token}, {"authorization": f"Bearer {relay.token}"}):
                async with near.post("/base/v1/stream?beta=1", headers=given_token, data=b"{}") as answer:
                    assert answer.status == 200 and b"message_start" in await answer.read()
            async with near.post(f"/base/v1/chat?key={relay.token}", data=b"{}") as answer:
                assert answer.status == 200
        for path, headers in far.seen:
            assert headers["x-api-key"] == KEY and headers["x-team"] == "t"
            assert relay.token not in json.dumps([path, headers]) and "authorization" not in headers
        assert (relay.input_tokens, relay.output_tokens, relay.calls) == (27, 20, 3)
        assert KEY not in repr(relay) + repr(Upstream(far.url, KEY))


async def test_wrong_tokens_other_paths_and_redirects_lead_nowhere(tmp_path: Path):
    """PR-22: only the vendor's host, below the address that is set; a redirect is not followed."""
    async with vendor() as far:
        relay = Relay(Upstream(f"{far.url}/v1", KEY))
        async with served(relay, tmp_path) as near:
            right = {"authorization": f"Bearer {relay.token}"}
            for path, headers, status in (
                ("/v1/chat", {}, 401),
                ("/v1/chat", {"authorization": "Bearer other"}, 401),
                ("/v2/chat", right, 404),
                ("/v1x", right, 404),
                ("http://other.example/x", right, 404),
                ("/v1/away", right, 302),
            ):
                async with near.get(path, headers=headers, allow_redirects=False) as answer:
                    assert answer.status == status, path
                    assert "location" not in answer.headers
        assert [path for path, _ in far.seen] == ["/v1/away"]


async def test_a_token_of_broken_bytes_is_a_wrong_token(tmp_path: Path):
    """PR-22: whatever bytes a program sends in its place, it is told 401, and nothing is asked."""
    async with vendor() as far:
        relay = Relay(Upstream(f"{far.url}/v1", KEY))
        async with served(relay, tmp_path):
            for header in (
                b"authorization: Bearer \xff\xfe",
                b"x-api-key: \xc3\x28",
                b"x-goog-api-key: \xed\xa0\x80",
            ):
                reader, writer = await asyncio.open_unix_connection(str(tmp_path / "s"))
                writer.write(b"GET /v1/chat HTTP/1.1\r\nhost: x\r\n" + header + b"\r\n\r\n")
                async with asyncio.timeout(HANG_S):
                    assert b" 401 " in await reader.readline()
                writer.close()
        assert far.seen == []


async def test_a_rejected_key_is_told_without_a_piece_of_it(tmp_path: Path):
    """PR-9, PR-22: vendors quote keys; the run knows at once that no retry helps."""
    async with vendor() as far:
        far.status = 401
        relay = Relay(Upstream(far.url, KEY))
        key = {"x-goog-api-key": relay.token}
        async with served(relay, tmp_path) as near, near.get("/x", headers=key) as answer:
            text = await answer.text()
        assert answer.status == 401 and relay.over.is_set()
        assert not any(KEY[at : at + 4] in text for at in range(3, len(KEY) - 3))
        assert type(relay.trouble).__name__ == "AgentAuthError"


async def test_a_budget_ends_further_calls(tmp_path: Path):
    """PR-12, PR-22: `max_tokens` is held by the relay."""
    async with vendor() as far:
        relay = Relay(Upstream(far.url, KEY), Budget(output_tokens=2))
        async with served(relay, tmp_path) as near:
            right = {"authorization": f"Bearer {relay.token}"}
            statuses = []
            for _ in range(2):
                async with near.get("/x", headers=right) as answer:
                    statuses.append(answer.status)
                    text = await answer.text()
        assert statuses == [200, 403] and "max_tokens" in text and len(far.seen) == 1


@pytest.mark.parametrize(
    ("usd", "price", "says"),
    [(0.02, 0.015, "this run used its $0.02 (max_cost)"), (5.0, None, "the price of its model is unknown")],
)
async def test_a_limit_in_dollars_ends_the_run(tmp_path: Path, usd: float, price: float | None, says: str):
    """PR-22, PR-40: the call that passes the limit is the last; without a price it cannot be kept, and that is said."""
    async with vendor() as far:
        relay = Relay(Upstream(far.url, KEY), Budget(usd=usd), lambda _model, _used: price)
        right = {"authorization": f"Bearer {relay.token}"}
        statuses: list[int] = []
        async with served(relay, tmp_path) as near:
            for _ in range(3):
                async with near.get("/x", headers=right) as answer:
                    statuses.append(answer.status)
                    text = await answer.text()
        assert statuses == ([200, 200, 403] if price else [200, 403, 403]) and says in text
        assert relay.over.is_set() and says in str(relay.trouble)
        assert relay.cost == (0.03 if price else None)


async def test_a_relay_serves_a_program_that_is_started_again_and_leaves_nothing_open(tmp_path: Path):
    """PR-24: a fallback, or a session that is gone, starts a second program on a socket of its own."""
    async with vendor() as far:
        relay = Relay(Upstream(far.url, KEY))
        first = socket.socket(socket.AF_UNIX)
        first.bind(str(tmp_path / "first"))
        await relay.serve(first)
        key = {"x-api-key": relay.token}
        async with served(relay, tmp_path) as near, near.get("/x", headers=key) as answer:
            assert answer.status == 200
        gc.collect()  # an unclosed connection would be an error here
        assert relay.calls == 1


LOOKS = """
import glob, urllib.request
url = os.environ["ANTHROPIC_BASE_URL"] + "/v1/stream"
call = urllib.request.Request(url, data=b"{}", headers={"x-api-key": os.environ["ANTHROPIC_API_KEY"]})
urllib.request.build_opener(urllib.request.ProxyHandler({})).open(call).read()
found = []
for pattern in ("/proc/*/environ", "/proc/*/cmdline", os.environ["HOME"] + "/**/*", "/run/**/*", "/tmp/**/*"):
    for path in glob.glob(pattern, recursive=True, include_hidden=True):
        try:
            found.append(open(path, "rb").read(1 << 20).decode("latin-1"))
        except OSError:
            pass
open("looked.txt", "w").write(chr(10).join(found))
result("looked at %d" % len(found))
"""


def whatever_is_in(path: Path) -> str:
    """The bytes of a file; none of what is none, or went away while the others were read."""
    try:
        return path.read_bytes().decode("latin-1") if path.is_file() and not path.is_symlink() else ""
    except FileNotFoundError:
        return ""


@pytest.mark.asyncio(loop_scope="module")
async def test_no_piece_of_the_key_is_in_the_sandbox(on_stage: Stage):
    """PR-22, acceptance 2: environments, arguments and files inside, the branch, homes, events, the answer."""
    async with vendor() as far:
        on_stage.program("claude", LOOKS)
        events = [event async for event in on_stage.agent(base_url=far.url).stream(AgentRequest("look"))]
        response = events[-1].response
        assert response is not None and response.content.startswith("looked at"), response
        assert far.seen[0][1]["x-api-key"] == KEY
        assert response.metadata["model_calls"] == 1 and response.tokens_used == 20
        secret = KEY.removeprefix("sk-SECRET-")
        pieces = {secret[at : at + 5] for at in range(len(secret) - 4)}
        told = repr(events) + repr(on_stage.agent())
        inside = "".join(whatever_is_in(p) for p in on_stage.place.rglob("*") if "agents" not in p.parts)
        assert "looked at" in told and "relay-" in inside
        assert not any(piece in told for piece in pieces), "in events or repr"
        assert KEY not in inside and not any(piece in inside for piece in pieces)


RETRIES = """
import urllib.request
while True:
    print("{}", flush=True)
    try:
        call = urllib.request.Request(os.environ["ANTHROPIC_BASE_URL"] + "/v1/x", headers={"x-api-key": os.environ["ANTHROPIC_API_KEY"]})
        urllib.request.build_opener(urllib.request.ProxyHandler({})).open(call)
    except OSError:
        time.sleep(0.05)
"""


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(("mode", "error"), [("reject", "AgentAuthError"), ("gone", "AgentUnavailable")])
async def test_a_program_that_retries_for_ever_is_ended(on_stage: Stage, mode: str, error: str):
    """Acceptance 15: a key that is rejected, a host that is not there: long before the time limit."""
    async with vendor() as far:
        far.status = 401
        on_stage.program("claude", RETRIES)
        url = far.url if mode == "reject" else "http://127.0.0.1:9"
        answer = await on_stage.agent(base_url=url).execute(AgentRequest("x", timeout=HANG_S))
        assert answer.metadata["error_type"] == error, answer
        assert answer.execution_time < patience(8)
        assert KEY[3:9] not in str(answer)


@given(st.lists(st.binary(max_size=200), max_size=20), st.booleans())
def test_counting_never_fails(chunks: list[bytes], streamed: bool):
    """PR-22: whatever a vendor answers."""
    count = TokenCount(streamed=streamed)
    for chunk in chunks:
        count.feed(chunk)
    assert count.counted().input_tokens >= 0


@given(st.integers(0, 10**6), st.integers(0, 10**6), st.integers(1, 50))
def test_counting_does_not_depend_on_how_bytes_arrive(read: int, wrote: int, size: int):
    """PR-22: OpenAI's stream, cut anywhere."""
    stream = f'data: {{"choices":[]}}\n\ndata: {{"usage":{{"prompt_tokens":{read},"completion_tokens":{wrote}}}}}\n\n'
    count = TokenCount(streamed=True)
    data = stream.encode() + b"data: [DONE]\n\n"
    for at in range(0, len(data), size):
        count.feed(data[at : at + size])
    assert (count.counted().input_tokens, count.counted().output_tokens) == (read, wrote)


def test_a_long_line_is_not_kept():
    """PR-22: bounded memory."""
    count = TokenCount(streamed=True)
    for _ in range(40):
        count.feed(b"data: " + b"x" * (1 << 16))
    count.feed(b'\ndata: {"usage": {"input_tokens": 1}}\n')
    assert count.counted().input_tokens == 1


@pytest.mark.asyncio(loop_scope="module")
async def test_a_rejected_key_is_a_failure_though_the_program_says_that_all_is_well(on_stage: Stage):
    """PR-19: Copilot over ACP ends its turn as usual, and has the error as its answer."""
    async with vendor() as far:
        far.status = 401
        body = RETRIES.replace("while True:", "for _ in range(2):") + "result('Error: Authentication failed')"
        on_stage.program("claude", body)
        answer = await on_stage.agent(base_url=far.url).execute(AgentRequest("x", timeout=HANG_S))
        assert answer.metadata["error_type"] == "AgentAuthError", answer
        assert answer.content == "Error: Authentication failed"
