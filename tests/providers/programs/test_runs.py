"""PR-15 … PR-20 and the chapter's acceptance 3 … 8, 12: fake programs in the sandbox of a branch."""

import asyncio
import hashlib
import json
import time
from pathlib import Path

import msgspec
import pytest
from support.abuse import pids_with
from support.agent_programs import FILES, KEY, Stage, stage
from support.patience import HANG_S, patience

from bowerbird.config.sections.agent import ProvidersSection
from bowerbird.core.errors import InvalidArgument
from bowerbird.providers.choosing import offered, settings_of
from bowerbird.providers.contract.types import (
    AgentCapabilities,
    AgentEvent,
    AgentRequest,
    BranchRef,
    MemoryLog,
)
from bowerbird.providers.programs.agent import program_agent
from bowerbird.sessions.provider_agents.asking import event_row

pytestmark = pytest.mark.asyncio(loop_scope="module")

WRITES = """
open("made.txt", "w").write("a\\nb\\n"); os.remove("old.txt")
outside = {}
for path in sys.stdin.read().split():
    try:
        open(path, "w").write("x"); outside[path] = "written"
    except OSError as error:
        outside[path] = type(error).__name__
result(json.dumps(outside), usage={"input_tokens": 3, "output_tokens": 4}, total_cost_usd=0.5)
"""


async def test_what_it_changes_is_on_the_branch_lands_and_is_undone(on_stage: Stage):
    """PR-20, acceptance 8: the workspace keeps its bytes; nothing outside branch and private home can be written."""
    real = on_stage.place / "outside.txt"
    answer = await on_stage.ask(WRITES, f"{real} /etc/x /usr/x", request={"id": "mine"})
    assert answer.success, answer.error
    written = [path for path, how in json.loads(answer.content).items() if how == "written"]
    assert set(written) <= {str(real)} and not real.exists(), "at most in the sandbox's own /tmp"
    assert answer.changes is not None
    assert (answer.changes.written, answer.changes.deleted) == (("made.txt",), ("old.txt",))
    assert (answer.changes.added_lines, answer.changes.removed_lines) == (2, 2)
    assert (answer.tokens_used, answer.cost, answer.request_id) == (7, 0.5, "mine")
    assert {p.name: p.read_text() for p in on_stage.root.iterdir()} == FILES
    branch = on_stage.workspace.open(answer.metadata["branch_id"])
    landing = branch.land()
    assert (on_stage.root / "made.txt").read_text() == "a\nb\n" and not (on_stage.root / "old.txt").exists()
    landing.undo()
    assert {p.name: p.read_text() for p in on_stage.root.iterdir()} == FILES


async def test_half_a_character_is_said_as_a_whole_one(on_stage: Stage):
    """PR-19, PR-26: JSON can name half of a surrogate pair, a file name can be no UTF-8; both can be shown and kept."""
    halves = r"""
open(b"b\xff.txt", "w").write("x")
print(r'{"type": "assistant", "message": {"content": [{"type": "text", "text": "a\ud800b"}]}}')
print(r'{"type": "result", "is_error": false, "result": "x\ud800 \ud83d\ude00 \\ud800", "session_id": "s\udfff"}')
"""
    on_stage.program("claude", halves)
    rows = [event_row(event) async for event in on_stage.agent().stream(AgentRequest("go"))]
    assert b"\\xff" in msgspec.json.encode(rows), "every door can send them"
    assert rows[-1]["response"]["content"] == "x\ufffd \U0001f600 \\ud800"


@pytest.mark.parametrize(
    ("body", "success", "says"),
    [
        ('print(json.dumps({"type":"result","subtype":"success","is_error":True,"result":"broke"})); sys.exit(1)',
         False, "broke"),
        ("", False, "without saying that it finished"),
        ('result("done", permission_denials=[{"tool_name": "WebFetch"}])', True, "WebFetch"),
        ('result("done"); sys.exit(3)', False, "exit code 3"),
        ('print("no json"); print("[1, 2"); print("{" * 5000); result("fine after rubbish")', True, "rubbish"),
        ('sys.stderr.write("Invalid API key · Please run /login"); sys.exit(1)', False, "/login"),
    ],
)  # fmt: skip
async def test_success_is_the_end_marker_and_exit_code_0(
    on_stage: Stage, body: str, success: bool, says: str
):
    """PR-19, PR-23, acceptance 3: a marker of failure, none at all, refused tools, a bad exit code, rubbish."""
    answer = await on_stage.ask(body)
    assert answer.success is success
    assert says in (answer.error or answer.content), answer
    if "/login" in says:
        assert answer.metadata["error_type"] == "AgentAuthError"
    if "WebFetch" in says:
        assert answer.metadata["denied"] == ["WebFetch"]


