"""PR-24, PR-25, acceptance 9: a program that speaks ACP, and what it may ask of us."""

import asyncio
import json
import os
from pathlib import Path
from types import SimpleNamespace

import pytest
from acp import RequestError
from support.abuse import pids_with
from support.agent_programs import FILES, Stage
from support.patience import HANG_S, patience

from bowerbird.core.errors import LandingRefused
from bowerbird.providers.contract.types import AgentEvent, AgentRequest, MemoryLog
from bowerbird.providers.programs.acp_client import BranchClient, chosen_option
from bowerbird.workspace import Workspace

pytestmark = pytest.mark.asyncio(loop_scope="module")

# A program of ACP: `ask` is a request to the client, `say` a piece of the answer, `end` the stop reason.
SPEAKS = r"""
import itertools
numbers = itertools.count(1)
def send(**message): print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)
def update(**what): send(method="session/update", params={"sessionId": "n-1", "update": what})
def say(text): update(sessionUpdate="agent_message_chunk", content={"type": "text", "text": text})
def ask(method, **params):
    number = f"q{next(numbers)}"
    send(id=number, method=method, params={"sessionId": "n-1", **params})
    for line in sys.stdin:
        message = json.loads(line)
        if message.get("id") == number:
            return message.get("result", message.get("error"))
def end(reason): send(id=prompt["id"], result={"stopReason": reason, "usage": {"totalTokens": 7, "inputTokens": 3, "outputTokens": 4}})
print("a banner that is no message")
update(sessionUpdate="a_kind_nobody_knows", x=1)
for line in sys.stdin:
    message = json.loads(line)
    if message["method"] == "initialize":
        send(id=message["id"], result={"protocolVersion": 1, "agentCapabilities": {"loadSession": True}})
    elif message["method"] == "session/new":
        cwd = message["params"]["cwd"]
        send(id=message["id"], result={"sessionId": "n-1"})
    elif message["method"] == "session/load":
        cwd = message["params"]["cwd"]
        say("what was said before")
        send(id=message["id"], result={})
        say("loaded " + message["params"]["sessionId"] + " ")
    elif message["method"] == "session/prompt":
        prompt = message
        text = prompt["params"]["prompt"][0]["text"]
        act()
"""


def acting(body: str) -> str:
    """Return a program that does `body` when it is prompted."""
    lines = "".join(f"    {line}\n" for line in body.strip().splitlines())
    return f"def act():\n{lines}\n" + SPEAKS


WORKS = """
open("made.txt", "w").write("a\\nb\\n"); os.remove("old.txt")
say("done: "); say(text); end("end_turn")
"""


async def _over_acp(on_stage: Stage, body: str, prompt: str = "go", **request: object):
    on_stage.program("claude-agent-acp", acting(body))
    agent = on_stage.agent(transport="acp")
    return await agent.execute(AgentRequest(prompt, timeout=HANG_S, **request))  # pyright: ignore[reportArgumentType]


async def test_the_same_comes_of_a_run_over_acp_and_headless(on_stage: Stage):
    """Acceptance 9: the same content, changes and session."""
    acp = await _over_acp(on_stage, WORKS, session_id="s-1")
    headless = await on_stage.ask(
        "open('made.txt', 'w').write('a\\nb\\n'); os.remove('old.txt')\n"
        "result('done: ' + sys.stdin.read(), session_id='n-1', usage={'input_tokens': 3, 'output_tokens': 4})",
        request={"session_id": "s-2"},
    )
    for answer in (acp, headless):
        assert answer.error is None, answer
        assert (answer.content, answer.tokens_used) == ("done: go", 7)
        assert answer.changes is not None and answer.changes.written == ("made.txt",)
        assert answer.changes.deleted == ("old.txt",) and answer.changes.added_lines == 2
        assert answer.metadata["native_session_id"] == "n-1"
    assert (acp.metadata["transport"], headless.metadata["transport"]) == ("acp", "headless")
    assert {p.name: p.read_text() for p in on_stage.root.iterdir()} == FILES


async def test_a_session_is_loaded_and_its_past_is_not_said_again(on_stage: Stage):
    """PR-25, PR-31: updates that tell what was said before are not the answer."""
    first = await _over_acp(on_stage, WORKS, session_id="s-load")
    second = await _over_acp(
        on_stage, 'say("more"); end("end_turn")', session_id="s-load",
        native_session_id=first.metadata["native_session_id"],
    )  # fmt: skip
    assert second.content in ("loaded n-1 more", "more"), second


