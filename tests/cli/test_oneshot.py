"""One turn from the command line: output, exit codes, signals (UI-41, 56 … 61)."""

import json
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support.children import play
from support.patience import HANG_S, patience
from support.terminals import COMMAND, clean_environment


def test_standard_output_holds_only_the_answer(desk, written):
    """UI-58: no colour, no cursor codes, the rest on standard error; the user's file is untouched."""
    desk.edit(written("b.txt", "hi\n"), answer="# All *done*.")
    code, out, err = desk.run("make b")
    assert (code, out) == (0, "# All *done*.\n")
    assert "\x1b" not in err and "write_file b.txt" in err
    assert "1 file changed on the branch: bowerbird diff" in err
    assert not (desk.project / "b.txt").exists()


def test_prompt_and_input_together(desk):
    """UI-41: the prompt, then the input as an attachment; invalid UTF-8 is replaced and said."""
    desk.fake.script({"text": "ok"})
    code, _, err = desk.run("summarise", stdin=b"caf\xe9 menu")
    assert code == 0 and "not all UTF-8" in err
    sent = json.dumps(desk.fake.requests[-1]["messages"], ensure_ascii=False)
    assert "summarise" in sent and "caf\ufffd menu" in sent
    desk.fake.script({"text": "ok"})
    assert desk.run(stdin=b"only input")[0] == 0
    assert "only input" in json.dumps(desk.fake.requests[-1]["messages"])


def test_too_much_input_and_none_are_usage_errors(desk):
    assert desk.run("x", stdin=b"a" * ((1 << 20) + 1))[0] == 2
    assert desk.run(stdin=b"")[0] == 2
    assert desk.fake.request_count == 0


def test_json_is_one_object_for_done_and_failed(desk, written):
    """UI-59, acceptance 10."""
    desk.edit(written("b.txt", "hi\n"))
    code, out, _ = desk.run("make b", "--output", "json")
    done = json.loads(out)
    assert code == 0
    assert list(done) == [
        "conversation_id", "turn_id", "state", "stop_reason", "answer", "changed", "landing_id", "usage",
        "error",
    ]  # fmt: skip
    assert (done["state"], done["stop_reason"], done["answer"]) == ("done", "end_turn", "Done.")
    assert done["changed"] == [{"path": "/b.txt", "status": "created"}]
    desk.fake.script({"status": 400, "body": {"type": "error", "error": {"type": "x", "message": "no"}}})
    code, out, err = desk.run("again", "--json")
    failed = json.loads(out)
    assert code == 1 and failed["state"] == "failed" and failed["error"]["message"]
    assert f"bowerbird resume {failed['conversation_id']}" in err


def test_stream_json_is_one_event_per_line_and_ends_with_done(desk, written):
    """UI-59."""
    desk.edit(written("b.txt", "hi\n"))
    out = desk.ok("make b", "--output", "stream-json")
    events = [json.loads(line) for line in out.splitlines()]
    kinds = [event["type"] for event in events]
    assert kinds[-1] == "done" and kinds.count("done") == 1
    assert {"turn_started", "tool_call", "tool_result", "text_delta"} <= set(kinds)
    assert kinds.index("tool_call") < kinds.index("tool_result") < kinds.index("text_delta")
    cursors = [event["cursor"] for event in events]
    assert cursors == sorted(cursors)
    assert events[-1]["changed"] == 1 and events[-1]["stop_reason"] == "end_turn"
    assert events[-1]["usage"]["input_tokens"] > 0


def test_landing_by_policy_is_in_the_result(desk, written):
    """UI-50 `--land turn`."""
    desk.edit(written("b.txt", "hi\n"))
    result = json.loads(desk.ok("make b", "--land", "turn", "--json"))
    assert (desk.project / "b.txt").read_text() == "hi\n"
    assert result["landing_id"].startswith("l_")


def test_a_call_that_needs_approval_is_denied_where_nobody_sits(desk, written):
    """UI-56, acceptance 9: no traceback, the reason on standard error, exit 4."""
    desk.edit(written("b.txt", "hi\n"), answer="I could not.")
    code, out, err = desk.run("make b", "--approval", stdin=b"hi")
    assert code == 4 and out == "I could not.\n"
    assert "denied, because nobody could be asked: write_file" in err and "Traceback" not in err
    told = json.dumps(desk.fake.requests[-1]["messages"])
    assert "denied" in told.lower()


