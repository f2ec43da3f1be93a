"""Commands over a running server: `--server URL`, BOWERBIRD_URL, BOWERBIRD_TOKEN (UI-41, UI-46, UI-63)."""

import ctypes
import json
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from support.desk import Desk
from support.patience import HANG_S
from support.servers import free_port
from support.terminals import Terminal

from bowerbird.cli.run.watching import LOOK_AGAIN_S


def serve(here: Desk, port: int) -> "subprocess.Popen[bytes]":
    """Start a server and wait until it answers."""
    process = here.start("serve", "--port", str(port), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + HANG_S
    while True:
        with closing(socket.socket()) as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return process
        assert process.poll() is None and time.monotonic() < deadline, "the server did not start"
        time.sleep(0.05)


class Away:
    """The command of someone who has only the server's address and a token: a home without records."""

    def __init__(self, here: Desk, port: int, token: str) -> None:
        self.here, self.port = here, port
        self.home = here.home.parent / "away"
        self.home.mkdir()
        environment = {
            **here.environment,
            "HOME": str(self.home),
            "BOWERBIRD_URL": f"http://127.0.0.1:{port}",
        }
        environment.pop("ANTHROPIC_API_KEY")
        self.environment = {**environment, "BOWERBIRD_TOKEN": token}

    def run(self, *arguments: str, **changed: str) -> tuple[int, str, str]:
        return self.here.run(*arguments, env={**self.environment, **changed}, cwd=self.home)

    def ok(self, *arguments: str) -> str:
        code, out, err = self.run(*arguments)
        assert code == 0, err
        return out


@pytest.fixture(scope="module")
def away(tmp_path_factory, models) -> Iterator[Away]:
    with Desk(tmp_path_factory.mktemp("remote"), models) as here:
        (here.home / ".bowerbird").mkdir()
        (here.home / ".bowerbird" / "config.yaml").write_text("server:\n  auth: token\n")
        token = here.ok("token", "create", "ann", "--role", "admin").split()[-1]
        port = free_port()
        process = serve(here, port)
        yield Away(here, port, token)
        process.terminate()
        process.wait(HANG_S)


def test_a_job_over_a_server_from_the_prompt_to_undo(away, models, written):
    """run, sessions, show, diff, land, landings, undo, send, tail, rename, delete: no record is kept here."""
    models.reset()
    away.here.edit(written("b.txt", "hi\n"), answer="Wrote **b**.")
    result = json.loads(away.ok("make b", "--json"))
    session = result["conversation_id"]
    assert result["answer"] == "Wrote **b**." and result["stop_reason"] == "end_turn"
    assert [(row["path"].lstrip("/"), row["status"]) for row in result["changed"]] == [("b.txt", "created")]
    assert session in away.ok("sessions") and "1 file" in away.ok("sessions")
    assert "> make b" in away.ok("show", session[:6])
    assert "+hi" in away.ok("diff") and "b.txt" in away.ok("diff", session, "--stat")
    models.script({"text": "Because."})
    assert away.ok("comment", "b.txt:1", "why?") == "Because.\n"
    assert "b.txt" in str(models.requests[-1]["messages"]) and "why?" in str(models.requests[-1]["messages"])
    landed = json.loads(away.ok("land", "--yes", "--json"))
    assert [path.lstrip("/") for path in [row["path"] for row in landed["entries"]]] == ["b.txt"]
    assert landed["id"] in away.ok("landings")
    assert "took" in away.ok("undo", landed["id"])
    assert "deleted" in away.ok("delete", session, "--yes")
    assert not (away.home / ".bowerbird").exists()


def test_a_turn_there_is_followed_stopped_and_answered_from_here(away, models, written):
    """UI-46: tail, send, cancel, approve."""
    models.reset()
    models.script({"text": "first"})
    session = json.loads(away.ok("begin", "--approval", "--json"))["conversation_id"]
    models.script({"tools": [written("c.txt", "hi\n")]}, {"text": "second"}, {"hang": True})
    with Terminal(["tail", session], cwd=away.home, environment=away.environment, columns=100) as follower:
        follower.wait_for("Ctrl+C ends that")
        away.ok("send", session, "write it")
        follower.wait_for("answer with: bowerbird approve r_")
        assert json.loads(away.ok("approve", session, "--json"))["decision"] == "approve"
        follower.wait_for("✓ write_file c.txt")
        follower.wait_for("second")
        away.ok("send", session, "think long")
        models.wait_requests(4, timeout=HANG_S)
        assert "told t_" in away.ok("cancel", session)
        follower.send("\x03")
        assert follower.wait() == 130
    assert "Traceback" not in follower.text


def test_ctrl_c_ends_a_tail_whichever_thread_the_signal_meets(away, models):
    """UI-46, issue 10 blocker 11: one that came while nothing was said there was lost, for ever."""
    models.reset()
    models.script({"text": "first"})
    session = json.loads(away.ok("begin", "--json"))["conversation_id"]
    with Terminal(["tail", session], cwd=away.home, environment=away.environment) as follower:
        follower.wait_for("Ctrl+C ends that")
        pid = follower.process.pid
        others = [int(each.name) for each in Path(f"/proc/{pid}/task").iterdir() if int(each.name) != pid]
        assert ctypes.CDLL(None).tgkill(pid, others[-1] if others else pid, signal.SIGINT) == 0
        assert follower.wait() == 130


def test_a_list_of_tasks_there_is_drawn_here(away, models):
    """House F2: `todo_update` was swallowed."""
    models.reset()
    items = [{"content": "read the tests", "status": "in_progress", "activeForm": "reading the tests"}]
    models.script({"tools": [{"name": "todo_write", "input": {"items": items}}]}, {"text": "Listed."})
    code, out, err = away.run("list your steps")
    assert code == 0 and out == "Listed.\n", err
    assert "▶ read the tests" in err, err


def test_a_silent_model_there_is_not_waited_for_longer_than_asked(away, models):
    """UI-60: no frame comes, and the time is over all the same; the turn is stopped."""
    models.reset()
    models.script({"hang": True})
    code, _, err = away.run("think", "--timeout", "2")
    assert code == 124 and "stopped after 2 s" in err, err
    [row] = [row for row in json.loads(away.ok("sessions", "--json")) if row["title"] == "think"]
    deadline = time.monotonic() + HANG_S
    while "cancelled" not in away.ok("show", row["id"], "--json"):
        assert time.monotonic() < deadline, "the turn went on"
        time.sleep(0.05)


def test_a_tail_outlives_a_restart_of_its_server(here):
    """UI-46."""
    here.fake.script({"text": "before"}, {"text": "afterwards"})
    port = free_port()
    process = serve(here, port)
    away = Away(here, port, "")
    session = json.loads(away.ok("one", "--json"))["conversation_id"]
    with Terminal(["tail", session], cwd=away.home, environment=away.environment) as follower:
        follower.wait_for("Ctrl+C ends that")
        process.send_signal(signal.SIGKILL)
        process.wait(HANG_S)
        follower.wait_for("waiting for the server")
        process = serve(here, port)
        follower.wait_for("connected again")
        away.ok("send", session, "two")
        follower.wait_for("afterwards")
    process.terminate()
    process.wait(HANG_S)


class _NoBackend(BaseHTTPRequestHandler):
    """A reverse proxy whose server is not there."""

    def do_GET(self) -> None:
        body = b"<html><h1>502 Bad Gateway</h1></html>"
        self.send_response(502)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as the library calls it
        pass


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
@pytest.mark.parametrize("proxied", [False, True])
def test_a_chat_goes_on_after_a_restart_of_its_server(here, how, proxied):
    """UI-46, UI-85: it said "Refused: … is not a Bowerbird server" and never showed the answer."""
    here.fake.script({"text": "one two three", "deltas": 3, "hang_after": 2}, {"text": "afterwards"})
    port = free_port()
    process = serve(here, port)
    away = Away(here, port, "")
    with Terminal([], cwd=away.home, environment=away.environment) as chat:
        chat.wait_for("new session")
        chat.send("count\r")
        chat.wait_for("one")
        process.send_signal(how)
        chat.wait_for("waiting for the server")
        process.wait(HANG_S)
        if proxied:
            with ThreadingHTTPServer(("127.0.0.1", port), _NoBackend) as proxy:
                threading.Thread(target=proxy.serve_forever, daemon=True).start()
                time.sleep(LOOK_AGAIN_S + 1)
                proxy.shutdown()
        else:
            time.sleep(LOOK_AGAIN_S + 1)
        process = serve(here, port)
        chat.wait_for("afterwards")
        chat.wait_for("ctx ·")
        assert "Refused" not in chat.text and "cursor" not in chat.text
        chat.send("\x04")
        chat.wait()
    process.terminate()
    process.wait(HANG_S)


def test_a_proxy_without_its_server_is_named(here):
    with ThreadingHTTPServer(("127.0.0.1", 0), _NoBackend) as proxy:
        threading.Thread(target=proxy.serve_forever, daemon=True).start()
        code, _, err = here.run(
            "sessions", env={**here.environment, "BOWERBIRD_URL": f"http://127.0.0.1:{proxy.server_port}"}
        )
        proxy.shutdown()
    assert code == 1 and "answered 502: the server behind this address is not there" in err


def test_what_would_ask_somebody_is_denied_where_nobody_sits(away, models, written):
    """UI-56: exit 4, told to the model."""
    models.reset()
    away.here.edit(written("d.txt", "hi\n"), answer="Not allowed.")
    code, out, err = away.run("make d", "--approval")
    assert code == 4 and out == "Not allowed.\n" and "write_file" in err


@pytest.mark.parametrize(
    ("arguments", "environment", "code", "said"),
    [
        pytest.param(["sessions"], {"BOWERBIRD_TOKEN": ""}, 78, "wants a token", id="no token"),
        pytest.param(
            ["sessions"], {"BOWERBIRD_TOKEN": "bb_wrong"}, 78, "refuses BOWERBIRD_TOKEN", id="wrong"
        ),
        pytest.param(["show", "zzzz9"], {}, 2, "no session 'zzzz9'", id="unknown id"),
        pytest.param(
            ["sessions"], {"BOWERBIRD_URL": "nonsense"}, 2, "is not a server's address", id="no address"
        ),
        pytest.param(
            ["sessions"], {"BOWERBIRD_URL": "http://127.0.0.1:1"}, 1, "no server answers", id="nobody"
        ),
        pytest.param(["doctor", "--server", "http://x"], {}, 2, "about this machine", id="local only"),
        pytest.param(["sessions", "-w", "."], {}, 2, "--workspace names a directory", id="workspace"),
    ],
)
def test_each_failure_names_what_to_do(away, arguments, environment, code, said):
    """UI-63."""
    got, _, err = away.run(*arguments, **environment)
    assert got == code and said in err and "Traceback" not in err


def test_a_token_that_leaves_this_machine_unencrypted_is_said(away):
    """UI-63; nothing listens there: no name of `.invalid` is ever found."""
    _, _, err = away.run("sessions", BOWERBIRD_URL="http://birds.invalid", BOWERBIRD_TOKEN="bb_secret")
    assert "goes to birds.invalid unencrypted" in err and "bb_secret" not in err
    _, _, err = away.run("sessions", BOWERBIRD_URL="http://127.0.0.1:1", BOWERBIRD_TOKEN="bb_secret")
    assert "unencrypted" not in err


def test_a_failed_turn_there_is_gone_on_with_from_here(away, models):
    """UI-41: exit 1, then resume."""
    models.reset()
    models.script({"status": 400, "body": {"type": "error", "error": {"type": "x", "message": "no"}}})
    code, _, err = away.run("try it", "--json")
    assert code == 1 and "the turn failed" in err
    models.script({"text": "Now it works."})
    assert away.ok("resume") == "Now it works.\n"


def test_a_prompt_that_waits_shows_the_turns_of_other_doors(away, models):
    """What is said there, what is answered, and what is asked, which is put here, too."""
    models.reset()
    asks = {"tools": [{"name": "bash", "input": {"command": "echo here | rev"}}]}
    models.script({"text": "First."}, {"text": "From afar."}, asks, {"text": "Reversed."}, {"text": "Last."})
    session = json.loads(away.ok("begin", "--json", "--approval"))["conversation_id"]
    with Terminal(["--resume", session], cwd=away.home, environment=away.environment) as chat:
        chat.wait_for("lists commands")
        away.ok("send", session, "are you there?")
        chat.wait_for("> are you there?")
        chat.wait_for("From afar.")
        chat.wait_for("ctx ·")
        away.ok("send", session, "turn it around")
        chat.wait_for("answer>")
        chat.send("y\r")
        chat.wait_for("Reversed.")
        chat.wait_for("ctx ·")
        chat.send("and now?\r")
        chat.wait_for("Last.")
        assert chat.text.count("> turn it around") == 1
        chat.send("\x04")
        assert chat.wait() == 0
