"""What is said when something is wrong: what happened, to what, and what to do; never a traceback (UI-63, UI-66)."""

import errno
import json
import os
import pwd
import resource
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from support.desk import Desk
from support.patience import HANG_S
from support.servers import free_port

from bowerbird.cli.terminal.error_text import sentence
from bowerbird.core.errors import StorageFull

CASES = [
    # arguments, exit code, what must be said
    (["show", "nope1"], 2, ["'nope1'", "bowerbird sessions --all"]),
    (["show", "ab"], 2, ["'ab'", "4 characters"]),
    (["hi", "--resume=zzzz9"], 2, ["'zzzz9'", "bowerbird sessions"]),
    (["undo", "l_nope"], 2, ["l_nope", "bowerbird landings"]),
    (["diff"], 2, ["no session works on", 'bowerbird "what to do"']),
    (["approve", "r_" + "0" * 26], 2, ["no pending request"]),
    (["run", "--modle", "x"], 2, ["--modle", "--model"]),
    (["sesions"], 2, ["'sesions'", "bowerbird sessions"]),
    (["x", "-m", "nope:x"], 78, ["'nope'", "anthropic"]),
    (["x", "-p", "nope"], 2, ["'nope'", "coding"]),
    (["x", "-w", "/nope/nowhere"], 2, ["/nope/nowhere", "does not exist"]),
    (["x", "-w", "/"], 2, ["whole machine", "--workspace"]),
    (["sessions", "--config", "missing.yaml"], 78, ["missing.yaml", "does not exist"]),
    (["token", "revoke", "nobody"], 2, ["nobody", "bowerbird token list"]),
    (["memory", "log", "99"], 2, ["99", "bowerbird memory log"]),
    (["sessions", "--server", "http://127.0.0.1:1"], 1, ["http://127.0.0.1:1", "bowerbird serve"]),
    (["config", "explain", "no.such"], 2, ["no.such"]),
    (["gr\udcfc\udcdfe"], 2, ["'gr\\udcfc\\udcdfe'", "not all of its bytes are UTF-8"]),
    (["x", "--resume=gr\udcfc"], 2, ["not all of its bytes are UTF-8"]),
]


@pytest.mark.parametrize(("arguments", "code", "said"), CASES, ids=[" ".join(case[0]) for case in CASES])
def test_each_mistake_is_named_with_its_remedy(
    arguments: list[str], code: int, said: list[str], here: Desk
) -> None:
    got, out, err = here.run(*arguments)
    assert got == code and not out, err
    for part in said:
        assert part in err
    assert "Traceback" not in err


def test_a_data_directory_that_cannot_be_made_is_named(here: Desk) -> None:
    """UI-66."""
    code, _, err = here.run("sessions", "--data-dir", str(here.project / "a.txt" / "data"))
    assert code == 1 and "a.txt/data" in err and "--data-dir" in err


def test_settings_that_are_no_yaml_name_file_and_line(here: Desk) -> None:
    (here.project / "bad.yaml").write_text("agent: [\n")
    code, _, err = here.run("sessions", "--config", "bad.yaml")
    assert code == 78 and "bad.yaml:2" in err and "bowerbird config check" in err


def test_a_taken_port_is_named(here: Desk) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with here.start("serve", "--port", str(port)) as process:
            _, raw = process.communicate(timeout=HANG_S)
    err = raw.decode()
    assert process.returncode == 1 and f"127.0.0.1:{port}" in err and "--port" in err
    assert "Traceback" not in err