def test_yes_approves_within_the_policy(desk, written):
    """UI-56: what policy denies stays denied."""
    desk.edit(written("b.txt", "hi\n"))
    assert desk.run("make b", "--approval", "--yes")[0] == 0
    (desk.home / ".bowerbird").mkdir(exist_ok=True)
    (desk.home / ".bowerbird/config.yaml").write_text("approval: {rules: [deny write_file]}\n")
    desk.stop_server()
    desk.edit(written("c.txt", "hi\n"))
    code, _, err = desk.run("make c", "--approval", "--yes")
    assert code == 0 and "⊘ write_file" in err


def test_what_a_rule_denies_is_not_said_to_want_a_person(desk, written):
    """UI-56: a terminal or --yes would not help, and nobody is missing."""
    (desk.home / ".bowerbird").mkdir(exist_ok=True)
    (desk.home / ".bowerbird/config.yaml").write_text("approval: {rules: [deny write_file]}\n")
    desk.stop_server()
    desk.edit(written("c.txt", "hi\n"))
    code, _, err = desk.run("make c")
    assert code == 0 and "denied: rule write_file denies this call" in err and "nobody" not in err


def test_what_subagents_ask_is_answered_at_the_command_line(desk, written):
    """UI-56, DE-3: their questions are asked where the session is watched."""
    (desk.home / ".bowerbird").mkdir(exist_ok=True)
    (desk.home / ".bowerbird/config.yaml").write_text("approval: {rules: [ask write_file]}\n")
    spawn = {"tools": [{"name": "spawn_subagents", "input": {"tasks": ["paint it"]}}]}
    steps = {
        "make": [spawn, {"text": "made"}],
        "paint": [{"tools": [written("b.txt", "hi\n")]}, {"text": "ok"}],
    }
    play(desk.fake, steps)
    out = desk.ok("make it", "--yes", "--output", "stream-json")
    events = [json.loads(line) for line in out.splitlines()]
    (request,) = [event for event in events if event["type"] == "tool_approval_request"]
    assert request["subagent_id"].endswith(".sub0")
    (result,) = [event for event in events if event["type"] == "tool_approval_result"]
    assert (result["request_id"], result["decision"]) == (request["request_id"], "approved")
    assert [event["status"] for event in events if event["type"] == "subagent_end"] == ["finished"]
    session = request["subagent_id"].removesuffix(".sub0")
    assert session in desk.ok("show", session[:6]), "UI-42: its subagents, whose ids begin so, are not meant"


def test_the_stream_has_the_lines_that_the_socket_sends(desk, written):
    """UI-59: one mapping; ids of messages are those of their records."""
    desk.edit(written("b.txt", "hi\n"), answer="Said.")
    events = [json.loads(line) for line in desk.ok("make b", "--output", "stream-json").splitlines()]
    said = [event for event in events if event["type"] == "text_delta"]
    (end,) = [e for e in events if e["type"] == "message_end" and e["message_id"] == said[-1]["message_id"]]
    assert end["message_id"] == f"msg_{end['cursor']}"


def test_limits_end_with_5(desk, written):
    """UI-60."""
    desk.fake.script({"tools": [written("b.txt", "hi\n")]})
    code, _, err = desk.run("-q", "loop", "--max-turns", "2")
    assert code == 5
    why, way_on = err.splitlines()
    assert why == "stopped: every model call that it may make is made (--max-turns, agent.max_turns)"
    assert way_on.startswith("continue with: bowerbird run --resume="), "it ended without a word"
    code, _, err = desk.run("-q", "loop", "--max-cost", "0.000001")
    assert code == 5 and err.startswith("stopped: this turn may spend $0.000001; $0 is spent, and"), err


def test_the_time_limit_of_a_run_ends_with_124_and_can_be_resumed(desk):
    """UI-60."""
    desk.fake.script({"hang": True})
    code, out, err = desk.run("wait", "--timeout", "1.5")
    assert code == 124 and out == "" and "bowerbird resume" in err
    desk.fake.script({"text": "Better late."})
    assert desk.ok("resume") == "Better late.\n"


