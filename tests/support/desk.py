"""A project, a home and the `bowerbird` command, as people have them; the model is scripted.

Here: running the command. Not here: what tests expect of it.
"""

import contextlib
import io
import json
import os
import subprocess
import sys
from collections.abc import Generator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from support.fake_models import FakeModels
from support.quick_servers import QuickServer, QuickServers
from support.terminals import COMMAND, Terminal, clean_environment

from bowerbird.cli.main import run_command


@contextlib.contextmanager
def _standing_in(
    directory: Path, environment: Mapping[str, str], stdin: bytes, out: io.BytesIO, err: io.BytesIO
) -> Generator[None]:
    """Be, for a moment, a process with this directory, environment and these streams."""
    kept = (Path.cwd(), dict(os.environ), sys.stdin, sys.stdout, sys.stderr)
    os.chdir(directory)
    os.environ.clear()
    os.environ.update(environment)
    sys.stdin = io.TextIOWrapper(io.BytesIO(stdin), "utf-8")
    sys.stdout = io.TextIOWrapper(out, "utf-8", write_through=True)
    sys.stderr = io.TextIOWrapper(err, "utf-8", write_through=True)
    try:
        yield
    finally:
        for stream in (sys.stdout, sys.stderr):
            stream.detach()
        os.chdir(kept[0])
        os.environ.clear()
        os.environ.update(kept[1])
        sys.stdin, sys.stdout, sys.stderr = kept[2:]


def _run(
    arguments: Sequence[str], directory: Path, environment: Mapping[str, str], stdin: bytes
) -> tuple[int, str, str]:
    out, err = io.BytesIO(), io.BytesIO()
    with _standing_in(directory, environment, stdin, out, err):
        code = run_command(arguments)
    return code, out.getvalue().decode(), err.getvalue().decode()


_READING = frozenset(
    {
        "sessions",
        "show",
        "diff",
        "landings",
        "usage",
        "tools",
        "subagents list",
        "subagents show",
        "memory log",
    }
)


def _reads(arguments: Sequence[str]) -> bool:
    """Whether a command writes JSON of what is on record, and changes nothing."""
    words = {" ".join(arguments[:1]), " ".join(arguments[:2])}
    return "--json" in arguments and bool(words & _READING) and "fix" not in arguments


class _Started(subprocess.Popen[bytes]):
    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if kind is not None:
            self.kill()
        super().__exit__(kind, value, traceback)


class Desk:
    """A project directory and the command run in it; as a context manager, no process outlives it.

    With `servers`, commands about sessions work over a server of the same directory and records, which is
    started with the first of them: what a test sets up before that holds for it.
    """

    def __init__(self, place: Path, fake: FakeModels, servers: QuickServers | None = None) -> None:
        self._servers = servers
        self._server: QuickServer | None = None
        self._log = place / "serve.log"
        self._started: list[subprocess.Popen[bytes]] = []
        self.project = place / "project"
        self.home = place / "home"
        self.project.mkdir()
        self.home.mkdir()
        (self.project / "a.txt").write_text("one\ntwo\nthree\n")
        self.fake = fake
        self.environment = clean_environment(
            self.home, ANTHROPIC_API_KEY="sk-planted-0123456789", ANTHROPIC_BASE_URL=fake.anthropic_url
        )

    def __enter__(self) -> "Desk":
        return self

    def __exit__(self, *_: object) -> None:
        self.stop_server()
        for process in self._started:
            process.kill()  # only where a test failed: the others have ended
            process.wait()
            for pipe in (process.stdin, process.stdout, process.stderr):
                if pipe is not None:
                    pipe.close()

    @property
    def is_server(self) -> bool:
        """Whether commands about sessions work over a server."""
        return self._servers is not None

    def stop_server(self) -> None:
        """End the server; the next command starts another, with the settings of then."""
        server, self._server = self._server, None
        if server is not None:
            server.stop()

    def _known(self, environment: Mapping[str, str]) -> dict[str, str]:
        """Return an environment that names the server, where there is one."""
        if self._servers is None:
            return dict(environment)
        if self._server is None:
            self._server = self._servers.start(self.project, self.environment, self._log)
        return {**environment, "BOWERBIRD_URL": self._server.url}

    def start(self, *arguments: str, **options: Any) -> subprocess.Popen[bytes]:
        """Start the command with pipes; in a `with` block that fails it is killed, not waited for."""
        options = {
            "stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE,
            "cwd": self.project, "env": self.environment,
        } | options  # fmt: skip
        options["env"] = self._known(options["env"])
        process = _Started([*COMMAND, *arguments], **options)
        self._started.append(process)
        return process

    def run(self, *arguments: str, stdin: bytes = b"", **options: Any) -> tuple[int, str, str]:
        """Run the command to its end: exit code, standard output, standard error.

        In this process, through its entry point, because importing a model's SDK costs a
        second; what depends on being a process is tested with `start` and `terminal`.
        """
        directory, given = options.pop("cwd", self.project), options.pop("env", self.environment)
        assert not options
        done = _run(arguments, directory, self._known(given), stdin)
        if self.is_server and done[0] == 0 and _reads(arguments):
            beside = _run(arguments, directory, given, b"")
            assert json.loads(done[1]) == json.loads(beside[1]), f"{arguments} is another JSON over a server"
        return done

    def ok(self, *arguments: str, **options: Any) -> str:
        """Run the command, which must succeed; return its standard output."""
        code, out, err = self.run(*arguments, **options)
        assert code == 0, (code, err, out)
        return out

    def terminal(self, *arguments: str, **options: Any) -> Terminal:
        """Start the command under a pseudo-terminal."""
        options = {"cwd": self.project, "environment": self.environment} | options
        options["environment"] = self._known(options["environment"])
        return Terminal(arguments, **options)

    def edit(self, *steps: dict[str, Any], answer: str = "Done.") -> None:
        """Have the model make these calls, one batch, then answer; it reads what it writes over."""
        over = [step["input"]["path"] for step in steps if step["name"] == "write_file"]
        reads = [
            {"name": "read_file", "input": {"path": path}} for path in over if (self.project / path).is_file()
        ]
        self.fake.script({"tools": [*reads, *steps]}, {"text": answer})