FILES_AND_TERMINALS = """
out = [ask("fs/read_text_file", path=cwd + "/kept.txt")]
out.append(ask("fs/write_text_file", path=cwd + "/sub/new.txt", content="by us"))
out.append(open("sub/new.txt").read())
for path in ("/etc/passwd", cwd + "/../x", cwd + "x"):
    out.append(ask("fs/read_text_file", path=path).get("code"))
    out.append(ask("fs/write_text_file", path=path, content="x").get("code"))
made = ask("terminal/create", command="sh", args=["-c", "echo in; cat kept.txt; exit 3"])["terminalId"]
out.append(ask("terminal/wait_for_exit", terminalId=made)["exitCode"])
out.append(ask("terminal/output", terminalId=made)["output"])
hangs = ask("terminal/create", command="sleep 987654")["terminalId"]
ask("terminal/kill", terminalId=hangs); ask("terminal/release", terminalId=hangs)
out.append(ask("terminal/output", terminalId=hangs).get("code"))
kinds = ["reject_once", "allow_always", "allow_once"]
options = [{"optionId": kind, "name": kind, "kind": kind} for kind in kinds]
call = {"toolCallId": "t", "title": "edit"}
out.append(ask("session/request_permission", toolCall=call, options=options)["outcome"]["optionId"])
out.append(ask("session/request_permission", toolCall=call, options=options[:1])["outcome"]["optionId"])
say(json.dumps(out)); end("end_turn")
"""


async def test_files_and_terminals_are_those_of_the_branch_and_its_sandbox(on_stage: Stage):
    """PR-25: paths outside are error -32602; permissions are answered; a refused tool is named."""
    answer = await _over_acp(on_stage, FILES_AND_TERMINALS)
    assert answer.error is None, answer
    text, _, denied = answer.content.partition("\n\n")
    assert json.loads(text) == [
        {"content": "kept\n"}, {}, "by us", *[-32602] * 6, 3, "in\nkept\n", -32602, "allow_once", "reject_once",
    ]  # fmt: skip
    assert "edit" in denied and answer.metadata["denied"] == ["edit"]
    assert not pids_with("987654") and not (on_stage.root / "sub").exists()


async def test_another_stop_reason_is_an_error_that_keeps_the_text(on_stage: Stage):
    """PR-25."""
    answer = await _over_acp(on_stage, 'say("half"); end("max_tokens")')
    assert answer.content == "half" and "max_tokens" in (answer.error or "")


async def test_a_handshake_that_fails_falls_back_once_and_is_remembered(on_stage: Stage):
    """PR-24: headless instead, for ten minutes; asked for by settings, it is an error."""
    on_stage.program("claude", "result('headless')")
    on_stage.program("claude-agent-acp", "open('/dev/null'); sys.exit(1)")
    agent = on_stage.agent(transport="auto")
    try:
        first, second = [await agent.execute(AgentRequest("x", timeout=HANG_S)) for _ in range(2)]
    finally:
        on_stage.ground._acp_failures.clear()  # pyright: ignore[reportPrivateUsage] - other tests use the agent
    assert first.content == second.content == "headless"
    assert "ACP failed" in first.metadata["fallback"] and "fallback" not in second.metadata
    forced = await on_stage.agent(transport="acp").execute(AgentRequest("x", timeout=HANG_S))
    assert "could not be started over ACP" in (forced.error or "")


async def test_after_the_prompt_was_sent_nothing_is_repeated(on_stage: Stage):
    """PR-24: a program that dies then is an error, though it could be run headless."""
    on_stage.program("claude", "result('headless')")
    on_stage.program("claude-agent-acp", acting('say("begun"); sys.stdout.flush(); os._exit(1)'))
    answer = await on_stage.agent(transport="auto").execute(AgentRequest("x", timeout=HANG_S))
    assert answer.error is not None and answer.metadata["transport"] == "acp" and answer.content == "begun"


async def test_a_thousand_stray_lines_end_it(on_stage: Stage):
    """PR-25."""
    body = '[print("stray") for _ in range(1100)]; sys.stdout.flush(); time.sleep(600)'
    answer = await _over_acp(on_stage, body)
    assert "no messages" in (answer.error or ""), answer


