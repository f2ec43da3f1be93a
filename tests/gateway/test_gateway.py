"""The host gateway as a process, asked over its socket (AS-48 … AS-56, acceptance 12, 13)."""

import asyncio
import json
import socket
import stat
import subprocess
import time

import pytest
from support.gateways import OTHER, TOKEN, Running, is_alive
from support.patience import HANG_S
from support.terminals import COMMAND, clean_environment


def test_a_command_runs_and_says_how_it_ended(gateway):
    """AS-52."""
    answer = gateway.run("sh", "-c", "echo out; echo err >&2; exit 3")
    assert (answer["stdout"], answer["stderr"], answer["returncode"]) == ("out\n", "err\n", 3)
    assert not answer["truncated"] and not answer["timed_out"] and answer["duration"] >= 0
    assert gateway.run("cat", stdin="given")["stdout"] == "given"
    assert gateway.run("cat")["stdout"] == ""  # its input is closed


def test_health_tells_a_bridge_its_commands(gateway):
    """AS-56."""
    assert gateway.ask(b"", token=None, path="/health", method="GET") == (200, {"status": "ok"})
    status, answer = gateway.ask(b"", path="/health", method="GET")
    assert status == 200 and answer["commands"]["sh"] is True
    assert answer["commands"]["no-such-program"] is False
    assert gateway.ask(b"", token="wrong", path="/health", method="GET")[0] == 401


def test_what_is_not_installed_ends_like_in_a_shell(gateway):
    """AS-49."""
    answer = gateway.run("no-such-program")
    assert answer["returncode"] == 127 and "not installed" in answer["stderr"]


def request(**more):
    return {"bridge": "tools", "cmd": ["echo"], **more}


@pytest.mark.parametrize(
    ("body", "status"),
    [
        pytest.param(request(cmd=["/bin/echo"]), 403, id="a-path"),
        pytest.param(request(cmd=["./echo"]), 403, id="a-path-here"),
        pytest.param(request(cmd=["git"]), 403, id="another-command"),
        pytest.param(request(bridge="other"), 403, id="another-bridge"),
        pytest.param(request(bridge="nobody"), 403, id="no-bridge"),
        pytest.param(request(cmd="echo"), 400, id="cmd-is-text"),
        pytest.param(request(cmd=[1]), 400, id="cmd-of-numbers"),
        pytest.param(request(cmd=[]), 400, id="cmd-is-empty"),
        pytest.param(request(cmd=["echo", "a\0b"]), 400, id="nul"),
        pytest.param(request(cwd=7), 400, id="cwd-is-a-number"),
        pytest.param(request(cwd="allowed"), 400, id="cwd-is-relative"),
        pytest.param(request(stdin=["x"]), 400, id="stdin-is-a-list"),
        pytest.param(request(stream="yes"), 400, id="stream-is-text"),
        pytest.param(request(timeout=True), 400, id="timeout-is-true"),
        pytest.param(request(timeout="5"), 400, id="timeout-is-text"),
        pytest.param({"cmd": ["echo"]}, 400, id="bridge-is-missing"),
        pytest.param({"bridge": "tools"}, 400, id="cmd-is-missing"),
        pytest.param(["echo"], 400, id="a-list"),
        pytest.param(b"", 400, id="nothing"),
        pytest.param(b'{"bridge":"tools","cmd":["echo"],"timeout":NaN}', 400, id="nan"),
        pytest.param(b'{"bridge":"tools","cmd":["echo"],"timeout":1e999}', 400, id="infinite"),
        pytest.param(b"\xff\xfe{}", 400, id="no-utf-8"),
        pytest.param(b"[" * 100_000, 400, id="deep"),
        pytest.param(b'{"a":"' + b"x" * (1 << 20) + b'"}', 413, id="too-large"),
    ],
)
def test_a_bad_request_is_told_why_in_json(gateway, body, status):
    """AS-49, AS-55."""
    got, answer = gateway.ask(body)
    assert got == status and set(answer) == {"error"} and answer["error"]
    assert TOKEN not in answer["error"]


def test_tokens_open_their_own_bridge_only(gateway):
    """AS-55, acceptance 13."""
    assert gateway.ask(request(), token=None)[0] == 401
    assert gateway.ask(request(), token="x" * 24)[0] == 401
    assert gateway.ask(request(), token=OTHER)[0] == 403
    assert gateway.ask({"bridge": "other", "cmd": ["echo", "hi"]}, token=OTHER)[1]["stdout"] == "hi\n"


def test_a_command_line_is_allowed_as_it_is_written_and_no_other(gateway):
    """A name alone takes any arguments, so that a program that can run others runs all of them."""
    asked = [["printf", "a b"], ["printf", "c"], ["printf"], ["printf", "a", "b"], ["printf", "a b", "c"]]
    answers = [gateway.ask({"bridge": "other", "cmd": cmd}, token=OTHER) for cmd in asked]
    assert [status for status, _ in answers] == [200, 200, 403, 403, 403]
    assert answers[0][1]["stdout"] == "a b" and "printf 'a b', printf c" in answers[2][1]["error"]