def test_a_closed_pipe_ends_quietly(desk: Desk) -> None:
    """UI-58: exit 141."""
    read, write = os.pipe()
    os.close(read)
    with desk.start("tools", "--json", stdout=write) as process:
        os.close(write)
        _, err = process.communicate(timeout=HANG_S)
    assert process.returncode == 141 and err == b""


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_without_standard_streams_nothing_is_written_into_other_files(desk: Desk, closed: str) -> None:
    """A database opened as descriptor 1 would take what is printed; it ended in a traceback before that."""
    desk.fake.script({"text": "An answer."})
    line = f'"$0" -m bowerbird.cli.main hi {closed}'
    done = subprocess.run(
        ["sh", "-c", line, sys.executable], cwd=desk.project, env=desk.environment,
        capture_output=True, timeout=HANG_S, check=False,
    )  # fmt: skip
    assert done.returncode == 0 and b"Traceback" not in done.stderr
    assert "An answer." in desk.ok("show")


@pytest.mark.parametrize("home", ["", "rel"])
def test_a_home_that_is_no_place_is_the_user_s_own(tmp_path: Path, home: str) -> None:
    """UI-63: records lay at the top of the system, or in the project."""
    told = "import atexit; from pathlib import Path; atexit.register(lambda: print(Path.home()))\n"
    script = told + "import sys; sys.argv[1:] = ['--version']; from bowerbird.cli.main import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, env={**os.environ, "HOME": home},
        capture_output=True, text=True, timeout=HANG_S, check=True,
    )  # fmt: skip
    assert done.stdout.splitlines()[-1] == pwd.getpwuid(os.getuid()).pw_dir


def test_a_python_without_docstrings_is_named(here: Desk) -> None:
    """UI-63: it was an internal error."""
    done = subprocess.run(
        [sys.executable, "-OO", "-m", "bowerbird", "sessions"], cwd=here.project, env=here.environment,
        capture_output=True, text=True, timeout=HANG_S, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert (
        done.stderr.startswith("bowerbird: this Python leaves out docstrings")
        and done.stderr.count("\n") == 1
    )


def test_a_full_device_is_said_once(desk: Desk) -> None:
    """The interpreter said it again, with an exit code of its own."""
    with Path("/dev/full").open("wb") as full, desk.start("tools", "--json", stdout=full) as process:
        _, err = process.communicate(timeout=HANG_S)
    assert process.returncode == 1 and err.count(b"No space left") == 1


def test_a_full_disk_is_told_with_the_room_that_is_left(tmp_path: Path) -> None:
    """UI-66."""
    full = OSError(errno.ENOSPC, "No space left on device", str(tmp_path / "a" / "b"))
    for error in (full, StorageFull(f"{tmp_path}/agent.db: the disk is full; free some space and try again")):
        text = sentence(error)
        assert str(tmp_path) in text and " free at " in text and "free some space" in text


def test_a_hostile_tool_name_moves_no_terminal_in_any_form(desk: Desk) -> None:
    """UI-53: `show` into a pipe gave it as it is, and JSON kept C1 controls and marks that reorder text."""
    name = "nope\x1b]0;owned\x07\x9b2J\u202etxt"
    desk.fake.script({"tools": [{"name": name, "input": {}}]}, {"text": "as \x9b2J \u202e is"})
    said = desk.ok("hi", "--output", "stream-json")
    desk.fake.script({"text": "as \x9b2J \u202e is"})
    said += desk.ok("hi", "--resume=", "--output", "json")
    shown, as_json = desk.ok("show"), desk.ok("show", "--json")
    for text in (said, shown, as_json):
        assert not set(text) & set("\x1b\x07\x9b\u202e"), text
    assert "nope\\x1b]0;owned" in shown
    frames = [json.loads(line) for line in said.splitlines()]
    assert name in {frame["tool"] for frame in frames if frame.get("type") == "tool_call"}
    assert frames[-1]["answer"] == "as \x9b2J \u202e is"


def test_a_path_that_is_not_utf_8_is_refused_before_anything_is_kept(here: Desk) -> None:
    """UI-66: the first command went well, each later one ended with an internal error."""
    odd = here.home / os.fsdecode(b"n\xff")
    (odd / "project").mkdir(parents=True)
    for arguments, where in (("--data-dir", str(odd / "data")), here.project), ((), odd / "project"):
        code, _, err = here.run("hi", *arguments, cwd=where)
        assert code in (1, 2) and "not UTF-8" in err and "internal" not in err, err
    assert not (odd / "data").exists() and here.fake.request_count == 0


@pytest.mark.skipif(os.geteuid() == 0, reason="root enters every directory")
def test_a_data_directory_of_somebody_else_is_named_itself(here: Desk) -> None:
    """UI-66: a file in it was named that nobody knows, `.agent.db`."""
    closed = here.home / "closed"
    closed.mkdir(mode=0o000)
    code, _, err = here.run("sessions", "--data-dir", str(closed))
    closed.chmod(0o700)
    assert code == 1 and f"{closed} cannot be entered" in err and ".agent.db" not in err


@pytest.mark.parametrize(
    ("status", "said"),
    [(429, "limits the rate of requests"), (529, "is overloaded"), (500, "has a fault of its own")],
)
def test_a_model_that_is_asked_again_is_said_in_words(desk, status, said):
    """UI-63, UI-84: "rate_limit: retrying in 1 s (attempt 1)" was for whoever wrote it."""
    desk.fake.script({"status": status, "headers": {"retry-after": "0"}}, {"text": "Hello."})
    code, out, err = desk.run("hi")
    assert (code, out) == (0, "Hello.\n")
    assert f"the provider {said}; trying again in" in err and "_" not in err.split("trying")[0]


@pytest.mark.parametrize("mib", [293, 500])
def test_a_server_that_would_be_aborted_for_want_of_room_says_so(here: Desk, mib: int) -> None:
    """It ended in tracebacks of threads, or in a core dump at its end."""
    small = {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_AS, (mib << 20, mib << 20))}
    with here.start("serve", "--port", str(free_port()), **small) as process:
        _, said = process.communicate(timeout=HANG_S)
    text = said.decode()
    assert process.returncode == 1 and "ulimit -v unlimited" in text and f"{mib}.0 MiB" in text
    assert "Traceback" not in text and "serves" not in text


