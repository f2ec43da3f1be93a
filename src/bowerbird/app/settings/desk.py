"""Changing the settings of a running server, and giving it a first model (UI-83).

Here: the order of a change (checked whole, then written, then loaded), the fetch of the embedded model. Not
here: what may be changed (`rules.py`), what takes effect (`reloading.py`), the file's text.
"""

import asyncio
import contextlib
import logging
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bowerbird.app.application import Application
from bowerbird.app.choice import choose_model
from bowerbird.app.mapping import EMBEDDED, model_settings
from bowerbird.app.settings.rules import (
    check_addresses,
    shown_settings,
    target_file,
    wanted_values,
    why_locked,
)
from bowerbird.config import Loaded
from bowerbird.config.editing import edited, literal, put_beside, take_place
from bowerbird.config.keys import Path as KeyPath
from bowerbird.config.yaml_text import LARGEST_FILE_BYTES, YamlProblem
from bowerbird.core.errors import BowerbirdError, ConfigError, InvalidArgument, NoModel
from bowerbird.core.model_presets import PRESETS
from bowerbird.core.processes.alone import alone_when, claim_in
from bowerbird.core.threads import in_thread, to_thread
from bowerbird.models.local.weights import find_weights
from bowerbird.models.registry import resolve_name
from bowerbird.server.common.context import Reloaded
from bowerbird.server.common.desk import ModelFetch, SettingRow, Setup

if TYPE_CHECKING:
    from bowerbird.models.local.fetch import FetchProgress

_log = logging.getLogger(__name__)

_OTHERS_S = 30.0  # another server's change takes a moment
LoadFrom = Callable[[Path], Loaded]
NO_ENGINE = "needs the extra `local`: pip install 'bowerbird[local]' on the server, then start it again"


class _Stopped(BowerbirdError):
    """The server ends, or somebody stopped the fetch."""


