"""One weights file: generation off the event loop, one request at a time, stopped within a token.

Here: the queue, streaming, cancelling, closing; starting and ending the process that evaluates. Not here:
what that process does (`native.py`); prompts, grammars, what a text means.

One worker thread talks to the process. A request's generator only waits for what that thread sends, so
closing it returns at once; the process stops at the next token, or at the next `BATCH` tokens while a prompt
is evaluated. It ends with us, however we end; where it ends by itself, the request under way fails, and the
next one starts another.
"""

import asyncio
import contextlib
import importlib.util
import os
import platform
import subprocess
import sys
import threading
import weakref
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from bowerbird.core.errors import ConfigError, ModelError
from bowerbird.core.forms import decode
from bowerbird.core.processes.host_programs import plain_environment, popen
from bowerbird.core.threads import to_thread, waking
from bowerbird.models.local.generation import (
    STOP_BYTES,
    Answer,
    Ask,
    Counts,
    Ended,
    Failed,
    FailureKind,
    Generation,
    Load,
    Loaded,
    Said,
    receive,
    send,
)

BATCH = 64
"""Tokens of a prompt between two looks at the stop flag: 0.6 s on two cores, and as fast as more."""

SPIN_COUNT = "10000"
INSTALL = "pip install 'bowerbird[local]'"
_OF_THE_ENGINE = ("GGML_", "GOMP_", "KMP_", "LLAMA_", "OMP_", "OPENBLAS_")
_NEEDED = ("bowerbird", "msgspec", "xllamacpp")
_END_S = 5.0


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """How weights are loaded.

    Attributes:
        context: tokens.
        threads: None = every processor this process may use.
        beginnings: where evaluated beginnings are kept between processes; None = nowhere.
    """

    context: int = 16_384
    threads: int | None = None
    beginnings: Path | None = None


@dataclass(frozen=True, slots=True)
class Piece:
    """What arrived: text, or at the end `finish` (`stop`, `length`) with the counts."""

    text: str = ""
    finish: str = ""
    counts: Counts = field(default_factory=Counts)


def check_available() -> None:
    """Raise ConfigError when the engine is not installed or cannot run on this processor."""
    if importlib.util.find_spec("xllamacpp") is None:
        raise ConfigError(
            f"the embedded model needs the extra `local`, which is not installed; run: {INSTALL}"
        )
    if platform.machine() in ("x86_64", "AMD64") and not _has_avx2():
        raise ConfigError(
            "the embedded model needs a processor with AVX2; use a model of a provider or of your own server"
        )


@dataclass(slots=True)
class _Job:
    generation: Generation
    send: Callable[[Piece | BaseException | None], None]
    stopped: threading.Event = field(default_factory=threading.Event)
    number: int = 0


class Engine:
    """One weights file, loaded at first use.

    Args:
        path: the GGUF file.
        options: see `EngineOptions`.

    Example:
        engine = Engine(Path("model.gguf"))
        async with aclosing(engine.generate(generation)) as pieces:
            async for piece in pieces:
                print(piece.text, end="")
    """

    def __init__(self, path: Path, options: EngineOptions = EngineOptions()) -> None:
        self.path = path
        self.options = options
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="bowerbird-local")
        # A box that the finalizer can empty: the process must end when nobody has the engine any more.
        self._running: list[_Process] = []
        self._numbers = 0
        self._closed = False
        self._finalizer = weakref.finalize(self, _end, self._running)

    async def load(self) -> None:
        """Load the weights now.

        Raises:
            ModelError: kind `local`; the file cannot be loaded, or the engine was closed.
        """
        self._refuse_closed()
        await asyncio.wrap_future(self._thread.submit(waking(self._ready)))

    async def generate(self, generation: Generation) -> AsyncGenerator[Piece, None]:
        """Yield the answer's pieces, the last with `finish`. Closing the generator stops the engine.

        Raises:
            ModelError: kind `context_overflow` when the prompt is too long, else `local`.
        """
        self._refuse_closed()
        loop = asyncio.get_running_loop()
        arrived: asyncio.Queue[Piece | BaseException | None] = asyncio.Queue()

        def send_on(item: Piece | BaseException | None) -> None:
            try:
                loop.call_soon_threadsafe(arrived.put_nowait, item)
            except RuntimeError:  # the loop was closed: nobody waits any more
                self._stop(job)

        job = _Job(generation, send_on)
        self._thread.submit(self._run, job)
        try:
            while (item := await arrived.get()) is not None:
                if isinstance(item, BaseException):
                    raise item
                yield item
        finally:
            self._stop(job)

    async def close(self) -> None:
        """Unload; a request under way fails. May be called twice."""
        self._closed = True
        self._thread.shutdown(wait=False, cancel_futures=True)
        await to_thread(_end, self._running)
        await to_thread(self._thread.shutdown)
        self._finalizer()

    def _refuse_closed(self) -> None:
        if self._closed:
            raise _failure(self.path, "the embedded model was closed")

    def _stop(self, job: _Job) -> None:
        job.stopped.set()
        for process in tuple(self._running):
            process.stop(job.number)  # 0 while it is queued: it is never begun

    # -------------------------------------------------- in the worker thread

    def _run(self, job: _Job) -> None:
        try:
            # Numbered before the look: whoever stops it later finds the number.
            self._numbers += 1
            job.number = self._numbers
            if not job.stopped.is_set():
                self._answer(self._ready(job), job)
            job.send(None)
        except BaseException as error:  # noqa: BLE001 - every failure belongs to the one who waits
            job.send(error)

    def _ready(self, job: _Job | None = None) -> "_Process":
        if self._running and not self._running[0].has_ended():
            return self._running[0]
        _end(self._running)
        kept = self.options.beginnings
        loading = Load(
            path=str(self.path),
            context=self.options.context,
            threads=self.options.threads or len(os.sched_getaffinity(0)),
            batch=BATCH,
            kept=str(kept) if kept is not None else "",
            number=job.number if job is not None else 0,
            beginnings=job.generation.beginnings if job is not None else (),
        )
        try:
            process = _Process()
        except OSError as error:
            raise _failure(self.path, f"cannot start the model: {error.strerror or error}") from error
        self._running.append(process)
        self._refuse_closed_now()
        if job is not None and job.stopped.is_set():
            process.stop(job.number)
        answer = self._next(process, loading)
        if not isinstance(answer, Loaded):
            _end(self._running)
            raise _failure(self.path, answer.message if isinstance(answer, Failed) else "it said nothing")
        return process

    def _answer(self, process: "_Process", job: _Job) -> None:
        answer = self._next(process, Ask(job.number, job.generation))
        while isinstance(answer, Said):
            job.send(Piece(answer.text))
            answer = self._next(process)
        if job.stopped.is_set():
            return
        if isinstance(answer, Ended):
            job.send(Piece(finish=answer.finish, counts=answer.counts))
            return
        assert isinstance(answer, Failed), "it was loaded long ago"
        raise _failure(self.path, answer.message, answer.kind)

    def _next(self, process: "_Process", message: Load | Ask | None = None) -> Answer:
        """Return what the process says next, perhaps to a message.

        Raises:
            ModelError: it has ended.
        """
        answer = process.exchange(message)
        if answer is None:
            self._refuse_closed_now()
            how = process.how_it_ended()
            _end(self._running)
            raise _failure(
                self.path, f"the embedded model's process ended ({how}); the next question starts another"
            )
        return answer

    def _refuse_closed_now(self) -> None:
        if self._closed:
            _end(self._running)
            self._refuse_closed()