PROMPTS = ["--version", "-", "/plan x", "'\"$(id)`\\\n\n--help\n", "ü" * 75_000]


async def test_a_prompt_arrives_unchanged_on_standard_input(on_stage: Stage):
    """PR-16, acceptance 7."""
    echo = "import hashlib; t = sys.stdin.buffer.read(); result(hashlib.sha256(t).hexdigest() + str(sys.argv[1:]))"
    for prompt in PROMPTS:
        answer = await on_stage.ask(echo, prompt)
        assert answer.content.startswith(hashlib.sha256(prompt.encode()).hexdigest()), prompt[:20]
        assert prompt[:50] not in answer.content or prompt == "-"


async def test_a_prompt_that_goes_as_an_argument_is_no_option(on_stage: Stage):
    """PR-16: a line break stands before a dash; what is too long for an argument is refused, saying so."""
    on_stage.program("hermes", "print(json.dumps(sys.argv))")
    hermes = on_stage.agent("hermes", model="m")
    answer = await hermes.execute(AgentRequest("--yolo"))
    assert '"-z", "\\n--yolo"' in answer.content, answer
    long = await hermes.execute(AgentRequest("x" * 140_000))
    assert long.metadata["error_type"] == "InvalidArgument" and "140,000 bytes" in (long.error or "")


async def test_the_environment_is_an_allow_list_and_the_home_private(
    on_stage: Stage, monkeypatch: pytest.MonkeyPatch
):
    """PR-15: nothing of the server's own variables; a home of mode 0700 that is no temporary directory."""
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", KEY)
    monkeypatch.setenv("SOME_VARIABLE", "x")
    told = "h = os.environ['HOME']; result(json.dumps([sorted(os.environ), oct(os.stat(h).st_mode & 0o777), h, os.getcwd()]))"
    answer = await on_stage.ask(told)
    names, mode, home, cwd = json.loads(answer.content)
    assert "SOME_VARIABLE" not in names and "AWS_SECRET_ACCESS_KEY" not in names
    assert {"HOME", "PATH", "TERM", "NO_COLOR", "ANTHROPIC_API_KEY"} <= set(names)
    assert mode == "0o700" and not home.startswith("/tmp") and cwd == str(on_stage.root)


async def test_a_flood_on_stderr_and_then_an_answer(on_stage: Stage):
    """PR-17, acceptance 4: 50 MB are drained and cut; the answer counts."""
    body = "[sys.stderr.write('e' * 1_000_000) for _ in range(50)]; result('after the flood')"
    answer = await on_stage.ask(body)
    assert answer.content == "after the flood", answer.error


@pytest.mark.parametrize(
    ("body", "says"),
    [("[print('x' * 1000) for _ in range(20_000)]", "more than 8,388,608 bytes"),
     ("print('x' * 6_000_000)", "a line of more than 4,194,304 bytes")],
)  # fmt: skip
async def test_too_much_output_ends_it(on_stage: Stage, body: str, says: str):
    """PR-17: 8 MiB in all, 4 MiB in a line."""
    answer = await on_stage.ask(body + "; time.sleep(600)", request={"timeout": HANG_S})
    assert says in (answer.error or ""), answer


DAEMON = """
word = sys.stdin.read()
subprocess.Popen(["setsid", "sleep", word]); subprocess.Popen(["sleep", word])
print("ready", flush=True); time.sleep(600)
"""


def _word() -> str:
    return f"{300_000 + time.monotonic_ns() % 10**9}"


async def test_after_a_timeout_no_process_of_it_lives(on_stage: Stage):
    """PR-18, acceptance 5: a daemon with a session of its own, and a program that hangs."""
    word = _word()
    answer = await on_stage.ask(DAEMON, word, request={"timeout": 3.0})
    assert answer.metadata["error_type"] == "AgentTimeout" and "within 3 s" in (answer.error or "")
    assert not pids_with(word)


async def test_a_silent_program_ends_after_the_idle_timeout(on_stage: Stage):
    """PR-17, acceptance 6: the error names it; it takes no longer than that and a second."""
    answer = await on_stage.ask("time.sleep(600)", idle_timeout=1.0, request={"timeout": HANG_S})
    assert "idle_timeout" in (answer.error or "") and answer.error.startswith("claude_code"), answer
    assert answer.execution_time < patience(4)


