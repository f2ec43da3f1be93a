"""PR-6, PR-7, PR-28: what a probe of a program finds out without asking a model."""

import json
from pathlib import Path

import pytest
from support.agent_programs import Stage
from support.patience import patience
from support.trees import write_tree

from bowerbird.providers.contract.types import AgentRequest
from bowerbird.providers.programs import probing
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
