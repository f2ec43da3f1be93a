"""One typed tree of settings and the loaders that fill it.

Lives here: the keys with defaults and ranges, the sources (flags, environment, `.env`,
`config.local.yaml`, `config.yaml`), their precedence, every check that needs no file or
socket, and what the `config` commands show. Must not be here: any effect of a setting;
`app/` hands values to the rooms they belong to. Nothing else reads the environment.
"""

from typing import TYPE_CHECKING

from bowerbird.core.lazy import lazy

if TYPE_CHECKING:
    from bowerbird.config.fields import Secret, Url
    from bowerbird.config.load import Loaded, inspect_settings, load_settings
    from bowerbird.config.tree import AppConfig, Settings

__all__ = ["AppConfig", "Loaded", "Secret", "Settings", "Url", "inspect_settings", "load_settings"]

__getattr__, __dir__ = lazy(
    __name__,
    {
        "fields": "Secret Url",
        "load": "inspect_settings load_settings Loaded",
        "tree": "AppConfig Settings",
    },
)
