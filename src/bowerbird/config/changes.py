"""What differs between two loads of the settings (CF-13). Pure.

Here: the keys. Not here: loading, what a change does.
"""

from collections.abc import Iterator, Mapping
from typing import Any, cast

from pydantic import BaseModel

from bowerbird.config.keys import KeyInfo, Path, find
from bowerbird.config.tree import Settings


def changed_keys(old: Settings, new: Settings) -> list[KeyInfo]:
    """Return what is known of each key whose value differs, by name; `path` has real names in it.

    Example:
        >>> changed_keys(Settings(), Settings())
        []
    """
    before, after = dict(_leaves(old)), dict(_leaves(new))
    paths = [path for path in {**before, **after} if before.get(path, ...) != after.get(path, ...)]
    found: dict[str, KeyInfo] = {}
    for path in sorted(paths):
        for end in range(len(path), 0, -1):
            info = find(path[:end])
            if isinstance(info, KeyInfo):
                name = ".".join(path[:end])
                found[name] = KeyInfo(
                    path[:end], info.kind, info.default, info.meaning, applies=info.applies, env=info.env
                )
                break
    return list(found.values())


def _leaves(value: Any, at: Path = ()) -> Iterator[tuple[Path, Any]]:
    if isinstance(value, BaseModel):
        for name, declared in type(value).model_fields.items():
            yield from _leaves(getattr(value, name), (*at, declared.alias or name))
        yield from _leaves(value.model_extra or {}, at)
    elif isinstance(value, Mapping):
        for name, inner in cast("Mapping[str, Any]", value).items():
            yield from _leaves(inner, (*at, str(name)))
    else:
        yield at, value