def test_no_model_key_is_one_line_with_the_ways_out(here):
    """UI-64."""
    del here.environment["ANTHROPIC_API_KEY"]
    code, out, err = here.run("hi")
    assert code == 78 and out == ""
    (line,) = err.splitlines()
    for part in ("ANTHROPIC_API_KEY", "bowerbird model fetch [--small]", "config check"):
        assert part in line


def test_invalid_settings_start_nothing(here):
    """CF-12, UI-60."""
    code, _, err = here.run("hi", env=here.environment | {"BASH_TIMEOUT": "abc", "COMPACT_THRESHOLD": "7"})
    assert code == 78 and "tools.bash_timeout" in err and "agent.compact_threshold" in err
    assert not (here.home / ".bowerbird").exists() and here.fake.request_count == 0


def test_usage_errors_are_2_with_the_nearest_name(here):
    """UI-50."""
    for arguments, part in (
        (["run", "--modle", "x", "hi"], "--model"), (["--output", "xml", "hi"], "stream-json"),
        (["hi", "--max-cost", "0"], "more than 0"), (["hi", "-w", "/nonexistent"], "does not exist"),
        (["hi", "-p", "nope"], "coding"), (["hi", "-m", "nonsense:x"], "anthropic"),
    ):  # fmt: skip
        code, _, err = here.run(*arguments)
        assert code in (2, 78) and part in err, (arguments, err)
    assert here.fake.request_count == 0


def test_directories_nobody_means(here):
    """UI-69: without a terminal exit 2; home is accepted when it is named, / never."""
    here.fake.script({"text": "ok"})
    assert here.run("hi", cwd=here.home)[0] == 2
    assert here.run("hi", "-w", "/")[0] == 2
    assert here.run("hi", cwd=here.home.parent)[0] == 2  # holds the data directory
    assert here.fake.request_count == 0
    assert here.run("hi", "-w", str(here.home))[0] == 0


def test_kill_9_in_a_turn_then_resume_repeats_no_step(here, written):
    """Acceptance 12."""
    here.fake.script({"tools": [written("b.txt", "hi\n")]}, {"hang": True})
    process = here.start("make b")
    here.fake.wait_requests(2)
    process.kill()
    process.communicate()
    here.fake.script({"text": "Finished."})
    code, out, err = here.run("resume")
    assert (code, out) == (0, "Finished.\n"), err
    assert json.dumps(here.fake.requests[-1]["messages"]).count('"tool_use"') == 1
    assert "+hi" in here.ok("diff")


def test_a_turn_whose_process_was_killed_is_not_listed_as_running(here):
    """UI-42: by no command after it, whoever looks first."""
    here.fake.script({"hang": True})
    process = here.start("make b")
    here.fake.wait_requests(1)
    assert "running" in here.ok("sessions")
    process.kill()
    process.communicate()
    listed = here.ok("sessions")
    assert "unfinished" in listed and "running" not in listed
    assert "unfinished" in here.ok("show")


def test_sigterm_stops_the_turn_and_leaves_it_resumable(desk):
    """UI-61: exit 143, the provider's stream closed, no process left."""
    desk.fake.script({"text": "word " * 500, "deltas": 500, "gap_s": 0.05})
    process = desk.start("speak on")
    desk.fake.wait_requests(1)
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=patience(18))
    assert process.returncode == 143 and out == b"" and b"Traceback" not in err
    desk.fake.wait_closed(1)
    desk.fake.script({"text": "Again."})
    assert desk.ok("resume") == "Again.\n"


def test_ctrl_c_ends_with_130(desk):
    desk.fake.script({"hang": True})
    process = desk.start("speak on")
    desk.fake.wait_requests(1)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=patience(18))
    assert process.returncode == 130 and b"Traceback" not in err


@pytest.mark.parametrize(
    "module", ["bowerbird.cli.terminal.exits", "bowerbird.cli.main", "bowerbird.cli.parser"]
)
def test_ctrl_c_while_the_command_is_imported_ends_without_a_traceback(tmp_path, module):
    """UI-61, UI-63: somebody saw a slip in the line just typed."""
    command = [sys.executable, "-X", "importtime", "-m", "bowerbird", "hi"]
    environment = clean_environment(tmp_path)
    with subprocess.Popen(command, stderr=subprocess.PIPE, cwd=tmp_path, text=True, env=environment) as early:
        assert early.stderr is not None
        said = next(line for line in early.stderr if line.endswith(f" {module}\n"))
        early.send_signal(signal.SIGINT)
        said += early.stderr.read()
    assert early.returncode in (130, -signal.SIGINT) and "Traceback" not in said, said


