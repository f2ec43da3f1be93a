"""What is imported when it is first used: names of a package, libraries that come with an extra.

Here: how an `__init__.py` has a face without the cost of what is behind it; whether the library of an extra
is installed, and the one sentence that says it is not. Not here: which names a package has (it lists them for
type checkers, in `__all__`, and for this; `tests/core/test_lazy.py` holds the lists against each other); what
is done without a library.
"""

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from bowerbird.core.errors import ExtraMissing

# For each extra: what is looked for, what it is for.
_EXTRAS = {
    "agents": (("acp",), "other programs over ACP"),
    "languages": (
        ("tree_sitter_typescript", "tree_sitter_cpp"),
        "symbols of C, C++, Go, Java, Rust and TypeScript",
    ),
    "mcp": (("mcp", "cryptography"), "MCP servers and clients"),
    "oidc": (("jwt", "cryptography"), "sign-ins at a provider"),
    "push": (("jwt", "cryptography"), "messages to browsers"),
    "telegram": (("telegram",), "chats"),
}


def lazy(package: str, homes: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Make the `__getattr__` and `__dir__` of a package.

    Args:
        package: its `__name__`.
        homes: modules below the package, dotted, and the names that each gives, separated by spaces.

    Example:
        >>> __getattr__, __dir__ = lazy("bowerbird.core", {"usage": "Usage", "ids": "new_id"})
        >>> __getattr__("Usage").__module__, __dir__()
        ('bowerbird.core.usage', ['Usage', 'new_id'])
    """
    home_of = {name: module for module, names in homes.items() for name in names.split()}

    def find(name: str) -> Any:
        if name not in home_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(f"{package}.{home_of[name]}"), name)
        setattr(sys.modules[package], name, value)  # the next use does not come here
        return value

    return find, lambda: sorted(home_of)


def install_command(extra: str) -> str:
    """Return what installs an extra.

    Example:
        >>> install_command("mcp")
        "pip install 'bowerbird[mcp]'"
    """
    return f"pip install 'bowerbird[{extra}]'"


def is_installed(extra: str) -> bool:
    """Whether the library of an extra is installed; nothing is imported."""
    return all(find_spec(name) is not None for name in _EXTRAS[extra][0])


def lacking() -> dict[str, str]:
    """Return what is not installed: extra → what it is for."""
    return {name: what for name, (_, what) in _EXTRAS.items() if not is_installed(name)}


def missing(extra: str, what: str) -> ExtraMissing | None:
    """Return the error that says that `what` needs an extra, None when it is installed.

    Example:
        >>> str(missing("mcp", "MCP servers") or "installed")
        'installed'
    """
    return (
        None
        if is_installed(extra)
        else ExtraMissing(f"{what} need the extra `{extra}`: {install_command(extra)}")
    )


def require(extra: str, what: str) -> None:
    """Raises ExtraMissing, in the words of `missing`, where the library of an extra is not installed."""
    error = missing(extra, what)
    if error is not None:
        raise error
