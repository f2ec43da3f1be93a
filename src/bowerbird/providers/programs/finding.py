"""Where a program is: on the server's PATH, among those Bowerbird installed, or where settings say (PR-3).

Here: looking. Not here: whether it works (probes), installing (`installing`).
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from bowerbird.config.sections.agent import ProviderEntry
from bowerbird.core.processes.host_programs import find_program, usable_path
from bowerbird.providers.catalogue import CatalogueEntry
from bowerbird.providers.choosing import named_by, program_words
from bowerbird.providers.contract.errors import AgentUnavailable
from bowerbird.providers.programs.packages import PACKAGES
from bowerbird.sandbox.host import PROGRAMS


@dataclass(frozen=True, slots=True)
class Programs:
    """What was found of one agent; each is a command line, its program an absolute path.

    Attributes:
        headless, acp: None where it has none of this kind. missing: why, for people.
    """

    headless: tuple[str, ...] | None
    acp: tuple[str, ...] | None
    missing: str = ""


def installed_bin(data_dir: Path) -> Path:
    """Return the directory with starters of what Bowerbird installed."""
    return data_dir / PROGRAMS / "bin"


def search_path(data_dir: Path, env: Mapping[str, str] | None = None) -> str:
    """Return the PATH on which programs are looked for: what was installed first, then the server's."""
    theirs = usable_path(None if env is None else env.get("PATH", os.defpath))
    return f"{installed_bin(data_dir)}:{theirs}"


def find_programs(entry: CatalogueEntry, settings: ProviderEntry, path: str) -> Programs:
    """Look for an agent's programs. Blocks.

    Raises:
        AgentConfigError: its command cannot be read.
    """
    candidates = program_words(entry, settings)
    headless = next((found for words in candidates if (found := _located(words, path))), None)
    names = " or ".join(words[0] for words in candidates)
    install = f"`bowerbird agents install {entry.name}`, or " if entry.name in PACKAGES else ""
    missing = "" if headless else f"no program {names} that can be run; {install}set {named_by(entry)}"
    return Programs(headless, _acp(entry, candidates, headless, path), missing)


def _acp(
    entry: CatalogueEntry,
    candidates: tuple[tuple[str, ...], ...],
    headless: tuple[str, ...] | None,
    path: str,
) -> tuple[str, ...] | None:
    if not entry.acp:
        return None
    if entry.programs and entry.acp[0] == entry.programs[0]:  # the same program: then with the same settings
        return None if headless is None else (*headless, *entry.acp[1:])
    if headless is None and candidates and candidates[0][0] != entry.programs[0]:
        return None  # a person named a program that is missing: no other takes its place
    return _located(entry.acp, path)


def _located(words: tuple[str, ...], path: str) -> tuple[str, ...] | None:
    found = find_program(words[0], path)
    if found is None or Path(found).is_dir():
        return None
    return (str(Path(found).absolute()), *words[1:])


def chosen_transport(entry: CatalogueEntry, settings: ProviderEntry, found: Programs) -> str:
    """Return the transport to begin with: `acp` or `headless` (PR-24).

    Raises:
        AgentUnavailable: the program for the one that settings ask for, or for any, is not there.
    """
    if settings.transport == "acp" and found.acp is None:
        wanted = entry.acp[0] if entry.acp else "ACP"
        raise AgentUnavailable(f"{entry.name} was asked for over ACP, but {wanted} is not there")
    if settings.transport in ("acp", "auto") and found.acp is not None:
        return "acp"
    if found.headless is None:
        raise AgentUnavailable(found.missing)
    return "headless"