def test_a_closed_pipe_ends_quietly(desk):
    """UI-58."""
    desk.fake.script({"text": "word " * 2000, "deltas": 400, "gap_s": 0.005})
    process = desk.start("speak on", "--output", "stream-json")
    assert process.stdout is not None
    process.stdout.readline()
    process.stdout.close()
    process.stdout = None
    _, err = process.communicate(timeout=HANG_S)
    assert process.returncode == 141 and b"Traceback" not in err and b"BrokenPipe" not in err


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["diff", "--help"],
        ["--version"],
        ["config", "show", "--all"],
        ["diff", "--no-such"],
        ["--env-file"],
    ],
)
def test_a_reader_that_was_never_there_is_a_closed_pipe_too(tmp_path, arguments):
    """UI-58: `bowerbird --help | head -c 0` said "failed" by its code."""
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "wb") as nobody:
        done = subprocess.run(
            [*COMMAND, *arguments], stdout=nobody, stderr=nobody, cwd=tmp_path,
            env=clean_environment(tmp_path), check=False,
        )  # fmt: skip
    assert done.returncode == 141


def test_a_full_disk_below_the_log_ends_no_turn(desk, written):
    """UI-58: `2>> log` on a full disk left the turn unfinished; what cannot be said is left out."""
    desk.edit(written("b.txt", "hi\n"), answer="Made.")
    command = [*COMMAND, "make b"]
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=full, cwd=desk.project,
            env=desk.environment, check=False,
        )  # fmt: skip
        refused = subprocess.run(
            [*COMMAND, "diff", "--no-such"], stderr=full, cwd=desk.project, env=desk.environment, check=False
        )
    assert (done.returncode, done.stdout) == (0, b"Made.\n")
    assert "A  b.txt" in desk.ok("diff", "--stat")
    assert refused.returncode == 2


def test_no_key_and_no_password_in_any_output(here):
    """CF acceptance 8."""
    here.fake.script({"text": "ok"})
    shown = here.run("hi", "--output", "stream-json")
    text = "".join(shown[1:]) + here.ok("config", "show", "--all", "--json") + here.run("doctor", "--json")[1]
    assert "planted" not in text


def test_unknown_and_ambiguous_sessions_are_usage_errors(desk):
    """UI-42."""
    assert desk.run("show", "abcd")[0] == 2
    assert desk.run("show", "ab")[0] == 2
    assert desk.run("diff")[0] == 2


def _processor_s(command: list[str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def test_help_and_version_are_quick_and_import_neither_database_nor_models():
    """UI-51, acceptance 15."""
    script = (
        "import sys; sys.argv=['bowerbird','--help']\n"
        "from bowerbird.cli.main import run_command; run_command(['--help'])\n"
        "bad={'sqlalchemy','anthropic','openai','pydantic','rich','prompt_toolkit','pygit2','httpx'}\n"
        "sys.stderr.write(','.join(bad & {m.split('.')[0] for m in sys.modules}))"
    )
    shown = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert shown.stderr == "" and "Commands:" in shown.stdout
    # Processor time, beside what a command of Python's own library costs on this machine in the same minutes.
    known = min(_processor_s([sys.executable, "-c", "import argparse, asyncio, json"]) for _ in range(5))
    assert min(_processor_s([*COMMAND, "--help"]) for _ in range(5)) < 2 * known
    version = subprocess.run([*COMMAND, "--version"], capture_output=True, text=True, check=True).stdout
    assert version.startswith("bowerbird 0.")


def test_a_data_directory_that_cannot_be_made_is_named(here):
    """UI-66."""
    code, _, err = here.run("hi", "--data-dir", "/proc/nope")
    assert code == 1 and "/proc/nope" in err and "--data-dir" in err
    assert os.path.sep in err


def test_teammates_are_offered_only_where_they_are_asked_for(desk):
    """UI-50, DE-46."""
    desk.fake.script({"text": "ok"})
    desk.ok("run", "alone")
    desk.ok("run", "--teams", "with others")
    offered = [{tool["name"] for tool in asked["tools"]} for asked in desk.fake.requests]
    assert "spawn_teammate" not in offered[0] and "spawn_teammate" in offered[1]
