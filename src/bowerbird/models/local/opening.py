"""Opening `local:<name>`: which file it is, and one engine for each file.

Here: the name, the settings, the sharing of engines. Not here: fetching weights, the engine, the adapter.
"""

import asyncio
from dataclasses import dataclass
from pathlib import Path
from weakref import WeakValueDictionary

from bowerbird.core.errors import ConfigError
from bowerbird.core.requests import ModelInfo
from bowerbird.models.local.adapter import LocalModel
from bowerbird.models.local.engine import Engine, EngineOptions, check_available
from bowerbird.models.local.weights import KNOWN, find_weights, is_gguf
from bowerbird.models.settings import LocalSettings

PROVIDER = "local"
CONTEXT = 16_384
"""Tokens by default: half of what the weights take; its memory is 0.5 GB."""

MAX_OUTPUT = 2_048
FETCH = "bowerbird model fetch"


def open_local(name: str, settings: LocalSettings) -> LocalModel:
    """Return the embedded model called `name`; its weights are loaded at the first request.

    Args:
        name: `default` (the 1.5B weights in the data directory, else the 0.5B ones; with
            `settings.small` the 0.5B ones), or the path of a GGUF file.
        settings: see `LocalSettings`.

    Raises:
        ConfigError: the extra or the file is missing, or the processor cannot run the engine.

    Example:
        model = open_local("default", LocalSettings(data_dir=Path("~/.local/share/bowerbird").expanduser()))
    """
    check_available()
    path = _default(settings) if name == "default" else _named(name)
    kept = settings.data_dir / "models" / "beginnings" if settings.data_dir is not None else None
    options = EngineOptions(settings.context_window or CONTEXT, settings.threads, kept)
    lease = _lease(path.resolve(), options)
    info = ModelInfo(
        provider=PROVIDER,
        model=name,
        context_window=lease.engine.options.context,
        max_output_tokens=min(MAX_OUTPUT, lease.engine.options.context // 4),
        images=False,
        parallel_tools=False,
        constrained_output=True,
        cache=True,
        priced=True,
        small=True,
    )
    return LocalModel(lease.engine, info, all_tools=settings.all_tools, on_close=lease.release)


def _default(settings: LocalSettings) -> Path:
    if settings.data_dir is None:
        raise ConfigError("local:default needs a data directory; name a file instead: local:/path/model.gguf")
    found = find_weights(settings.data_dir, True if settings.small else None)
    if found is None:
        flag = " --small" if settings.small else ""
        raise ConfigError(
            f"the embedded model is not in {settings.data_dir / 'models'}; fetch it: {FETCH}{flag}"
        )
    return found


def _named(name: str) -> Path:
    path = Path(name).expanduser()
    if path.suffix != ".gguf" and not path.is_absolute():
        known = ", ".join(weights.name for weights in KNOWN)
        raise ConfigError(
            f"local:{name} is not a model; use local:default ({known}) or the path of a GGUF file, "
            "like local:/path/model.gguf"
        )
    try:
        readable = is_gguf(path)
    except OSError as error:
        raise ConfigError(f"cannot read the weights {path}: {error.strerror or error}") from error
    if not readable:
        raise ConfigError(f"{path} is not a GGUF file")
    return path


# -------------------------------------------------------------------- one engine a file

# Weights take a gigabyte, so two models of one file must share it, wherever in the process they were
# opened: this is the one thing here that belongs to the process. It holds nothing alive.
_ENGINES: "WeakValueDictionary[Path, _Shared]" = WeakValueDictionary()


class _Shared:
    """An engine and how many models use it."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.users = 0


@dataclass(slots=True)
class _Lease:
    shared: _Shared
    path: Path

    @property
    def engine(self) -> Engine:
        return self.shared.engine

    async def release(self) -> None:
        self.shared.users -= 1
        if self.shared.users == 0:
            _ENGINES.pop(self.path, None)
            await asyncio.shield(self.shared.engine.close())


def _lease(path: Path, options: EngineOptions) -> _Lease:
    shared = _ENGINES.get(path)
    if shared is None:
        shared = _ENGINES[path] = _Shared(Engine(path, options))
    shared.users += 1
    return _Lease(shared, path)
