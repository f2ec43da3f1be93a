"""The providers' SDKs, imported before the first turn needs one: in a thread, so that nobody waits.

Here: which modules a model needs. Not here: opening models (`models/registry.py`).

An SDK takes about a second to import; in the event loop that second would stop every other session.
"""

import sys
from importlib import import_module
from typing import TYPE_CHECKING

from bowerbird.core.threads import to_thread
from bowerbird.models.names import preset_of
from bowerbird.models.registry import resolve_name

if TYPE_CHECKING:
    from bowerbird.models.settings import ModelSettings

_MODULES = {"anthropic": ("anthropic", "genai_prices"), "openai": ("openai", "genai_prices")}


async def import_sdks(name: str, settings: "ModelSettings") -> None:
    """Import what the model `name` (or the tiers of the router) needs, unless it was imported before.

    Raises:
        ConfigError: there is no such provider.
    """
    names = [name]
    if name.startswith("tier:"):
        names = [f"{tier.name}:{tier.model}" for tier in settings.router.tiers.values()]
    wires = {preset_of(resolve_name(each, settings).provider).wire for each in names}
    missing = [m for wire in sorted(wires) for m in _MODULES.get(wire, ()) if m not in sys.modules]
    if missing:
        await to_thread(_import, missing)


def _import(modules: list[str]) -> None:
    for module in modules:
        import_module(module)