def test_a_limit_of_memory_is_said_with_what_lifts_it(here: Desk) -> None:
    """It was "internal error: MemoryError", or "can't start new thread"."""
    small = {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_AS, (100 << 20, 100 << 20))}
    with here.start("-q", "hi", **small) as process:
        _, said = process.communicate(timeout=HANG_S)
    text = said.decode()
    assert process.returncode == 1 and "ulimit -v unlimited" in text and "100.0 MiB" in text
    assert "internal error" not in text and "Traceback" not in text


def test_a_directory_that_is_removed_below_a_chat_is_named(here: Desk) -> None:
    """`/diff` said "[Errno 2] No such file or directory", of nothing."""
    here.fake.script({"text": "Hello."})
    with here.terminal() as chat:
        chat.wait_for("lists commands")
        chat.send("hello\r")
        chat.wait_for("ctx ·")
        here.project.rename(here.home / "elsewhere")
        shutil.rmtree(here.home / "elsewhere")
        chat.send("/land\r")
        chat.wait_for("workdir does not exist:")
        chat.wait_for(here.project.name)  # the path may be too long for the line
        chat.send("/quit\r")
        assert chat.wait() == 0
    assert "Errno" not in chat.text


INTERRUPTED = """
import os, signal, sys
import bowerbird.cli.parser as parser
from bowerbird.cli.main import main
from pydantic_core import SchemaError

def building(*_):
    try:
        signal.raise_signal(signal.SIGINT)
    except KeyboardInterrupt as ctrl_c:
        name = type(ctrl_c).__name__
    raise SchemaError(f"Error building literal validator:\\n  {name}: ")

parser.parse_and_run = building
sys.argv = ["bowerbird", "sessions"]
main()
"""


def test_ctrl_c_while_compiled_code_runs_is_no_internal_error(here: Desk) -> None:
    """Pydantic makes a SchemaError of it while it builds a model."""
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED], cwd=here.project, env=here.environment, capture_output=True,
        text=True, check=False, timeout=HANG_S,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr.strip()) == (130, "", "")
