"""Whether a program can be used, without asking its model (PR-6, PR-7).

Here: found or not, its version, whether it has a key. Not here: running requests.
"""

import asyncio
import contextlib
import re
import time
from pathlib import Path

from bowerbird.config.sections.agent import ProviderEntry
from bowerbird.core.errors import BowerbirdError
from bowerbird.core.kept_process import KeptProcess
from bowerbird.core.threads import to_thread
from bowerbird.core.timestamps import now_iso
from bowerbird.providers.catalogue import CatalogueEntry
from bowerbird.providers.contract.errors import AgentAuthError, AgentError
from bowerbird.providers.contract.types import AgentProbe, ProbeStatus
from bowerbird.providers.programs.finding import find_programs, search_path
from bowerbird.providers.programs.ground import ProgramGround
from bowerbird.providers.programs.run import auth_of
from bowerbird.providers.programs.vendors import Vendor

VERSION_S = 10.0
_KEPT_S = 600.0
_MOST = 64 << 10
_VERSION = re.compile(r"\d+\.\d+(?:\.\d+)?[\w.+-]*")
_NODE = re.compile(r"node(?:\.js)?[^\n]{0,60}?(?:version|>=|requires?)[^\n]{0,80}", re.IGNORECASE)


async def probe_program(
    entry: CatalogueEntry, settings: ProviderEntry, vendor: Vendor, ground: ProgramGround, *, live: bool
) -> AgentProbe:
    """Return whether an agent can be used; never raises what a probe can find."""
    started = time.monotonic()
    status: ProbeStatus = "operative"
    version: str | None = None
    try:
        path = search_path(ground.data_dir)
        found = await to_thread(find_programs, entry, settings, path)
        words = found.headless or found.acp
        if words is None:
            status, detail = "unavailable", found.missing
        else:
            version, detail = await version_of(words, path, entry.name)
            if version is None and detail:
                status = "unavailable"
            else:
                auth = auth_of(entry, settings, vendor)
                how = {"relay": "its key stays outside the sandbox", "home": "it gets copies of login files"}
                via = "ACP" if found.acp else "headless"
                detail = f"{words[0]}, {via}; {how.get(auth, 'no key of Bowerbird')}" + (
                    "" if version else "; version unknown"
                )
    except AgentAuthError as error:
        status, detail = "key_missing", str(error)
    except (AgentError, BowerbirdError, OSError) as error:
        status, detail = "unavailable", f"{type(error).__name__}: {error}"
    took_ms = round((time.monotonic() - started) * 1000, 1)
    return AgentProbe(entry.name, status, detail, took_ms, version, now_iso())


_versions: dict[tuple[str, int, int], tuple[float, str]] = {}


async def version_of(words: tuple[str, ...], path: str, name: str) -> tuple[str | None, str]:
    """Return a program's version and why it cannot be used; both empty where it says neither."""
    facts = await to_thread(Path(words[0]).stat)
    key = (words[0], facts.st_mtime_ns, facts.st_size)
    known = _versions.get(key)
    if known is None or time.monotonic() - known[0] > _KEPT_S:
        known = (time.monotonic(), await _asked(words[0], path))
        if len(_versions) > 100:
            _versions.clear()
        _versions[key] = known
    said = known[1]
    if name == "every_code" and re.search(r"^[0-9a-f]{40}$", said, re.MULTILINE):
        return None, f"{words[0]} is the editor VS Code, not Every Code; set EVERY_CODE_COMMAND"
    wanted = _NODE.search(said)
    if wanted and not _VERSION.match(said.strip()):
        return None, f"{words[0]}: {wanted[0].strip()}"
    match = _VERSION.search(said)
    return (match[0] if match else None), ""


async def _asked(program: str, path: str) -> str:
    """Return what `--version` says, "" when it hangs or fails."""
    env = {"PATH": path, "HOME": "/nonexistent", "TERM": "dumb", "NO_COLOR": "1", "LANG": "C.UTF-8"}
    try:
        child = await KeptProcess.start(program, ["--version"], env=env, cwd="/")
    except OSError:
        return ""
    try:
        child.stdin.close()
        async with asyncio.timeout(VERSION_S):
            out, err = await asyncio.gather(child.stdout.read(_MOST), child.stderr.read(_MOST))
            if not await child.ended(VERSION_S):
                return ""
        return (out + b"\n" + err).decode("utf-8", "replace")
    except TimeoutError:
        return ""
    finally:
        with contextlib.suppress(OSError):
            await child.kill()
