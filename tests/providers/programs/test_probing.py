"""PR-6, PR-7, PR-28: what a probe of a program finds out without asking a model."""

import asyncio
import json
import time
from pathlib import Path

import pytest
from support.agent_programs import Stage, stage
from support.patience import patience
from support.trees import write_tree

from bowerbird.providers.catalogue import CATALOGUE
from bowerbird.providers.contract.types import AgentRequest
from bowerbird.providers.programs import greeting, probing
from bowerbird.providers.programs.probing import oldest_node

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_a_version_that_cannot_be_had_makes_no_agent_unusable(
    on_stage: Stage, monkeypatch: pytest.MonkeyPatch
):
    """PR-7: a hang, a failure, and rubbish."""
    monkeypatch.setattr(probing, "VERSION_S", 0.5)
    for body in ("time.sleep(600)", "sys.exit(3)", "sys.stdout.buffer.write(os.urandom(1 << 20))"):
        on_stage.program("claude", body)
        probe = await on_stage.agent().probe()
        assert probe.status == "operative" and (probe.latency_ms or 0) < patience(4000), probe
        if "urandom" not in body:
            assert "version unknown" in probe.detail and probe.version is None


async def test_a_probe_names_what_is_missing(on_stage: Stage):
    """PR-6: the program and its variable; the variable of the key."""
    on_stage.program("claude", "print('claude 9.8.7')")
    assert (await on_stage.agent().probe()).version == "9.8.7"
    keyless = await on_stage.agent(api_key=None).probe()
    assert keyless.status == "key_missing" and "ANTHROPIC_API_KEY" in keyless.detail
    directory = on_stage.place / "a-directory"
    directory.mkdir(exist_ok=True)
    gone = await on_stage.agent(command=str(directory)).probe()
    assert gone.status == "unavailable" and "CLAUDE_CODE_COMMAND" in gone.detail


async def test_every_program_is_named_whatever_became_of_it(
    on_stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """PR-8, acceptance 1, issue 16's must-show 7: missing, hanging at `--version`, printing rubbish, a directory."""
    monkeypatch.setattr(probing, "VERSION_S", 1.0)
    (tmp_path / "folder").mkdir()
    commands = {
        "missing": str(tmp_path / "nothing"),
        "hangs": str(on_stage.program("hangs", "time.sleep(600)")),
        "rubbish": str(on_stage.program("rubbish", "sys.stdout.buffer.write(os.urandom(1 << 16))")),
        "folder": str(tmp_path / "folder"),
    }
    names = [name for name, entry in CATALOGUE.items() if entry.type == "cli"]
    settings = {
        f"{how} of {name}": on_stage.agent(name, command=command)
        for name in names
        for how, command in commands.items()
    }
    began = time.monotonic()
    probes = dict(
        zip(settings, await asyncio.gather(*(agent.probe() for agent in settings.values())), strict=True)
    )
    assert time.monotonic() - began < patience(12)
    assert [probe.name for probe in probes.values()] == [name for name in names for _ in commands]
    for case, probe in probes.items():
        usable = case.split()[0] in ("hangs", "rubbish")
        assert probe.status == ("operative" if usable else "unavailable"), (case, probe)
        assert usable or "COMMAND" in probe.detail, (case, probe)


SPEAKS = """
for line in sys.stdin:
    print("a stray line")
    print(json.dumps({"jsonrpc": "2.0", "id": json.loads(line)["id"], "result": {"protocolVersion": 1}}), flush=True)
"""


async def test_a_live_probe_greets_the_program_and_looks_for_its_login(
    on_stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """PR-6: `initialize` over ACP, without a session; `auth: home` without a login file is `key_missing`."""
    monkeypatch.setattr(greeting, "GREETING_S", patience(5.0))
    on_stage.program("claude", "print('claude 9.8.7')")
    on_stage.program("claude-agent-acp", SPEAKS)
    either = on_stage.agent(transport="auto")
    assert "answers over ACP" in (await either.probe(live=True)).detail
    assert "answers over ACP" not in (await either.probe()).detail
    on_stage.program("claude-agent-acp", "sys.exit(3)")
    probe = await either.probe(live=True)
    assert probe.status == "operative" and "headless is used" in probe.detail
    only = await on_stage.agent(transport="acp").probe(live=True)
    assert only.status == "unreachable" and "ended without an answer" in only.detail, only
    monkeypatch.setenv("HOME", str(tmp_path))
    home = on_stage.agent(auth="home", api_key=None, base_url=None)
    assert (await home.probe()).status == "operative"
    missing = await home.probe(live=True)
    assert missing.status == "key_missing" and "not signed in" in missing.detail
    (on_stage.place / "data/agents/bin/claude-agent-acp").unlink()


async def test_a_program_that_commands_cannot_see_is_named(on_stage: Stage):
    """PR-3, PR-6, PR-20: a link and what it leads to, as vendors install them at home; an interpreter that is not there."""
    home = on_stage.place / "home"
    write_tree(home, {"share/2.1/claude": "#!/bin/sh\necho 2.1.0\n", "bin/.kept": ""})
    (home / "share/2.1/claude").chmod(0o755)
    link = home / "bin/claude"
    link.symlink_to("../share/2.1/claude")
    agent = on_stage.agent(command=str(link))
    probe = await agent.probe()
    assert probe.status == "unavailable", probe
    for said in (str(link), str(home / "share/2.1"), "sandbox.read_only", "agents install claude_code"):
        assert said in probe.detail
    answer = await agent.execute(AgentRequest("go"))
    assert answer.metadata["error_type"] == "AgentUnavailable", answer.error
    assert str(link) in (answer.error or "") and "sandbox.read_only" in (answer.error or "")
    on_stage.program("claude", "result('x')").write_text("#!/usr/bin/nothing-here\n")
    answer = await on_stage.agent().execute(AgentRequest("go"))
    assert answer.metadata["error_type"] == "AgentUnavailable", answer.error


async def test_the_editor_is_not_every_code(on_stage: Stage):
    """PR-3."""
    on_stage.program("code", "print('1.99.0\\n" + "a1" * 20 + "\\nx64')")
    probe = await on_stage.agent("every_code", api_key=None, base_url=None).probe()
    assert probe.status == "unavailable" and "VS Code" in probe.detail


async def test_an_old_node_is_named(on_stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """PR-28: found and needed version."""
    package = tmp_path / "node_modules/x"
    package.mkdir(parents=True)
    (package / "package.json").write_text(json.dumps({"engines": {"node": ">=22.1.0"}}))
    program = package / "x.js"
    program.write_text("#!/bin/sh\necho 1.2.3\n")
    node = tmp_path / "node"
    node.write_text("#!/bin/sh\necho v20.3.1\n")
    for each in (program, node):
        each.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert oldest_node(program) == (22, 1)
    probe = await on_stage.agent(command=str(program)).probe()
    assert probe.status == "unavailable" and "22.1" in probe.detail and "20.3.1" in probe.detail


@pytest.mark.parametrize(("tier", "said"), [("none", "sandbox"), ("copy", "needs the network for its model")])
async def test_a_probe_says_where_no_run_could_begin(tmp_path: Path, tier: str, said: str):
    """PR-6, PR-20: without a sandbox, or with one that has no way to the vendor, as a run says it."""
    async with stage(tmp_path, tier) as on_stage:
        on_stage.program("claude", "print('claude 9.8.7')")
        probe = await on_stage.agent().probe()
        answer = await on_stage.agent().execute(AgentRequest("go"))
    assert probe.status == "unavailable" and said in probe.detail, probe
    assert probe.detail in (answer.error or ""), answer.error
