"""The process that evaluates: llama.cpp, loaded once, asked over a pipe (`generation.py`).

Here: loading, one request after the other, stopping within a token, evaluated beginnings; the only module
that knows `xllamacpp`. Not here: starting and ending this process, who waits for what (`engine.py`).

A process of its own, since the engine holds its interpreter for seconds while it loads: in a server nobody
would be served and leases would end. What it takes of memory goes with it, and a machine that has too little
ends it and not the server.

The engine is llama.cpp's server used in process. It insists on listening somewhere, so it gets a Unix socket
in a private directory, with a random key, and both socket and directory are removed before the first request:
nobody can connect. Until then it is asked for the evaluated beginning that an earlier process left on disk
(`beginnings.py`).
"""

import contextlib
import importlib
import importlib.metadata
import os
import secrets
import shutil
import signal
import tempfile
import threading
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bowerbird.core.forms import decode
from bowerbird.models.local.beginnings import Door, bring_back, key_of, prepared
from bowerbird.models.local.generation import (
    STOP_BYTES,
    Answer,
    Ask,
    Counts,
    Ended,
    Failed,
    Generation,
    Load,
    Loaded,
    Said,
    receive,
    send,
)

CACHE_MIB = 256
CACHE_REUSE = 32
"""Shortest run of tokens that is reused although something before it changed: the agent replaces old
results by a few words, and what follows them need not be evaluated again."""

DRAFT_FROM, DRAFT_TOKENS = 6, 16
"""Where the last tokens stood earlier in the conversation, what followed there is tried next, all at once: a
rewritten file is mostly a copy. The text is the same, written in half of the time or less."""

_READ_BYTES = 8 << 20
_OOM_SCORE = "500"


def main(stops: int) -> None:
    """Serve the parent on standard input and output until it ends.

    Args:
        stops: a pipe with the numbers of requests that nobody waits for any more, `STOP_BYTES` each.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a person's Ctrl+C is for the parent
    with contextlib.suppress(OSError), Path("/proc/self/oom_score_adj").open("w") as score:
        score.write(_OOM_SCORE)  # where memory runs out it is this process that goes
    out = os.dup(1)
    os.dup2(2, 1)  # whatever the engine prints is none of our answers
    native = _Native(out)
    threading.Thread(target=native.watch, args=(stops,), daemon=True).start()
    loading = receive(0)
    if loading is not None:
        native.serve(decode(loading, Load))
    os._exit(0)  # the engine takes its time to take itself apart


class _Native:
    def __init__(self, out: int) -> None:
        self._out = out
        self._stopped = 0
        self._server: Any = None

    def watch(self, stops: int) -> None:
        """Note the requests that are stopped; end with the parent, whatever is under way."""
        while number := os.read(stops, STOP_BYTES):
            self._stopped = max(self._stopped, int.from_bytes(number, "big"))
        os._exit(0)

    def serve(self, loading: Load) -> None:
        """Load, then answer."""
        failed = self._load(loading)
        self._say(failed or Loaded())
        while failed is None and (asked := receive(0)) is not None:
            self._say(self._answer(decode(asked, Ask)))

    def _say(self, answer: Answer) -> None:
        try:
            send(self._out, answer)
        except OSError:  # the parent is gone
            os._exit(0)

    # -------------------------------------------------- loading

    def _load(self, loading: Load) -> Failed | None:
        kept = Path(loading.kept) if loading.kept and loading.beginnings else None
        if kept is not None and not prepared(kept):
            kept = None
        with _private_directory() as private:
            door = Door(private / "engine.sock", secrets.token_hex(16))
            try:
                _read_ahead(Path(loading.path))
                self._server = _loaded(loading, door, kept)
            except OSError as error:
                return Failed(f"cannot read the model: {error.strerror or error}")
            except (RuntimeError, ImportError) as error:
                return Failed(f"cannot load the model: {error}")
            if kept is not None:
                self._bring(loading, kept, door, loading.beginnings)
        return None

    def _bring(
        self, loading: Load, kept: Path, door: Door, beginnings: Sequence[Sequence[Mapping[str, str]]]
    ) -> None:
        *shorter, beginning = beginnings
        alone = Generation((*beginning, {"role": "user", "content": "…"}), 1)

        def on_chunk(_chunk: Any) -> bool:
            return self._is_stopped(loading.number)

        def evaluate() -> bool:
            if shorter:
                self._bring(loading, kept, door, shorter)
            self._server.handle_chat_completions(_body(alone), on_chunk)
            return not self._is_stopped(loading.number)

        engine = importlib.metadata.version("xllamacpp")
        key = key_of(Path(loading.path), engine, loading.context, beginning)
        bring_back(kept, key, door, evaluate)

    # -------------------------------------------------- answering

    def _is_stopped(self, number: int) -> bool:
        return number <= self._stopped and number > 0

    def _answer(self, asked: Ask) -> Ended | Failed:
        reading = _Reading()

        def on_chunk(chunk: Any) -> bool:
            if self._is_stopped(asked.number):
                return True
            for text in reading.read(chunk):
                self._say(Said(text))
            return False

        if not self._is_stopped(asked.number):
            self._server.handle_chat_completions(_body(asked.generation), on_chunk)
        return reading.failed or Ended(reading.finish or "stop", reading.counts)


class _Reading:
    """What a generation's chunks have said so far."""

    def __init__(self) -> None:
        self.finish = ""
        self.counts = Counts()
        self.failed: Failed | None = None

    def read(self, data: Mapping[str, Any]) -> list[str]:
        """Return the texts in one chunk."""
        if "error" in data:
            self.failed = _failed(data["error"])
            return []
        timings = data.get("timings")
        if timings:
            counted = (int(timings.get(key, 0)) for key in ("prompt_n", "cache_n", "predicted_n"))
            self.counts = Counts(*counted)
        texts: list[str] = []
        for choice in data.get("choices", ()):
            self.finish = choice.get("finish_reason") or self.finish
            text = choice.get("delta", {}).get("content")
            if text:
                texts.append(text)
        return texts