def test_other_routes_and_methods_are_answered_in_json(gateway):
    """AS-55."""
    assert gateway.ask(request(), path="/nowhere")[0] == 404
    status, answer = gateway.ask(b"", method="GET")
    assert status == 405 and answer["error"]


def raw(gateway: Running, text: bytes) -> bytes:
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(HANG_S)
        client.connect(str(gateway.socket))
        client.sendall(text)
        answer = b""
        while b"}" not in answer and (more := client.recv(65_536)):
            answer += more
        return answer


def test_a_slow_body_and_a_strange_header_are_answered(gateway):
    """AS-55: 408 after ten seconds, 401 for a header that is no text."""
    head = b"POST /execute HTTP/1.1\r\nHost: g\r\nContent-Length: 100\r\nAuthorization: Bearer "
    strange = raw(gateway, head + b"\xff\xfe\xe9\r\n\r\n")
    assert b" 401 " in strange.partition(b"\r\n")[0] and b'{"error"' in strange
    began = time.monotonic()
    slow = raw(gateway, head + TOKEN.encode() + b'\r\n\r\n{"bridge"')
    assert b" 408 " in slow.partition(b"\r\n")[0] and b'{"error"' in slow
    assert time.monotonic() - began > 5


def test_a_command_runs_in_allowed_directories_only(gateway, place):
    """AS-50: what leads out of them does not count as inside."""
    allowed = place / "allowed"
    assert gateway.run("pwd")["stdout"].strip() == str(allowed)
    assert gateway.run("pwd", cwd=str(allowed / "below"))["stdout"].strip() == str(allowed / "below")
    for outside in (place / "outside", allowed / "leads_out", allowed / ".." / "outside", "/"):
        assert gateway.ask(request(cwd=str(outside)))[0] == 403, outside
    assert gateway.ask(request(cwd=str(allowed / "missing")))[0] == 400
    status, answer = gateway.ask({"bridge": "other", "cmd": ["echo"], "cwd": str(allowed)}, token=OTHER)
    assert status == 403 and "allows no cwd" in answer["error"]


def test_the_environment_is_a_short_list_without_tokens(gateway):
    """AS-51."""
    names = dict(line.partition("=")[::2] for line in gateway.run("env")["stdout"].splitlines())
    assert names["PASSED"] == "yes" and names["TZ"] == "UTC" and names["LC_TIME"] == "C" and "PATH" in names
    assert not {"HIDDEN", "CLAUDECODE", "COPY", "PYTHONWARNINGS"} & set(names)
    assert TOKEN not in str(names)


def test_a_command_whose_time_is_over_leaves_no_process(gateway, place):
    """AS-53: also what left its group, and what it said so far arrives."""
    pids = place / "allowed" / "pids"
    line = "echo begun; echo $$ >pids; setsid sh -c 'echo $$ >>pids; exec sleep 100' & sleep 100"
    answer = gateway.run("sh", "-c", line, timeout=1)
    assert answer["returncode"] == -1 and answer["timed_out"] and answer["stdout"] == "begun\n"
    assert [pid for pid in map(int, pids.read_text().split()) if is_alive(pid)] == []


def test_what_a_command_leaves_in_the_background_ends_with_it(gateway, place):
    """AS-53, acceptance 12: a surviving grandchild."""
    pids = place / "allowed" / "left"
    answer = gateway.run("sh", "-c", "setsid sh -c 'echo $$ >left; exec sleep 100' & sleep 0.3; echo done")
    assert answer["returncode"] == 0 and answer["stdout"] == "done\n"
    assert not is_alive(int(pids.read_text()))


def test_endless_output_is_bounded_and_drained(gateway):
    """AS-54: a megabyte of each stream is kept; bytes that are no text are replaced."""
    flood = "import sys\nfor _ in range(300): sys.stdout.buffer.write(b'\\xffx' * (1 << 19))"
    answer = gateway.run("python3", "-c", flood, timeout=20)
    assert answer["truncated"] and answer["returncode"] == 0, answer["returncode"]
    assert answer["stdout"].startswith("\ufffdx\ufffdx") and len(answer["stdout"]) == 1 << 20


def test_a_stream_tells_as_it_comes_and_ends_with_the_exit(gateway):
    """AS-52."""
    status, lines = gateway.ask(
        request(cmd=["sh", "-c", "echo one; sleep 0.2; echo two >&2; exit 4"], stream=True)
    )
    assert status == 200
    assert [(line["type"], line.get("data")) for line in lines] == [
        ("stdout", "one\n"), ("stderr", "two\n"), ("exit", None),
    ]  # fmt: skip
    assert lines[-1]["returncode"] == 4


