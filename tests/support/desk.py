"""A project, a home and the `bowerbird` command, as people have them; the model is scripted.

Here: running the command. Not here: what tests expect of it.
"""

import contextlib
import io
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from support.fake_models import FakeModels
from support.terminals import COMMAND, Terminal, clean_environment

from bowerbird.cli.main import run_command


@contextlib.contextmanager
def _standing_in(
    directory: Path, environment: Mapping[str, str], stdin: bytes, out: io.BytesIO, err: io.BytesIO
) -> Iterator[None]:
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


class _Started(subprocess.Popen[bytes]):
    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if kind is not None:
            self.kill()
        super().__exit__(kind, value, traceback)


class Desk:
    """A project directory and the command run in it; as a context manager, no process outlives it."""

    def __init__(self, place: Path, fake: FakeModels) -> None:
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
        for process in self._started:
            process.kill()  # only where a test failed: the others have ended
            process.wait()
            for pipe in (process.stdin, process.stdout, process.stderr):
                if pipe is not None:
                    pipe.close()

    def start(self, *arguments: str, **options: Any) -> subprocess.Popen[bytes]:
        """Start the command with pipes; in a `with` block that fails it is killed, not waited for."""
        options = {
            "stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE,
            "cwd": self.project, "env": self.environment,
        } | options  # fmt: skip
        process = _Started([*COMMAND, *arguments], **options)
        self._started.append(process)
        return process

    def run(self, *arguments: str, stdin: bytes = b"", **options: Any) -> tuple[int, str, str]:
        """Run the command to its end: exit code, standard output, standard error.

        In this process, through its entry point, because importing a model's SDK costs a
        second; what depends on being a process is tested with `start` and `terminal`.
        """
        out, err = io.BytesIO(), io.BytesIO()
        with _standing_in(
            options.pop("cwd", self.project), options.pop("env", self.environment), stdin, out, err
        ):
            assert not options
            code = run_command(arguments)
        return code, out.getvalue().decode(), err.getvalue().decode()

    def ok(self, *arguments: str, **options: Any) -> str:
        """Run the command, which must succeed; return its standard output."""
        code, out, err = self.run(*arguments, **options)
        assert code == 0, err
        return out

    def terminal(self, *arguments: str, **options: Any) -> Terminal:
        """Start the command under a pseudo-terminal."""
        options = {"cwd": self.project, "environment": self.environment} | options
        return Terminal(arguments, **options)

    def edit(self, *steps: dict[str, Any], answer: str = "Done.") -> None:
        """Have the model make these calls, one batch, then answer."""
        self.fake.script({"tools": list(steps)}, {"text": answer})