def _failed(said: Mapping[str, Any]) -> Failed:
    if said.get("type") == "exceed_context_size_error":
        sizes = f"{said.get('n_prompt_tokens')} tokens, it takes {said.get('n_ctx')}"
        return Failed(f"the conversation is too long for the embedded model: {sizes}", "context_overflow")
    return Failed(f"the embedded model failed: {str(said.get('message', said))[:500]}")


def _body(generation: Generation) -> dict[str, Any]:
    body: dict[str, Any] = {
        "messages": [dict(message) for message in generation.messages],
        "max_tokens": generation.max_tokens,
        "temperature": generation.temperature,
        "seed": generation.seed,
        "cache_prompt": True,
        "stream": True,
        # Without these chunks nothing would ask whether it was stopped while a prompt is evaluated.
        "return_progress": True,
    }
    if generation.grammar:
        body["grammar"] = generation.grammar
    return body


@contextmanager
def _private_directory() -> Generator[Path]:
    private = tempfile.mkdtemp(prefix="bowerbird-")
    try:
        yield Path(private)
    finally:
        shutil.rmtree(private, ignore_errors=True)


def _loaded(loading: Load, door: Door, kept: Path | None) -> Any:
    xllamacpp: Any = importlib.import_module("xllamacpp")  # it has no types
    params = xllamacpp.CommonParams()
    params.model.path = loading.path
    params.n_ctx = loading.context
    params.n_parallel = 1
    params.n_batch = params.n_ubatch = loading.batch
    params.cpuparams.n_threads = loading.threads
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
    return xllamacpp.Server(params)


def _read_ahead(path: Path) -> None:
    """Have the file in memory: read in order it comes faster than as the engine asks for it."""
    piece = bytearray(_READ_BYTES)
    with path.open("rb", buffering=0) as file:
        while file.readinto(piece):
            pass