async def test_cancelling_and_the_time_limit_leave_nothing(on_stage: Stage):
    """PR-18: over ACP, too."""
    body = 'subprocess.Popen(["setsid", "sleep", text]); say("begun"); time.sleep(600)'
    on_stage.program("claude-agent-acp", acting(body))
    agent, happened = on_stage.agent(transport="acp"), asyncio.Queue[AgentEvent]()

    async def run() -> None:
        async for event in agent.stream(AgentRequest("765432.1", timeout=HANG_S)):
            happened.put_nowait(event)

    task = asyncio.create_task(run())
    assert (await asyncio.wait_for(happened.get(), HANG_S)).text == "begun"
    task.cancel()
    async with asyncio.timeout(patience(2)):
        while pids_with("765432.1"):
            await asyncio.sleep(0.005)
    await asyncio.wait({task}, timeout=HANG_S)
    late = await agent.execute(AgentRequest("765432.2", timeout=3.0))
    assert late.metadata["error_type"] == "AgentTimeout" and not pids_with("765432.2")


@pytest.mark.asyncio(loop_scope="function")
async def test_a_mode_that_reads_only_refuses():
    """PR-25: and a question without an option to refuse is called off."""
    options = [("a", "allow_once"), ("r", "reject_always")]
    assert chosen_option(options, allow=False) == "r"
    assert chosen_option(options[:1], allow=False) is None


async def test_a_session_that_the_program_forgot_goes_on_as_text(on_stage: Stage):
    """PR-31: Gemini says so with an internal error; that is no reason to fail."""
    forgets = SPEAKS.replace(
        """        say("what was said before")
        send(id=message["id"], result={})
""",
        """        send(id=message["id"], error={"code": -32603, "message": "No previous sessions"})
""",
    ).replace('        say("loaded " + message["params"]["sessionId"] + " ")\n', "")
    assert forgets != SPEAKS
    first = await _over_acp(on_stage, WORKS, session_id="s-forgot")
    on_stage.program("claude-agent-acp", f"def act():\n    say(text); end('end_turn')\n{forgets}")
    history = (MemoryLog("user", "the first thing"), MemoryLog("assistant", "done"))
    second = await on_stage.agent(transport="acp").execute(
        AgentRequest(
            "more", session_id="s-forgot", native_session_id=first.metadata["native_session_id"],
            history=history, timeout=HANG_S,
        )
    )  # fmt: skip
    assert second.error is None and second.metadata["history"] == "text", second
    assert "the first thing" in second.content and second.content.endswith("more")


GREEDY = """
open("large.txt", "w").write("x" * 79 + "\\n")
open("large.txt", "a").write(("x" * 79 + "\\n") * 6000)
for number in range(1000):
    send(id=number, method="fs/read_text_file", params={"sessionId": "n-1", "path": cwd + "/large.txt"})
time.sleep(600)
"""


async def test_a_program_that_asks_and_takes_no_answer_fills_no_memory(on_stage: Stage):
    """A thousand answers of half a megabyte were held at once; it may ask for eighty thousand."""
    on_stage.program("claude-agent-acp", "import time\n" + acting(GREEDY))
    began = most = memory_mb()
    run = asyncio.ensure_future(on_stage.agent(transport="acp").execute(AgentRequest("go", timeout=12)))
    while not run.done():
        most = max(most, memory_mb())
        await asyncio.sleep(0.05)
    assert (await run).error is not None
    assert most - began < 250, f"{most - began} MB"


def memory_mb() -> int:
    """What this process holds in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") >> 20


@pytest.mark.parametrize("read", [True, False], ids=["read through us", "read in its own way"])
async def test_a_program_that_writes_over_what_its_user_saved_meanwhile_is_told_and_then_conflicts(
    read: bool, tmp_path: Path
):
    root = tmp_path / "ws"
    root.mkdir()
    (root / "a.txt").write_text("old\n")
    with Workspace(root, data_dir=tmp_path / "data") as workspace:
        branch = workspace.branch()
        stage = SimpleNamespace(branch=branch, sandbox=SimpleNamespace(root=str(root)))
        client = BranchClient(stage)  # pyright: ignore[reportArgumentType]
        if read:
            await client.read_text_file("s", f"{root}/a.txt")
        await asyncio.sleep(0.05)
        (root / "a.txt").write_text("the user's\n")
        with pytest.raises(RequestError, match="read it again"):
            await client.write_text_file("s", f"{root}/a.txt", "the program's\n")
        await client.write_text_file("s", f"{root}/a.txt", "the program's\n")  # it insists
        await client.write_text_file("s", f"{root}/a.txt", "the program's own\n")
        await client.write_text_file("s", f"{root}/new.txt", "new\n")
        with pytest.raises(LandingRefused) as caught:
            branch.land()
        assert [row["path"] for row in caught.value.refused] == ["/a.txt"]
        assert (root / "a.txt").read_text() == "the user's\n"
