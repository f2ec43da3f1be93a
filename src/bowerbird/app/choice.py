"""Which model a command runs on, decided before anything is started (UI-64, CF-16).

Here: the name from flags and settings, its missing key, the embedded model in its place. Not
here: opening a model.
"""

from pathlib import Path

import msgspec

from bowerbird.app.mapping import EMBEDDED, model_settings
from bowerbird.config import Loaded
from bowerbird.core.errors import ConfigError, NoModel
from bowerbird.models.keys import missing_key_of
from bowerbird.models.prices import keep_rates_in
from bowerbird.models.registry import resolve_name
from bowerbird.models.settings import ModelSettings

INSTALL = "pip install 'bowerbird[local]'"
"""What brings the engine of the embedded model."""


class ChosenModel(msgspec.Struct, frozen=True):
    """The model's name, and a sentence to say when it is not the configured one."""

    name: str
    note: str = ""


def choose_model(loaded: Loaded, wanted: str | None = None) -> ChosenModel:
    """Return the model to run on.

    Args:
        loaded: settings. wanted: named by a flag or the session; None = the configured one.

    Raises:
        ConfigError: an unknown provider, naming those there are; a name that is nearly another model's.
        NoModel: it needs a key that is not set, and there are no embedded weights to use
            instead; the message names the variable and the ways out.
    """
    settings = model_settings(loaded)
    if settings.router.enabled and wanted is None:
        return ChosenModel(f"tier:{settings.router.default_tier}")
    name = resolve_name(wanted, settings)
    if wanted is not None and (doubt := _doubt(wanted, settings)) is not None:
        raise ConfigError(doubt)
    if name.provider == "local":
        return ChosenModel(str(name))
    missing = missing_key_of(name, settings)
    if missing is None:
        return ChosenModel(str(name))
    if wanted is None and has_weights(settings):
        why = missing.split(",")[0]
        return ChosenModel(EMBEDDED, f"{why}: using the embedded model ({EMBEDDED}; local, small model)")
    install = "" if is_embedded_installed() else f"{INSTALL}, then "
    raise NoModel(
        f"{missing}; or fetch the embedded model: {install}bowerbird model fetch [--small]. "
        "`bowerbird config check` shows the settings."
    )


def _doubt(wanted: str, settings: ModelSettings) -> str | None:
    if settings.local.data_dir is not None:
        keep_rates_in(settings.local.data_dir)  # a name that was priced before is known without its table
    from bowerbird.models.offered import doubt_about

    return doubt_about(wanted, settings)


def is_embedded_installed() -> bool:
    """Whether the engine of the embedded model is there: the extra `local`."""
    from importlib.util import find_spec

    return find_spec("xllamacpp") is not None


def has_weights(settings: ModelSettings) -> bool:
    """Whether the embedded model can be used: its engine is installed, its weights are fetched."""
    from bowerbird.models.local.weights import find_weights

    if not is_embedded_installed():
        return False
    return find_weights(settings.local.data_dir or Path(), True if settings.local.small else None) is not None
