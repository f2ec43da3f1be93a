"""Which weights Bowerbird knows, and whether they lie complete in the data directory.

Here: names, sizes and hashes; finding and verifying a file. Not here: getting one
(`fetch.py`), evaluating it (`engine.py`).

A file that is as long as it should be is hashed once; a stamp beside it keeps the size and
time of the file that passed, so later starts cost one `stat`.
"""

import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

MAGIC = b"GGUF"
_BLOCK = 1 << 20


@dataclass(frozen=True, slots=True)
class Weights:
    """One known weights file.

    Attributes:
        name: short name for people.
        file_name: name in `<data dir>/models`.
        size: bytes.
        sha256: of the whole file, hexadecimal.
        lock: data file of this package with the wheels that hold its parts, by hash.
        url: the publisher's own file, the last source.
        context_window: tokens the model was trained for.
    """

    name: str
    file_name: str
    size: int
    sha256: str
    lock: Path
    url: str
    context_window: int = 32_768


_HERE = Path(__file__).parent
_PUBLISHER = "https://huggingface.co/Qwen"

STANDARD = Weights(
    name="Qwen2.5-Coder 1.5B",
    file_name="qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
    size=1_117_320_768,
    sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
    lock=_HERE / "weights-1.5b.lock.txt",
    url=f"{_PUBLISHER}/Qwen2.5-Coder-1.5B-Instruct-GGUF/resolve/main/qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
)
SMALL = Weights(
    name="Qwen2.5-Coder 0.5B",
    file_name="qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
    size=491_400_064,
    sha256="1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
    lock=_HERE / "weights-0.5b.lock.txt",
    url=f"{_PUBLISHER}/Qwen2.5-Coder-0.5B-Instruct-GGUF/resolve/main/qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
)
KNOWN = (STANDARD, SMALL)


def models_dir(data_dir: Path) -> Path:
    """Return where weights lie in a data directory."""
    return data_dir / "models"


def weights_path(weights: Weights, data_dir: Path) -> Path:
    """Return where `weights` lie, or would lie."""
    return models_dir(data_dir) / weights.file_name


def find_weights(data_dir: Path, small: bool | None = None) -> Path | None:
    """Return verified weights in `data_dir`, or None.

    Args:
        data_dir: Bowerbird's data directory.
        small: True for the 0.5B file only, False for the 1.5B file only; None = the larger one present.

    Example:
        >>> find_weights(Path("/nowhere")) is None
        True
    """
    wanted = KNOWN if small is None else (SMALL if small else STANDARD,)
    for weights in wanted:
        path = weights_path(weights, data_dir)
        if is_complete(path, weights):
            return path
    return None


def is_complete(path: Path, weights: Weights) -> bool:
    """Whether `path` is exactly `weights`; hashes the file unless its stamp still holds."""
    try:
        stat = path.stat()
    except OSError:
        return False
    if stat.st_size != weights.size:
        return False
    if _read_stamp(path) == _stamp_of(stat, weights):
        return True
    if hash_file(path) != weights.sha256:
        return False
    write_stamp(path, weights)
    return True


def write_stamp(path: Path, weights: Weights) -> None:
    """Note that `path` was found to be `weights`; where nothing can be written, it is hashed again."""
    try:
        _stamp_path(path).write_text(_stamp_of(path.stat(), weights), encoding="ascii")
    except OSError:
        return


def hash_file(path: Path, on_bytes: Callable[[int], None] | None = None) -> str:
    """Return the sha256 of a file; `on_bytes` gets the length of each block read."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
            if on_bytes is not None:
                on_bytes(len(block))
    return digest.hexdigest()


def is_gguf(path: Path) -> bool:
    """Whether `path` begins as a weights file does."""
    with path.open("rb") as file:
        return file.read(len(MAGIC)) == MAGIC


def _stamp_path(path: Path) -> Path:
    return path.with_name(path.name + ".ok")


def _stamp_of(stat: os.stat_result, weights: Weights) -> str:
    return f"{weights.sha256} {stat.st_size} {stat.st_mtime_ns}\n"


def _read_stamp(path: Path) -> str:
    try:
        return _stamp_path(path).read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError):
        return ""
