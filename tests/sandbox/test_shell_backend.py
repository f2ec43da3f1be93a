"""SB-38 … SB-41, SB-56: files and allowed commands on a directory, in real sandboxes."""

import asyncio
import dataclasses
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from support.patience import HANG_S, patience

from bowerbird import ExecuteResponse, WorkspaceShellBackend
from bowerbird.core.errors import InvalidArgument, InvalidWorkspace, PathEscape
from bowerbird.sandbox.run.command import CommandResult
from bowerbird.sandbox.settings import SandboxSettings
from bowerbird.sandbox.shell.shell_backend import response_of


@pytest.fixture
def root(tmp_path: Path) -> Path:
    made = tmp_path / "project"
    made.mkdir()
    (made / "a.txt").write_text("one\ntwo\n")
    return made


@pytest.fixture
def backend(root: Path) -> Iterator[WorkspaceShellBackend]:
    with WorkspaceShellBackend(root_dir=root) as made:
        if made.execute("echo probe").output != "probe\n" and made.execute("echo probe").exit_code:
            pytest.skip(made.execute("echo probe").output)
        yield made


@contextmanager
def listening() -> Iterator[tuple[int, list[str]]]:
    """A web server on loopback: its port, and the paths it was asked for."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base's name
            return

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server.server_address[1], asked
        server.shutdown()
        thread.join()


def test_the_response_has_exactly_three_fields():
    """Acceptance 12."""
    assert [f.name for f in dataclasses.fields(ExecuteResponse)] == ["output", "exit_code", "truncated"]
    assert ExecuteResponse("x", 0) == ExecuteResponse("x", 0, False)


def test_file_tools_work_on_the_directory_and_land_at_once(backend, root):
    assert backend.read_file("a.txt")["content"] == "one\ntwo\n"
    assert [e["name"] for e in backend.ls("/")["entries"]] == ["a.txt"]
    backend.write_file("/sub/b.txt", "three\n")
    assert (root / "sub/b.txt").read_text() == "three\n"
    backend.edit_file("a.txt", "two", "2")
    assert (root / "a.txt").read_text() == "one\n2\n"
    assert backend.glob("**/*.txt")["files"] == ["/a.txt", "/sub/b.txt"]
    assert [m["path"] for m in backend.grep("^t")["matches"]] == ["/sub/b.txt"]
    assert backend.pending().record() == {"written": [], "deleted": []}


def test_flagged_paths_wait_for_a_person(backend, root):
    backend.write_file(".git/hooks/pre-commit", "#!/bin/sh\n")
    backend.write_file(".envrc", "x\n")
    assert not (root / ".git").exists() and not (root / ".envrc").exists()
    assert backend.pending().written == ("/.envrc",)


def test_a_command_runs_without_a_shell_and_its_changes_land(backend, root):
    assert backend.execute("echo hi > *") == ExecuteResponse("hi > *", 0)
    ran = backend.execute(["python3", "-c", "open('made', 'w').write('x')"])
    assert ran == ExecuteResponse("(no output)", 0)
    assert (root / "made").read_text() == "x"
    assert backend.read_file("made")["content"] == "x"


def test_stderr_lines_are_marked_and_a_failure_ends_with_its_code(backend):
    code = "import sys\nprint('out')\nprint('one\\ntwo', file=sys.stderr)\nsys.exit(3)"
    assert backend.execute(["python3", "-c", code]) == ExecuteResponse(
        "out\n[stderr] one\n[stderr] two\nExit code: 3", 3
    )


@pytest.mark.parametrize(
    "command",
    [
        "ls",
        "./git status",
        "/tmp/git",
        "date\nid",
        "echo $(id)",
        "echo 'a & b'",
        "env id",
        "a\0b",
        "",
        "echo 'x",
    ],
)
def test_a_refusal_runs_nothing_and_says_why(backend, root, command):
    (root / "git").write_text("#!/bin/sh\ntouch ran\n")
    (root / "git").chmod(0o755)
    refused = backend.execute(command)
    assert refused.exit_code == 1 and refused.output.startswith("Refused: ")
    assert not (root / "ran").exists()


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(["git", "-c", "alias.x=!id; cat /etc/shadow", "x"], id="git-alias"),
        pytest.param(
            ["tar", "cf", "x.tar", "a.txt", "--checkpoint=1", "--checkpoint-action=exec=cat {s}"], id="tar"
        ),
        pytest.param(["curl", "-sS", "file://{s}"], id="curl-file"),
        pytest.param(["python3", "-c", "print(open('{s}').read())"], id="python"),
        pytest.param(["python3", "-c", "import os; print(dict(os.environ))"], id="environment"),
        pytest.param(["sort", "-o", "{o}", "a.txt"], id="sort-outside"),
        pytest.param(["wget", "-O", "{o}", "http://example.test/"], id="wget-outside"),
    ],
)
def test_what_an_allowed_program_can_do_stays_in_the_sandbox(root, tmp_path, monkeypatch, words):
    """SB-56: the list is a policy, the sandbox is the wall."""
    secret = tmp_path / "secret"
    secret.write_text("top-secret")
    monkeypatch.setenv("BOWERBIRD_TEST_SECRET", "top-secret")
    outside = tmp_path / "outside"
    with WorkspaceShellBackend(root_dir=root, timeout=20) as backend:
        ran = backend.execute([word.format(s=secret, o=outside) if "{" in word else word for word in words])
        assert "top-secret" not in ran.output and "root:" not in ran.output
        assert not outside.exists()
        assert backend.execute("echo usable").output == "usable"


def test_a_url_with_an_ampersand_runs_as_a_list_only(root):
    """Acceptance 12."""
    with listening() as (port, asked):
        url = f"http://127.0.0.1:{port}/?a=1&b=2"
        settings = SandboxSettings(allow=(f"127.0.0.1:{port}",), private_hosts=frozenset({"127.0.0.1"}))
        with WorkspaceShellBackend(root_dir=root, settings=settings) as backend:
            assert backend.execute(f'curl "{url}"').output.startswith("Refused")
            ran = backend.execute(["curl", "-sS", "--noproxy", "", url])
            assert ran.exit_code == 0, ran.output
            assert asked == ["/?a=1&b=2"]


def test_a_timeout_is_124_and_keeps_what_was_printed(root):
    with WorkspaceShellBackend(root_dir=root, timeout=0.5) as backend:
        ran = backend.execute(
            ["python3", "-uc", "import time\nprint('before')\nopen('kept', 'w').close()\ntime.sleep(60)"]
        )
    assert (ran.exit_code, ran.output) == (124, "before\nExit code: 124 (timed out)")
    assert (root / "kept").exists()


def test_a_program_that_is_not_installed_is_a_start_failure(backend):
    ran = backend.execute("nano-pdf --help")
    assert ran.exit_code == 1 and "nano-pdf" in ran.output


def test_output_is_cut_to_the_limit_with_head_tail_and_marker(root):
    with WorkspaceShellBackend(root_dir=root, max_output_bytes=2000) as backend:
        ran = backend.execute(["python3", "-c", "for n in range(9999): print(n)"])
    assert ran.truncated and len(ran.output.encode()) <= 2000
    assert ran.output.startswith("0\n1\n") and ran.output.endswith("9998") and "bytes omitted" in ran.output


def test_stderr_marks_count_against_the_limit():
    record = CommandResult(
        exit_code=1, signal=None, timed_out=False, cancelled=False, oom=False, output="", truncated=False,
        total_bytes=1000, spill=None, duration_ms=1, cpu_ms=1, peak_bytes=1, stragglers_killed=0,
        tier="overlay", network="closed", written=[], deleted=[], stdout="", stderr="x\n" * 500,
    )  # fmt: skip
    shown = response_of(record, 1000)
    assert shown.truncated and len(shown.output.encode()) <= 1000 and shown.output.endswith("Exit code: 1")


async def test_commands_run_beside_each_other_from_one_loop(root):
    with WorkspaceShellBackend(root_dir=root) as backend:
        ran = await asyncio.gather(
            *(backend.aexecute(["python3", "-c", f"open('f{n}', 'w').write('{n}')"]) for n in range(4))
        )
        assert [r.exit_code for r in ran] == [0] * 4
        assert sorted(p.name for p in root.iterdir()) == ["a.txt", "f0", "f1", "f2", "f3"]
        assert (await backend.aread_file("f2"))["content"] == "2"


async def test_cancelling_kills_the_whole_tree_within_100_ms(root):
    with WorkspaceShellBackend(root_dir=root) as backend:
        await backend.aexecute("echo warm")
        code = "import os, time\nos.fork()\nopen(f'up', 'w').close()\ntime.sleep(60)"
        task = asyncio.create_task(backend.aexecute(["python3", "-c", code]))
        async with asyncio.timeout(HANG_S):
            while "up" not in str(await backend.aglob()):
                await asyncio.sleep(0.01)
        started = time.monotonic()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert time.monotonic() - started < patience(2)
        left = await backend.aexecute(["python3", "-c", "import os; print(len(os.listdir('/proc')))"])
        assert left.exit_code == 0
        assert (root / "up").exists(), "what it changed so far is kept"


def test_absolute_paths_are_virtual_or_the_host_s(root, tmp_path):
    (tmp_path / "outside.txt").write_text("no")
    with WorkspaceShellBackend(root_dir=root) as virtual:
        assert virtual.read_file("/a.txt")["content"] == "one\ntwo\n"
        with pytest.raises(PathEscape):
            virtual.read_file("../outside.txt")
    with WorkspaceShellBackend(root_dir=root, virtual_mode=False) as plain:
        assert plain.read_file(str(root / "a.txt"))["content"] == "one\ntwo\n"
        assert plain.read_file("a.txt")["content"] == "one\ntwo\n"
        for path in ("/a.txt", str(tmp_path / "outside.txt"), f"{root}/../outside.txt", "/etc/passwd"):
            with pytest.raises(PathEscape):
                plain.read_file(path)
            with pytest.raises(PathEscape):
                plain.write_file(path, "x")
        (root / "link").symlink_to(tmp_path / "outside.txt")
        with pytest.raises(PathEscape):
            plain.read_file(str(root / "link"))


@pytest.mark.parametrize("options", [{"timeout": 0}, {"timeout": float("nan")}, {"max_output_bytes": 0}])
def test_bad_limits_are_refused(root, options):
    with pytest.raises(InvalidArgument):
        WorkspaceShellBackend(root_dir=root, **options)


def test_a_missing_directory_is_named(tmp_path):
    with pytest.raises(InvalidWorkspace, match="gone"):
        WorkspaceShellBackend(root_dir=tmp_path / "gone")


def test_without_a_tier_a_command_is_refused_with_the_reason_and_files_still_work(root):
    with WorkspaceShellBackend(root_dir=root, settings=SandboxSettings(tier="none")) as backend:
        ran = backend.execute("echo hi")
        assert ran.exit_code == 1 and "sandbox tier" in ran.output
        assert backend.read_file("a.txt")["content"] == "one\ntwo\n"


def test_a_branch_directory_in_path_is_never_searched(root, monkeypatch):
    tools = root / "bin"
    tools.mkdir()
    (tools / "jq").write_text("#!/bin/sh\necho hijacked\n")
    (tools / "jq").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}{os.pathsep}{os.environ['PATH']}")
    settings = SandboxSettings(read_only=(str(root),))
    with WorkspaceShellBackend(root_dir=root, settings=settings) as backend:
        assert "hijacked" not in backend.execute("jq --version").output