class SettingsDesk:
    """`server.common.desk.Desk` of one process.

    Args:
        application: whose settings these are.
        load_from: reads them with another file in the settings file's place.
        reload: loads them anew.
    """

    def __init__(
        self, application: Application, load_from: LoadFrom, reload: Callable[[], Awaitable[Reloaded]]
    ) -> None:
        self._application = application
        self._load_from = load_from
        self._reload = reload
        self._one = asyncio.Lock()
        self._fetch = ModelFetch()
        self._task: asyncio.Task[None] | None = None
        self._stop = threading.Event()

    @property
    def _loaded(self) -> Loaded:
        return self._application.loaded

    def rows(self) -> Sequence[SettingRow]:
        """See `Desk`."""
        return tuple(shown_settings(self._loaded))

    async def change(self, values: Mapping[str, Any], reset: Sequence[str]) -> Reloaded:
        """See `Desk`."""
        async with self._one:
            wanted = wanted_values(values)
            removed = [path for path in wanted_values(dict.fromkeys(reset)) if path not in wanted]
            for path in (*wanted, *removed):
                locked = why_locked(self._loaded, path)
                if locked:
                    raise InvalidArgument(f"{'.'.join(path)[:200]}: {locked}")
            check_addresses(self._loaded, wanted)
            try:
                async with _alone(target_file(self._loaded)):
                    before = await in_thread(self._write, wanted, removed)
                    done = await self._reload()
                    if done.errors:
                        # What was valid a moment ago is refused by the running parts: nothing changed there.
                        await in_thread(self._put_back, before)
            except YamlProblem as error:
                raise ConfigError(
                    f"the settings file cannot be read: {error.problem}, line {error.line}"
                ) from error
            except OSError as error:
                raise ConfigError(
                    f"the settings file cannot be written: {error.strerror or error}"
                ) from error
        if done.errors:
            raise ConfigError("\n".join(done.errors), done.errors)
        _log.info(
            "settings changed from a page: %s", ", ".join(".".join(path) for path in (*wanted, *removed))
        )
        return done

    def _write(self, wanted: Mapping[KeyPath, Any], removed: Sequence[KeyPath]) -> bytes | None:
        """Check the whole, then write it; return what was there before."""
        file = target_file(self._loaded)
        before = _read(file)
        values = {path: literal(value) for path, value in wanted.items()}
        new = put_beside(file, edited(before or b"", values, removed))
        try:
            self._load_from(new)
            take_place(new, file)
        except ConfigError as error:
            # Errors name the file that people know, not the one that is tried out.
            problems = [problem.replace(str(new), str(file)) for problem in error.problems]
            raise ConfigError("\n".join(problems), problems) from error
        finally:
            new.unlink(missing_ok=True)
        return before

    def _put_back(self, before: bytes | None) -> None:
        file = target_file(self._loaded)
        if before is None:
            file.unlink(missing_ok=True)
        else:
            take_place(put_beside(file, before), file)

    # ------------------------------------------------------------ a first model

    async def setup(self) -> Setup:
        """See `Desk`."""
        loaded = self._loaded
        problem, model = "", str(resolve_name(None, model_settings(loaded)))
        try:
            model = (await to_thread(choose_model, loaded)).name
        except (NoModel, ConfigError) as error:
            problem = str(error)
        embedded = await to_thread(_embedded, loaded)
        if model == EMBEDDED and embedded != "ready":
            problem = "the embedded model is chosen, but it is not on the server yet"
        names = (("provider", "name"), ("provider", "model"))
        return Setup(
            model=model,
            problem=problem,
            embedded=embedded,
            fetch=self._fetch,
            providers=tuple(
                (p.name, p.key_variable) for p in PRESETS.values() if p.key_variable and p.base_url
            ),
            file=str(target_file(loaded)),
            locked=next((why for why in (why_locked(loaded, name) for name in names) if why), ""),
        )

    async def fetch(self, small: bool) -> None:
        """See `Desk`."""
        if self._task is not None and not self._task.done():
            return
        if find_spec("xllamacpp") is None:
            raise InvalidArgument(f"the embedded model {NO_ENGINE}")
        self._stop = threading.Event()
        self._fetch = ModelFetch(state="running", small=small)
        self._task = asyncio.create_task(self._fetched(small, self._stop), name="fetch of the embedded model")

    async def stop_fetch(self) -> None:
        """See `Desk`."""
        self._stop.set()
        if self._task is not None:
            await asyncio.gather(self._task, return_exceptions=True)

    async def _fetched(self, small: bool, stop: threading.Event) -> None:
        def on_progress(progress: "FetchProgress") -> None:
            if stop.is_set():
                raise _Stopped("stopped")
            self._fetch = replace(self._fetch, step=progress.step, done=progress.done, total=progress.total)

        try:
            await to_thread(_fetch, self._application.data_dir, small, on_progress)
        except _Stopped:
            self._fetch = ModelFetch()
            return
        except (BowerbirdError, OSError) as error:
            self._fetch = replace(self._fetch, state="failed", error=str(error))
            return
        if await self._use_embedded():
            self._fetch = ModelFetch(state="done", small=small)

    async def _use_embedded(self) -> bool:
        """Let conversations run on the model that was fetched; where another source names one, that stays."""
        try:
            await self.change({"provider.name": "local", "provider.model": "default"}, ())
        except InvalidArgument:
            await self._reload()
        except BowerbirdError as error:
            self._fetch = replace(self._fetch, state="failed", error=str(error))
            return False
        return True


@asynccontextmanager
async def _alone(file: Path) -> AsyncGenerator[None]:
    """Keep other servers from writing the settings file between our reading and writing it.

    Raises:
        ConfigError: one of them does not come to an end; nothing has changed.
    """
    directory = await to_thread(_directory_of, file)
    async with AsyncExitStack() as held:
        try:
            async with asyncio.timeout(_OTHERS_S):
                await held.enter_async_context(alone_when(lambda: claim_in(directory)))
        except TimeoutError:
            raise ConfigError(
                f"another process has been changing files in {directory} for {_OTHERS_S:.0f} s; try again"
            ) from None
        yield


def _directory_of(file: Path) -> Path:
    directory = file.resolve().parent
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    return directory


def _read(file: Path) -> bytes | None:
    with contextlib.suppress(FileNotFoundError), file.open("rb") as stream:
        return stream.read(LARGEST_FILE_BYTES + 1)
    return None


def _embedded(loaded: Loaded) -> str:
    """`ready`, `absent`, or why the embedded model cannot be used."""
    if find_spec("xllamacpp") is None:
        return NO_ENGINE
    settings = model_settings(loaded)
    found = find_weights(settings.local.data_dir or Path(), True if settings.local.small else None)
    return "ready" if found is not None else "absent"


def _fetch(data_dir: Path, small: bool, on_progress: "Callable[[FetchProgress], None]") -> None:
    from bowerbird.models.local.fetch import fetch_weights  # what it needs, a server hardly ever does

    fetch_weights(data_dir, small, on_progress)
