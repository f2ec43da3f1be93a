"""Names that a package exports and imports when they are first used.

Here: how an `__init__.py` has a face without the cost of what is behind it. Not here: which names those are;
a package lists them for type checkers, in `__all__`, and for this, and `tests/core/test_lazy.py` holds the
lists against each other.
"""

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


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