def test_a_client_that_leaves_takes_its_command_along(gateway, place):
    """AS-53."""
    pid_file = place / "allowed" / "lonely"
    body = json.dumps(request(cmd=["sh", "-c", "echo $$ >lonely; exec sleep 100"])).encode()
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(gateway.socket))
        head = f"POST /execute HTTP/1.1\r\nHost: g\r\nContent-Length: {len(body)}\r\n"
        client.sendall(f"{head}Authorization: Bearer {TOKEN}\r\n\r\n".encode() + body)
        until = time.monotonic() + HANG_S
        while not (pid_file.exists() and pid_file.read_text().strip()):
            assert time.monotonic() < until
            time.sleep(0.02)
    pid = int(pid_file.read_text())
    while is_alive(pid):
        assert time.monotonic() < until
        time.sleep(0.02)


def test_the_ninth_command_at_once_is_refused(gateway):
    """AS-54; a command of the test before may still be ending."""

    async def nine() -> list[int]:
        one = json.dumps(request(cmd=["sleep", "1"])).encode()
        answers = await asyncio.gather(*(gateway.answer(one) for _ in range(9)))
        return sorted(status for status, _ in answers)

    until = time.monotonic() + HANG_S
    while (codes := asyncio.run(nine())) != [200] * 8 + [429]:
        assert time.monotonic() < until, codes


def test_the_socket_is_the_users_alone_and_goes_with_the_gateway(tmp_path):
    """AS-48; kill -9 leaves a socket that the next one takes, and no command."""
    settings = {"bridges": {"tools": {"allowed_commands": ["sh"], "token": TOKEN}}}
    first = Running(tmp_path, settings)
    assert stat.S_IMODE(first.socket.stat().st_mode) == 0o600
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(first.socket))
        body = json.dumps(request(cmd=["sh", "-c", f"echo $$ >{tmp_path}/pid; sleep 100"])).encode()
        head = f"POST /execute HTTP/1.1\r\nHost: g\r\nContent-Length: {len(body)}\r\n"
        client.sendall(f"{head}Authorization: Bearer {TOKEN}\r\n\r\n".encode() + body)
        until = time.monotonic() + HANG_S
        while not ((tmp_path / "pid").exists() and (tmp_path / "pid").read_text().strip()):
            assert time.monotonic() < until
            time.sleep(0.02)
        first.process.kill()
        first.process.wait(HANG_S)
    pid = int((tmp_path / "pid").read_text())
    while is_alive(pid):
        assert time.monotonic() < until
        time.sleep(0.02)
    assert first.process.stderr is not None
    first._drain.join(HANG_S)
    first.process.stderr.close()
    second = Running(tmp_path, settings)
    assert second.run("sh", "-c", "echo again")["stdout"] == "again\n"
    assert second.stop() == 0 and not second.socket.exists()


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        pytest.param({}, "gateway.bridges is empty", id="no-bridge"),
        pytest.param(
            {"bridges": {"a": {"allowed_commands": ["sh"]}}}, "gateway.bridges.a.token", id="no-token"
        ),
        pytest.param({"bridges": {"a": {"token": "short"}}}, "fewer than 16", id="short-token"),
        pytest.param({"bridges": {"a": {"token": TOKEN}, "b": {"token": TOKEN}}}, "a and b", id="same-token"),
        pytest.param(
            {"bridges": {"a": {"token": TOKEN, "allowed_cwd": ["x"]}}}, "not absolute", id="relative"
        ),
        pytest.param({"bridges": {"a": {"tokem": TOKEN}}}, "token", id="misspelt"),
        pytest.param({"port": 0}, "gateway.port", id="port"),
    ],
)
def test_wrong_settings_start_nothing(tmp_path, settings, said):
    """AS-48, acceptance 13: exit code 1 naming what is wrong, and no secret."""
    config = tmp_path / "config.yaml"
    config.write_text(json.dumps({"gateway": settings}))
    config.chmod(0o600)
    done = subprocess.run(
        [*COMMAND, "gateway", "--config", str(config)], capture_output=True, text=True, timeout=HANG_S,
        env=clean_environment(tmp_path), cwd=tmp_path, check=False,
    )  # fmt: skip
    assert done.returncode == 1 and said in done.stderr and TOKEN not in done.stderr, done.stderr


def test_another_machines_reach_is_warned_about(tmp_path):
    """AS-48."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    config = tmp_path / "config.yaml"
    bridges = {"a": {"token": TOKEN, "allowed_commands": ["sh"]}}
    config.write_text(json.dumps({"gateway": {"bridges": bridges}}))
    config.chmod(0o600)
    with subprocess.Popen(
        [*COMMAND, "gateway", "--config", str(config), "--bind", "0.0.0.0", "--port", str(port)],
        stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True, env=clean_environment(tmp_path),
        cwd=tmp_path,
    ) as process:  # fmt: skip
        said = ""
        assert process.stderr is not None
        while "serves" not in said:
            line = process.stderr.readline()
            assert line, said
            said += line
        process.terminate()
        assert process.wait(HANG_S) == 0
    assert "can be reached from other machines" in said
