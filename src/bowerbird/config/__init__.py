"""One typed tree of settings and the loaders that fill it.

Lives here: the keys with defaults and ranges, the sources (flags, environment, `.env`,
`config.local.yaml`, `config.yaml`), their precedence, every check that needs no file or
socket, and what the `config` commands show. Must not be here: any effect of a setting;
`app.py` hands values to the rooms they belong to. Nothing else reads the environment.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bowerbird.config.fields import Secret, Url
    from bowerbird.config.load import Loaded, inspect_settings, load_settings
    from bowerbird.config.tree import Settings
    from bowerbird.config.tree import Settings as AppConfig

__all__ = ["AppConfig", "Loaded", "Secret", "Settings", "Url", "inspect_settings", "load_settings"]

_HOMES = {
    "AppConfig": ("bowerbird.config.tree", "Settings"),
    "Settings": ("bowerbird.config.tree", "Settings"),
    "Loaded": ("bowerbird.config.load", "Loaded"),
    "load_settings": ("bowerbird.config.load", "load_settings"),
    "inspect_settings": ("bowerbird.config.load", "inspect_settings"),
    "Secret": ("bowerbird.config.fields", "Secret"),
    "Url": ("bowerbird.config.fields", "Url"),
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: importing this package costs nothing."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    module, attribute = _HOMES[name]
    return getattr(import_module(module), attribute)
