"""One loaded weights file: generation off the event loop, one request at a time, stopped within a token.

Here: loading, the queue, streaming, cancelling, closing; the only module that knows `xllamacpp`.
Not here: prompts, grammars, what a text means.

The engine is llama.cpp's server used in process. It insists on listening somewhere, so it gets a
Unix socket in a private directory, with a random key, and both socket and directory are removed
before the first request: nobody can connect. Until then it is asked for the evaluated beginning that
an earlier process left on disk (`beginnings.py`).

One worker thread owns the engine. A request's generator only waits for what that thread sends, so
closing it returns at once; the thread stops at the next token, or at the next `BATCH` tokens while
a prompt is evaluated.
"""

import asyncio
import importlib
import importlib.metadata
import importlib.util
import os
import platform
import secrets
import shutil
import tempfile
import threading
import weakref
from collections.abc import AsyncGenerator, Callable, Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bowerbird.core.errors import ConfigError, ModelError
from bowerbird.core.threads import to_thread, waking
from bowerbird.models.local.beginnings import Door, bring_back, key_of, prepared

BATCH = 64
"""Tokens of a prompt between two looks at the stop flag: 0.6 s on two cores, and as fast as more."""

CACHE_MIB = 256
CACHE_REUSE = 32
"""Shortest run of tokens that is reused although something before it changed: the agent replaces old
results by a few words, and what follows them need not be evaluated again."""

DRAFT_FROM, DRAFT_TOKENS = 6, 16
"""Where the last tokens stood earlier in the conversation, what followed there is tried next, all at once: a
rewritten file is mostly a copy. The text is the same, written in half of the time or less."""

SPIN_COUNT = "10000"
_READ_BYTES = 8 << 20
INSTALL = "pip install 'bowerbird[local]'"


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
class Generation:
    """One request: `messages` as `{"role", "content"}`, and what bounds the answer.

    Attributes:
        grammar: in the engine's notation; empty = free text.
        max_tokens: most tokens of the answer.
        temperature: 0 is deterministic.
        seed: for temperatures over 0.
        beginnings: what such requests begin with, the shortest first, each the beginning of the next:
            whole messages, the last of them perhaps cut. The first request after loading finds the longest
            evaluated, if a process before this one did that.
    """

    messages: Sequence[Mapping[str, str]]
    max_tokens: int
    grammar: str = ""
    temperature: float = 0.0
    seed: int = 0
    beginnings: Sequence[Sequence[Mapping[str, str]]] = ()


@dataclass(frozen=True, slots=True)
class Counts:
    """Tokens of one generation."""

    evaluated: int = 0
    reused: int = 0
    generated: int = 0


@dataclass(frozen=True, slots=True)
class Piece:
    """What arrived: text, or at the end `finish` (`stop`, `length`) with the counts."""

    text: str = ""
    finish: str = ""
    counts: Counts = Counts()


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
        # A box that the finalizer can empty: the native server must go before the interpreter does.
        self._server: list[Any] = []
        self._closed = False
        self._finalizer = weakref.finalize(self, self._server.clear)

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

        def send(item: Piece | BaseException | None) -> None:
            try:
                loop.call_soon_threadsafe(arrived.put_nowait, item)
            except RuntimeError:  # the loop was closed: nobody waits any more
                job.stopped.set()

        job = _Job(generation, send)
        self._thread.submit(self._run, job)
        try:
            while (item := await arrived.get()) is not None:
                if isinstance(item, BaseException):
                    raise item
                yield item
        finally:
            job.stopped.set()

    async def close(self) -> None:
        """Unload; waits for the token under way. May be called twice."""
        self._closed = True
        self._thread.shutdown(wait=False, cancel_futures=True)
        await to_thread(self._thread.shutdown)
        self._finalizer()

    def _refuse_closed(self) -> None:
        if self._closed:
            raise _failure(self.path, "the embedded model was closed")

    # -------------------------------------------------- in the worker thread

    def _run(self, job: _Job) -> None:
        try:
            if not job.stopped.is_set():
                self._answer(self._ready(job), job)
            job.send(None)
        except BaseException as error:  # noqa: BLE001 - every failure belongs to the one who waits
            job.send(error)

    def _ready(self, job: _Job | None = None) -> Any:
        if not self._server:
            self._load(job)
        return self._server[0]

    def _load(self, job: _Job | None) -> None:
        kept = self.options.beginnings
        if job is None or not job.generation.beginnings or kept is None or not prepared(kept):
            kept = None
        with _private_directory() as private:
            door = Door(private / "engine.sock", secrets.token_hex(16))
            self._server.append(_load(self.path, self.options, door, kept))
            if job is not None and kept is not None:
                self._begin(job, kept, door)

    def _begin(self, job: _Job, kept: Path, door: Door) -> None:
        def bring(beginnings: Sequence[Sequence[Mapping[str, str]]]) -> None:
            *shorter, beginning = beginnings
            alone = Generation((*beginning, {"role": "user", "content": "…"}), 1)

            def evaluate() -> bool:
                if shorter:
                    bring(shorter)
                return self._evaluated(alone, job)

            engine = importlib.metadata.version("xllamacpp")
            bring_back(kept, key_of(self.path, engine, self.options.context, beginning), door, evaluate)

        bring(job.generation.beginnings)

    def _evaluated(self, alone: Generation, job: _Job) -> bool:
        def on_chunk(_chunk: Any) -> bool:
            return _stopping(job)

        self._server[0].handle_chat_completions(_body(alone), on_chunk)
        return not job.stopped.is_set()

    def _answer(self, server: Any, job: _Job) -> None:
        state = _Reading(self.path)

        def on_chunk(chunk: Any) -> bool:
            if _stopping(job):
                return True
            for piece in state.read(chunk):
                job.send(piece)
            return False

        server.handle_chat_completions(_body(job.generation), on_chunk)
        if job.stopped.is_set():
            return
        if state.error is not None:
            raise state.error
        job.send(Piece(finish=state.finish or "stop", counts=state.counts))


