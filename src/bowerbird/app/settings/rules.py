"""Which settings may be changed from a page, and what each looks like there (UI-83). Pure.

Here: rows and refusals. Not here: writing (`desk.py`), loading.

Whoever administers a server over the network does not own the machine: what can start programs outside of
the sandbox, open files, or let people in is left to the settings file.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from bowerbird.app.reloading import takes_effect
from bowerbird.config import Loaded
from bowerbird.config.fields import MASK
from bowerbird.config.keys import KeyInfo, canonical, find
from bowerbird.config.keys import Path as KeyPath
from bowerbird.config.present import Row, plain, rows
from bowerbird.config.sources import FILE_NAME
from bowerbird.core.errors import InvalidArgument
from bowerbird.models.settings import is_loopback
from bowerbird.server.common.desk import SettingRow

_MACHINE = frozenset(
    """
    hooks mcp mcp_servers server landing model_router agent.prompts_dir skills.directory
    web.allow_hosts push.allow_hosts
    tools.allowed_commands delegation.checks delegation.types
    providers.*.api_key_env providers.*.command providers.*.args providers.*.env providers.*.headers
    providers.allow_direct providers.*.permission_mode providers.*.mcp_servers
    """.split()
)
FOR_THE_MACHINE = (
    "left to the settings file: it can run programs, reach other hosts, let people in or land unseen"
)
AFTER_RESTART = "takes effect after a restart; change it in the settings file"
_SCALARS = frozenset(("int", "float", "bool", "text", "choice", "list", "secret", "url"))


def target_file(loaded: Loaded) -> Path:
    """Return the settings file that changes are written to: the one in force, else the user's (D-17)."""
    return loaded.file or loaded.base_dir / FILE_NAME


def shown_settings(loaded: Loaded) -> Iterator[SettingRow]:
    """Yield every key as it is in force, with why it cannot be changed here."""
    for row in rows(loaded, every=True):
        path = tuple(row.key.split("."))
        info = find(path)
        if isinstance(info, KeyInfo):
            yield _shown(row, path, info, why_locked(loaded, path))


def _shown(row: Row, path: KeyPath, info: KeyInfo, locked: str) -> SettingRow:
    return SettingRow(
        key=row.key,
        value=row.value,
        default=plain(info.default, info),
        origin=str(row.origin),
        hides=tuple(map(str, row.hidden)),
        changed=row.changed,
        meaning=info.meaning,
        kind=info.kind,
        choices=info.choices,
        unit=info.unit,
        allowed=info.allowed,
        nullable=info.nullable,
        secret=info.secret,
        applies="from the next turn or connection" if takes_effect(_at(info, path)) else "after a restart",
        locked=locked,
    )


def why_locked(loaded: Loaded, path: KeyPath) -> str:
    """Return why a key cannot be changed from a page, "" when it can.

    Raises:
        InvalidArgument: there is no such key.
    """
    path = canonical(path)
    info = find(path)
    if not isinstance(info, KeyInfo):
        raise InvalidArgument(f"no setting is named {'.'.join(path)[:100]}")
    if _is_machine(info.path) or info.kind not in _SCALARS:
        return FOR_THE_MACHINE
    if not takes_effect(_at(info, path)):
        return AFTER_RESTART
    leaf = loaded.leaves.get(path)
    if leaf is None or leaf.origin.kind == "default" or leaf.origin.label == str(target_file(loaded)):
        return ""
    return f"set by {leaf.origin}; change it there"


def _at(info: KeyInfo, path: KeyPath) -> KeyInfo:
    return KeyInfo(path, info.kind, info.default, info.meaning, applies=info.applies, env=info.env)


def _is_machine(path: KeyPath) -> bool:
    return any(".".join(path[:end]) in _MACHINE for end in range(1, len(path) + 1))


def check_addresses(loaded: Loaded, values: Mapping[KeyPath, Any]) -> None:
    """Refuse to send a key that is kept to a host that it was not given for.

    Raises:
        InvalidArgument: an address changes, and its key was not given again with it.
    """
    settings = loaded.settings
    if settings.provider.api_key and ("provider", "name") in values and ("provider", "api_key") not in values:
        raise InvalidArgument(
            "provider.name: provider.api_key is another provider's key; give the new one, or reset it first"
        )
    for path, value in values.items():
        if path[-1] != "base_url" or is_loopback(str(value)):
            continue
        if path[0] == "provider":
            entry = settings.providers.entries.get(settings.provider.name)
            kept = settings.provider.api_key or (entry.api_key if entry else None)
        else:
            entry = settings.providers.entries.get(path[1])
            kept = entry.api_key if entry else None
        if kept and (*path[:-1], "api_key") not in values:
            raise InvalidArgument(f"{'.'.join(path)}: give the key again together with a new address")


def wanted_values(values: Mapping[str, Any]) -> dict[KeyPath, Any]:
    """Return values by path; raises InvalidArgument for a secret that is only its mask."""
    found: dict[KeyPath, Any] = {}
    for name, value in values.items():
        if value == MASK:
            raise InvalidArgument(f"{name[:100]}: this is the mask of a secret, not a secret")
        found[canonical(tuple(name.split(".")))] = value
    return found
