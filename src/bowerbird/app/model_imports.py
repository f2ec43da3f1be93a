"""What a model's first call needs, imported before the first turn: in a thread, so that nobody waits.

Here: which modules a model needs. Not here: opening models (`models/registry.py`).

The HTTP library, and the price table where it is needed, take some tenths of a second to import; in the event
loop that time would stop every other session.
"""

import sys
from importlib import import_module
from typing import TYPE_CHECKING

from bowerbird.core.threads import to_thread
from bowerbird.models.names import preset_of
from bowerbird.models.prices import is_at_hand, is_priced
from bowerbird.models.registry import resolve_name

if TYPE_CHECKING:
    from bowerbird.models.names import ModelName
    from bowerbird.models.settings import ModelSettings

_MODULES = ("bowerbird.models.assembly", "bowerbird.models.providers.transport")


async def import_for(name: str, settings: "ModelSettings") -> None:
    """Import what the model `name` (or the tiers of the router) needs, unless it was imported before.

    Raises:
        ConfigError: there is no such provider.
    """
    texts = [name]
    if name.startswith("tier:"):
        texts = [f"{tier.name}:{tier.model}" for tier in settings.router.tiers.values()]
    names = [resolve_name(text, settings) for text in texts]
    wired = [each for each in names if preset_of(each.provider).wire in ("anthropic", "openai")]
    missing = [module for module in _MODULES if module not in sys.modules]
    unpriced = [each for each in wired if not is_at_hand(each.provider, each.model)]
    if wired and (missing or unpriced):
        await to_thread(_import, missing, unpriced)


def _import(modules: list[str], unpriced: "list[ModelName]") -> None:
    for module in modules:
        import_module(module)
    for name in unpriced:
        is_priced(name.provider, name.model)