async def test_cancelling_kills_the_whole_tree_and_keeps_what_it_changed(on_stage: Stage):
    """PR-18, acceptance 5: SIGKILL at once; the branch holds what was done until then."""
    word, happened = _word(), asyncio.Queue[AgentEvent]()
    on_stage.program("claude", "open('half.txt', 'w').write('half')\n" + DAEMON.replace(
        'print("ready"', 'print(json.dumps({"type":"assistant","message":{"content":[{"type":"text","text":"hi"}]}})'))  # fmt: skip
    branch = on_stage.workspace.branch()

    async def run() -> None:
        async for event in on_stage.agent().stream(AgentRequest(word, branch=BranchRef(branch.id))):
            happened.put_nowait(event)

    task = asyncio.create_task(run())
    assert (await asyncio.wait_for(happened.get(), HANG_S)).text == "hi"
    task.cancel()
    started = time.monotonic()
    while pids_with(word):
        await asyncio.sleep(0.005)
        assert time.monotonic() - started < patience(2)
    await asyncio.wait({task}, timeout=HANG_S)
    assert branch.changes().written == ("/half.txt",)


async def test_a_missing_program_is_named_by_probe_and_run(on_stage: Stage):
    """PR-3, acceptance 12: another one on the PATH does not take its place."""
    on_stage.program("opencode", 'print("1.2.3")')
    here = on_stage.agent("opencode", api_key=None, base_url=None)
    assert (await here.probe()).version == "1.2.3"
    gone = on_stage.agent("opencode", api_key=None, base_url=None, command="/nowhere/opencode")
    probe, answer = await gone.probe(), await gone.execute(AgentRequest("x"))
    assert (
        probe.status == "unavailable"
        and "/nowhere/opencode" in probe.detail
        and "OPENCODE_COMMAND" in probe.detail
    )
    assert answer.metadata["error_type"] == "AgentUnavailable" and "/nowhere/opencode" in (answer.error or "")


async def test_a_missing_key_and_a_missing_capability_start_nothing(on_stage: Stage):
    """PR-12, PR-14, PR-22: before a branch is made."""
    before = len(on_stage.workspace.branches())
    keyless = await on_stage.agent(api_key=None).execute(AgentRequest("x"))
    assert keyless.metadata["error_type"] == "AgentAuthError" and "ANTHROPIC_API_KEY" in (keyless.error or "")
    asked = AgentRequest("x", capabilities=(AgentCapabilities.BATCH,))
    assert (await on_stage.agent().execute(asked)).error == "claude_code does not support batch"
    with pytest.raises(InvalidArgument):
        await on_stage.agent().execute(AgentRequest(" \n"))
    assert len(on_stage.workspace.branches()) == before


async def test_a_session_goes_on_with_its_home_on_another_branch(on_stage: Stage):
    """PR-15, PR-31: the private home comes along; where it is gone, what was said before goes as text."""
    body = """
note = os.path.join(os.environ["CLAUDE_CONFIG_DIR"], "note")
seen = open(note).read() if os.path.exists(note) else "nothing"
os.makedirs(os.path.dirname(note), exist_ok=True); open(note, "w").write(sys.argv[-1])
result(seen + " " + " ".join(sys.argv[-2:]) + " " + sys.stdin.read())
"""
    first = await on_stage.ask(body, "one", request={"session_id": "s-9"})
    assert first.content.startswith("nothing --session-id") and first.metadata["native_session_id"] == "s-1"
    again = {"session_id": "s-9", "native_session_id": "s-1"}
    second = await on_stage.ask(body, "two", request=again)
    assert second.content.endswith("--resume s-1 two") and not second.content.startswith("nothing")
    assert second.metadata["branch_id"] != first.metadata["branch_id"]
    lost = {"session_id": "s-other", "native_session_id": "s-1", "history": (MemoryLog("user", "before"),)}
    third = await on_stage.ask(body, "three", request=lost)
    assert third.content.startswith("nothing --session-id") and "[user] before" in third.content
    assert third.metadata["history"] == "text"


