"""Whether a program can be used, without asking its model (PR-6, PR-7).

Here: found or not, its version, whether it has a key. Not here: running requests.
"""

import asyncio
import contextlib
import re
import shutil
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from bowerbird.config.sections.agent import ProviderEntry
from bowerbird.core.errors import BowerbirdError, SandboxUnavailable
from bowerbird.core.processes.host_programs import find_program
from bowerbird.core.processes.kept_process import KeptProcess
from bowerbird.core.threads import to_thread
from bowerbird.core.timestamps import now_iso
from bowerbird.providers.catalogue import CatalogueEntry
from bowerbird.providers.contract.errors import AgentAuthError, AgentError, AgentUnavailable
from bowerbird.providers.contract.types import AgentProbe, ProbeStatus
from bowerbird.providers.programs.finding import Programs, find_programs, search_path
from bowerbird.providers.programs.greeting import greeted
from bowerbird.providers.programs.ground import ProgramGround
from bowerbird.providers.programs.packages import PACKAGES
from bowerbird.providers.programs.readers.lines import sub, text_of, value_of
from bowerbird.providers.programs.run import auth_of
from bowerbird.providers.programs.vendors import Vendor

VERSION_S = 10.0
_KEPT_S = 600.0
_MOST = 64 << 10
_VERSION = re.compile(r"\d+\.\d+(?:\.\d+)?[\w.+-]*")
_OLDEST = re.compile(r">=\s*v?(\d+)(?:\.(\d+))?")
_MOST_PACKAGE = 1 << 20


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
            elif hidden := await ground.sandboxes.hidden(words[0]):
                status, detail = "unavailable", _unseen(entry, hidden)
            else:
                auth = auth_of(entry, settings, vendor)
                await ground.require(entry.name, needs_way_out=auth != "none")
                how = {"relay": "its key stays outside the sandbox", "home": "it gets copies of login files"}
                via = "ACP" if found.acp else "headless"
                detail = f"{words[0]}, {via}; {how.get(auth, 'no key of Bowerbird')}" + (
                    "" if version else "; version unknown"
                )
                if live:
                    status, detail = await _lived(entry, settings, vendor, found, auth, path, detail)
    except AgentAuthError as error:
        status, detail = "key_missing", str(error)
    except (AgentUnavailable, SandboxUnavailable) as error:
        status, detail = "unavailable", str(error)
    except (AgentError, BowerbirdError, OSError) as error:
        status, detail = "unavailable", f"{type(error).__name__}: {error}"
    took_ms = round((time.monotonic() - started) * 1000, 1)
    return AgentProbe(entry.name, status, detail, took_ms, version, now_iso())


async def _lived(
    entry: CatalogueEntry,
    settings: ProviderEntry,
    vendor: Vendor,
    found: Programs,
    auth: str,
    path: str,
    detail: str,
) -> tuple[ProbeStatus, str]:
    """Return status and detail once a login was looked for, and ACP was tried."""
    if auth == "home" and not await to_thread(_is_signed_in, vendor):
        return "key_missing", f"{entry.name} is not signed in; {vendor.sign_in}"
    if found.acp is None:
        return "operative", detail
    trouble = await greeted(found.acp, path)
    if not trouble:
        return "operative", f"{detail}; it answers over ACP"
    if found.headless is None or settings.transport == "acp":
        return "unreachable", f"{found.acp[0]} cannot be used over ACP: {trouble}"
    return "operative", f"{detail}; headless is used, since over ACP {trouble}"


def _is_signed_in(vendor: Vendor) -> bool:
    return any((Path.home() / name).is_file() for name in vendor.login_files)


def _unseen(entry: CatalogueEntry, places: Sequence[str]) -> str:
    install = f"`bowerbird agents install {entry.name}`, or " if entry.name in PACKAGES else ""
    directories = " and ".join(dict.fromkeys(str(Path(place).parent) for place in places))
    what = " and ".join(places)
    return f"{what} cannot be seen in the sandbox; {install}list {directories} in sandbox.read_only"


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
    if old := await _old_node(words[0], path):
        return None, old
    match = _VERSION.search(said)
    return (match[0].rstrip(".") if match else None), ""


async def _old_node(program: str, path: str) -> str:
    """Return why the Node on the PATH is too old for a program, "" where it is not (PR-28)."""
    wanted = await to_thread(oldest_node, Path(program))
    node = find_program("node", path) if wanted else None
    found = _VERSION.search(await _asked(node, path)) if node else None
    if wanted is None or found is None:
        return ""
    has = tuple(int(part) for part in found[0].split(".")[:2])
    if has >= wanted:
        return ""
    return f"{program} needs Node.js {wanted[0]}.{wanted[1]} or newer, and {node} is {found[0]}"


def oldest_node(program: Path) -> tuple[int, int] | None:
    """Return the oldest Node that a program's package takes, None where it says none. Blocks."""
    for directory in [*program.resolve().parents][:4]:
        file = directory / "package.json"
        try:
            if not file.is_file() or file.stat().st_size > _MOST_PACKAGE:
                continue
            engines = sub(value_of(file.read_text(encoding="utf-8", errors="replace")), "engines")
        except OSError:
            continue
        match = _OLDEST.search(text_of(engines.get("node")))
        return (int(match[1]), int(match[2] or 0)) if match else None
    return None


async def _asked(program: str, path: str) -> str:
    """Return what `--version` says, "" when it hangs or fails; what it writes at home is forgotten."""
    home = await to_thread(tempfile.mkdtemp)
    try:
        return await _asked_at(program, path, home)
    finally:
        await to_thread(shutil.rmtree, home, ignore_errors=True)


async def _asked_at(program: str, path: str, home: str) -> str:
    env = {"PATH": path, "HOME": home, "TERM": "dumb", "NO_COLOR": "1", "LANG": "C.UTF-8"}
    try:
        child = await KeptProcess.start(program, ["--version"], env=env, cwd=home)
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
