"""The composition root: settings in, running application out.

Lives here: the map from the settings tree to the values that the rooms take, the maker of
turns for sessions, opening and closing of everything a command or server needs. Must not be
here: any decision about turns, branches or models; anything a person sees.

Example:
    >>> from bowerbird.app import model_settings
    >>> from bowerbird.config import load_settings
    >>> model_settings(load_settings(env={}, cwd="/", home="/nonexistent")).provider
    'anthropic'
"""

from typing import TYPE_CHECKING

from bowerbird.core.lazy import lazy

if TYPE_CHECKING:
    from bowerbird.app.application import Application, open_application
    from bowerbird.app.choice import ChosenModel, choose_model
    from bowerbird.app.mapping import model_settings, session_settings, store_options

__all__ = (
    "Application", "ChosenModel", "choose_model", "model_settings", "open_application", "session_settings",
    "store_options",
)  # fmt: skip

__getattr__, __dir__ = lazy(
    __name__,
    {
        "application": "Application open_application",
        "choice": "choose_model ChosenModel",
        "mapping": "model_settings session_settings store_options",
    },
)