class _Process:
    """The running process, and the three pipes to it."""

    def __init__(self) -> None:
        theirs, self._stops = os.pipe2(os.O_CLOEXEC)
        found = [importlib.util.find_spec(name) for name in _NEEDED]
        paths = dict.fromkeys(str(Path(spec.origin).parents[1]) for spec in found if spec and spec.origin)
        load = f"import sys; sys.path.extend({list(paths)!r}); from bowerbird.models.local.native import main"
        try:
            self._process = popen(
                [sys.executable, "-I", "-S", "-c", f"{load}; main({theirs})"],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0,
                pass_fds=(theirs,),
                # Spinning threads starve a busy machine.
                # Spinning threads starve a busy machine.
                env={"GOMP_SPINCOUNT": SPIN_COUNT} | plain_environment(begin=_OF_THE_ENGINE),
            )  # fmt: skip
        except BaseException:
            os.close(self._stops)
            raise
        finally:
            os.close(theirs)
        self._open, self._talking = threading.Lock(), threading.Lock()

    def exchange(self, message: Load | Ask | None) -> Answer | None:
        """Send a message, if there is one, and return what is said next; None when it has ended."""
        assert self._process.stdin is not None and self._process.stdout is not None
        with self._talking, contextlib.suppress(OSError, ValueError):  # it has ended, or we ended it
            if message is not None:
                send(self._process.stdin.fileno(), message)
            goes_on = threading.main_thread().is_alive
            said = receive(self._process.stdout.fileno(), goes_on)
            return decode(said, Answer) if said is not None else None
        return None

    def stop(self, number: int) -> None:
        """Have everything up to a request stopped."""
        with self._open, contextlib.suppress(OSError):
            if number and self._stops >= 0:
                os.write(self._stops, number.to_bytes(STOP_BYTES, "big"))

    def has_ended(self) -> bool:
        """Whether it is gone."""
        return self._process.poll() is not None

    def how_it_ended(self) -> str:
        """In words for people."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_END_S)
        code = self._process.returncode
        if code == -9:
            return "it was killed; perhaps there is too little memory"
        return f"signal {-code}" if code is not None and code < 0 else f"exit code {code}"

    def end(self) -> None:
        """End it now; there is nothing that it would have to save."""
        self._process.kill()
        with self._open:
            if self._stops >= 0:
                os.close(self._stops)
                self._stops = -1
        self._process.wait()
        with self._talking:  # whoever reads has seen the end by now
            for pipe in (self._process.stdin, self._process.stdout):
                if pipe is not None:
                    pipe.close()


def _end(running: list[_Process]) -> None:
    while running:
        running.pop().end()


def _failure(path: Path, message: str, kind: FailureKind = "local") -> ModelError:
    return ModelError(f"{message} ({path})", kind=kind, provider="local", model=path.name)


def _has_avx2() -> bool:
    try:
        flags = Path("/proc/cpuinfo").read_text(encoding="ascii", errors="replace")
    except OSError:
        return True  # not a Linux: let the engine say so itself
    return " avx2 " in flags.replace("\n", " ")
