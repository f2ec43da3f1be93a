"""What a model's first call needs, imported before the first turn: in a thread, so that nobody waits.

Here: which modules a model needs. Not here: opening models (`models/registry.py`).

The HTTP library and the price table take some tenths of a second to import; in the event loop that time
would stop every other session.
"""

import sys
from importlib import import_module
from typing import TYPE_CHECKING

from bowerbird.core.threads import to_thread
from bowerbird.models.names import preset_of
from bowerbird.models.registry import resolve_name

if TYPE_CHECKING:
    from bowerbird.models.settings import ModelSettings

_MODULES = ("bowerbird.models.assembly", "bowerbird.models.providers.transport", "genai_prices")


async def import_for(name: str, settings: "ModelSettings") -> None:
    """Import what the model `name` (or the tiers of the router) needs, unless it was imported before.

    Raises:
        ConfigError: there is no such provider.
    """
    names = [name]
    if name.startswith("tier:"):
        names = [f"{tier.name}:{tier.model}" for tier in settings.router.tiers.values()]
    wires = {preset_of(resolve_name(each, settings).provider).wire for each in names}
    missing = [module for module in _MODULES if module not in sys.modules]
    if missing and wires & {"anthropic", "openai"}:
        await to_thread(_import, missing)


def _import(modules: list[str]) -> None:
    for module in modules:
        import_module(module)