async def test_four_run_at_once_and_waiting_counts(on_stage: Stage):
    """PR-17: a fifth waits, and its waiting is part of its time."""
    on_stage.program("claude", "subprocess.run(['sh', '-c', 'sleep 600; : BOWERBIRD_FOUR'])")
    agent = on_stage.agent()
    runs = [asyncio.create_task(agent.execute(AgentRequest("x", timeout=HANG_S))) for _ in range(4)]
    while len(pids_with("BOWERBIRD_FOUR")) < 4:
        await asyncio.sleep(0.02)
    late = await agent.execute(AgentRequest("x", timeout=0.3))
    assert late.metadata["error_type"] == "AgentTimeout" and "4 agents run at once" in (late.error or "")
    for run in runs:
        run.cancel()
    await asyncio.wait(runs)


async def test_the_copy_tier_runs_what_needs_no_network_and_refuses_the_rest(tmp_path):
    """PR-18, PR-20: the reason is said; what runs is swept like in the overlay tier."""
    async with stage(tmp_path, "copy") as copy:
        refused = await copy.ask("result('x')")
        assert refused.metadata["error_type"] == "AgentUnavailable" and "tier copy" in (refused.error or "")
        word = _word()
        copy.program(
            "coder",
            f"subprocess.Popen(['setsid', 'sleep', '{word}']); open('a', 'w').write('1'); print('done')",
        )
        agent = copy.agent("every_code", api_key=None, base_url=None)
        answer = await agent.execute(AgentRequest("x"))
        assert (answer.content, answer.error) == ("done", None)
        assert answer.changes is not None and answer.changes.written == ("a",)
        assert not pids_with(word)


async def test_login_files_are_copied_into_a_new_home_and_that_is_said(
    on_stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """PR-22: `auth: home` copies the named files and no other; probe and run say so; the user's stay as they are."""
    mine = tmp_path / ".claude"
    mine.mkdir()
    (mine / ".credentials.json").write_text("a login")
    (mine / "history.jsonl").write_text("private")
    monkeypatch.setenv("HOME", str(tmp_path))
    looks = (
        "h = os.environ['HOME']; f = h + '/.claude/.credentials.json'; said = open(f).read(); "
        "open(f, 'w').write('renewed'); "
        "result(json.dumps([said, oct(os.stat(f).st_mode & 0o777), sorted(os.listdir(h + '/.claude'))]))"
    )
    home = {"auth": "home", "api_key": None, "base_url": None}
    on_stage.program("claude", looks)
    agent = on_stage.agent(**home)
    assert "login files" in (await agent.probe()).detail
    answer = await agent.execute(AgentRequest("go", session_id="at-home", max_tokens=5, max_cost=1.0))
    assert answer.success, answer.error
    assert json.loads(answer.content) == ["a login", "0o600", [".credentials.json"]]
    assert answer.metadata["login_files"] == [".claude/.credentials.json"]
    assert answer.metadata["ignored"] == ["max_tokens", "max_cost"], "no relay holds them"
    assert (mine / ".credentials.json").read_text() == "a login"
    again = await agent.execute(AgentRequest("go", session_id="at-home"))
    assert json.loads(again.content)[0] == "renewed", "the session's own home goes on"


async def test_a_program_of_ones_own_is_an_agent(on_stage: Stage):
    """PR-1: named by settings alone; its key stays outside, and what its variables name is put in."""
    body = "t = sys.stdin.read(); open('own.txt', 'w').write(t); print('mine', os.environ['KEY'], os.environ['AT'])"
    command = on_stage.program("my-agent", body)
    section = ProvidersSection.model_validate({
        "mine": {"command": f"{command} --quiet", "api_key": KEY, "base_url": "http://127.0.0.1:9/v1",
                 "env": {"KEY": "{token}", "AT": "{url}"}},
    })  # fmt: skip
    (entry,) = [each for each in offered(section) if each.name == "mine"]
    agent = program_agent(entry, settings_of(entry, section), on_stage.ground)
    probe = await agent.probe()
    assert (entry.type, probe.status) == ("cli", "operative"), probe
    answer = await agent.execute(AgentRequest("do it"))
    assert answer.success, answer.error
    said = answer.content.split()
    assert said[0] == "mine" and said[1].startswith("relay-") and said[2].startswith("http://127.0.0.1:")
    assert answer.changes is not None and answer.changes.written == ("own.txt",)
    gone = ProvidersSection.model_validate({"mine": {"command": "/nowhere/agent"}})
    missing = await program_agent(entry, settings_of(entry, gone), on_stage.ground).probe()
    assert missing.status == "unavailable" and "providers.mine.command" in missing.detail