@dataclass(slots=True)
class _Reading:
    """What a generation's chunks have said so far."""

    path: Path
    finish: str = ""
    counts: Counts = Counts()
    error: ModelError | None = None

    def read(self, data: Mapping[str, Any]) -> list[Piece]:
        """Return the pieces in one chunk."""
        if "error" in data:
            self.error = _engine_error(self.path, data["error"])
            return []
        timings = data.get("timings")
        if timings:
            self.counts = Counts(
                *(int(timings.get(key, 0)) for key in ("prompt_n", "cache_n", "predicted_n")),
            )
        pieces: list[Piece] = []
        for choice in data.get("choices", ()):
            self.finish = choice.get("finish_reason") or self.finish
            text = choice.get("delta", {}).get("content")
            if text:
                pieces.append(Piece(text))
        return pieces


def _body(generation: Generation) -> dict[str, Any]:
    body: dict[str, Any] = {
        "messages": [dict(message) for message in generation.messages],
        "max_tokens": generation.max_tokens,
        "temperature": generation.temperature,
        "seed": generation.seed,
        "cache_prompt": True,
        "stream": True,
        # Without these chunks nothing would ask for the stop flag while a prompt is evaluated.
        "return_progress": True,
    }
    if generation.grammar:
        body["grammar"] = generation.grammar
    return body


def _stopping(job: _Job) -> bool:
    return job.stopped.is_set() or not threading.main_thread().is_alive()


@contextmanager
def _private_directory() -> Generator[Path]:
    private = tempfile.mkdtemp(prefix="bowerbird-")
    try:
        yield Path(private)
    finally:
        shutil.rmtree(private, ignore_errors=True)


def _load(path: Path, options: EngineOptions, door: Door, kept: Path | None) -> Any:
    os.environ.setdefault("GOMP_SPINCOUNT", SPIN_COUNT)  # spinning threads starve a busy machine
    xllamacpp: Any = importlib.import_module("xllamacpp")  # it has no types

    params = xllamacpp.CommonParams()
    params.model.path = str(path)
    params.n_ctx = options.context
    params.n_parallel = 1
    params.n_batch = params.n_ubatch = BATCH
    params.cpuparams.n_threads = options.threads or len(os.sched_getaffinity(0))
    params.no_extra_bufts = True  # a second copy of the weights, 0.6 GB, for little speed
    params.cache_ram_mib = CACHE_MIB
    params.n_ctx_checkpoints = 0
    params.n_cache_reuse = CACHE_REUSE
    params.fit_params = False
    params.verbosity = -1
    params.warmup = False  # the first evaluation is the same work, and can be stopped
    params.n_threads_http = 1
    params.ui = params.endpoint_slots = False
    params.speculative.types = [xllamacpp.common_speculative_type.COMMON_SPECULATIVE_TYPE_NGRAM_SIMPLE]
    params.speculative.ngram_simple.size_n = DRAFT_FROM
    params.speculative.ngram_simple.size_m = DRAFT_TOKENS
    if kept is not None:
        params.slot_save_path = f"{kept}/"
    params.hostnames = [str(door.path)]
    params.api_keys = [door.key]
    try:
        _read_ahead(path)
        return xllamacpp.Server(params)
    except OSError as error:
        raise _failure(path, f"cannot read the model: {error.strerror or error}") from error
    except RuntimeError as error:
        raise _failure(path, f"cannot load the model: {error}") from error


def _read_ahead(path: Path) -> None:
    """Have the file in memory: the engine reads it while nothing else of the process can run.

    From a slow disk that takes longer than a session's lease lasts.
    """
    piece = bytearray(_READ_BYTES)
    with path.open("rb", buffering=0) as file:
        while file.readinto(piece):
            pass


def _engine_error(path: Path, said: Mapping[str, Any]) -> ModelError:
    if said.get("type") == "exceed_context_size_error":
        return ModelError(
            f"the conversation is too long for the embedded model: {said.get('n_prompt_tokens')} tokens, "
            f"it takes {said.get('n_ctx')}",
            kind="context_overflow",
            provider="local",
            model=path.name,
        )
    return _failure(path, f"the embedded model failed: {str(said.get('message', said))[:500]}")


def _failure(path: Path, message: str) -> ModelError:
    return ModelError(f"{message} ({path})", kind="local", provider="local", model=path.name)


def _has_avx2() -> bool:
    try:
        flags = Path("/proc/cpuinfo").read_text(encoding="ascii", errors="replace")
    except OSError:
        return True  # not a Linux: let the engine say so itself
    return " avx2 " in flags.replace("\n", " ")
