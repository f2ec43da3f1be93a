"""`bowerbird doctor`: is everything there that agents need (UI-48).

Here: the checks and their sentences; each says what to do. Not here: mending anything.
Secrets are never printed: error texts pass the redactor.
"""

import asyncio
import os
import shutil
import socket
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec

from bowerbird.cli.terminal.databases import say_other
from bowerbird.cli.terminal.exits import DONE, FAILED, PARTLY
from bowerbird.cli.terminal.shell import Shell, directory_of
from bowerbird.cli.terminal.shell import run as run_async
from bowerbird.cli.terminal.text import harmless, size, wrapped
from bowerbird.core.errors import BowerbirdError, ModelError
from bowerbird.core.threads import to_thread

if TYPE_CHECKING:
    from bowerbird.config import Loaded

State = Literal["ok", "degraded", "broken"]
ONLINE_TIMEOUT_S = 60.0
_CLOCK_OFF_S = 5.0
_MOST_HIDDEN = 10
UNBROKEN = 100_000  # cells: a pipe has lines of any length


class Check(msgspec.Struct, frozen=True):
    """One row: what was looked at, how it stands, what was found, what to do."""

    name: str
    state: State
    found: str
    remedy: str = ""


def doctor(shell: Shell, *, online: bool, json: bool) -> int:
    """Run the checks; 0 when all is fine, 1 when something is broken, 3 when something is degraded."""
    loaded = _load(shell)
    checks = run_async(lambda: _all_checks(loaded, online=online))
    worst: State = "ok"
    for check in checks:
        if check.state == "broken" or (check.state == "degraded" and worst == "ok"):
            worst = check.state
    if json:
        data = {"state": worst, "checks": [msgspec.structs.asdict(check) for check in checks]}
        shell.json(data)
    else:
        styles = {"ok": "green", "degraded": "yellow", "broken": "red"}
        marks = {"ok": "✓", "degraded": "!", "broken": "✗"}
        for check in checks:
            mark = shell.terminal.styled(marks[check.state], styles[check.state], shell.terminal.out)
            width = shell.terminal.width - 2 if shell.terminal.out.is_terminal else UNBROKEN
            text = f"{check.name}: {harmless(check.found)}"
            lines = [piece for line in text.split("\n") for piece in wrapped(line, width)]
            shell.terminal.write(f"{mark} " + "\n  ".join(lines) + "\n")
            if check.remedy:
                shell.terminal.line(f"    {harmless(check.remedy)}")
    return {"ok": DONE, "degraded": PARTLY, "broken": FAILED}[worst]


def _load(shell: Shell) -> "Loaded":
    from bowerbird.config import inspect_settings

    loaded = inspect_settings(
        {"agent.data_dir": str(Path(shell.anywhere.data_dir).absolute())}
        if shell.anywhere.data_dir
        else None,
        kind="cli",
        config_path=shell.anywhere.config,
        env_file=shell.anywhere.env_file,
        workspace=directory_of(None),
    )
    say_other(shell.anywhere, shell.terminal, loaded)
    return loaded


async def _all_checks(loaded: "Loaded", *, online: bool) -> list[Check]:
    settings = _settings(loaded)
    if settings.state == "broken":
        return [settings]
    data_dir = Path(loaded.settings.agent.data_dir)
    steps: dict[str, Callable[[], Awaitable[list[Check]]]] = {
        "data directory": lambda: _data_directory(data_dir, loaded.settings.store.min_free_mb),
        "database": lambda: _database(loaded, data_dir),
        "sandbox": lambda: _sandbox(loaded, data_dir),
        "hidden files": lambda: _hidden(loaded),
        "hooks": lambda: _hooks(loaded),
        "python tool": _python,
        "search": _search,
        "extras": lambda: _extras(loaded),
        "model": lambda: _model(loaded, online=online),
        "embedded model": lambda: _embedded(loaded, data_dir),
        "port": lambda: _port(loaded),
        "open files": _open_files,
        "clock": lambda: _clock(data_dir),
    }
    checks = [settings]
    for name, step in steps.items():
        try:
            checks += await step()
        except OSError as error:  # the others are looked at all the same
            checks.append(Check(name, "broken", f"could not be looked at: {error}"))
    return checks


def _settings(loaded: "Loaded") -> Check:
    where = str(loaded.file) if loaded.file else "no settings file, defaults"
    if loaded.errors:
        return Check("settings", "broken", "; ".join(loaded.errors), "see `bowerbird config check`")
    if loaded.warnings:
        return Check("settings", "degraded", "; ".join(loaded.warnings), "see `bowerbird config check`")
    return Check("settings", "ok", where)


async def _hooks(loaded: "Loaded") -> list[Check]:
    from bowerbird.app.mapping import hooks_of

    found = [f"{hook.event}: {hook.command}" for hook in hooks_of(loaded.settings)]
    return [Check("hooks", "ok", "\n".join(found) + " (outside the sandbox, as you)")] if found else []


async def _data_directory(data_dir: Path, min_free_mb: int) -> list[Check]:
    from bowerbird.app.own import make_data_dir

    try:
        make_data_dir(str(data_dir))
    except BowerbirdError as error:
        return [Check("data directory", "broken", str(error))]
    if os.statvfs(data_dir).f_flag & os.ST_RDONLY:
        found = f"{data_dir} is on a filesystem that is mounted read-only"
        return [Check("data directory", "broken", found, "mount it for writing, or name another --data-dir")]
    if not os.access(data_dir, os.W_OK):
        return [
            Check("data directory", "broken", f"{data_dir} cannot be written", f"run: chmod u+rwx {data_dir}")
        ]
    free = shutil.disk_usage(data_dir).free
    found = f"{data_dir} on {filesystem_of(data_dir)}, {size(free)} free"
    if free < min_free_mb << 20:
        remedy = f"free some space: below store.min_free_mb ({min_free_mb}) nothing new is accepted"
        return [Check("data directory", "broken", found, remedy)]
    from bowerbird.workspace import Workspace

    def storage() -> str:
        with Workspace(None, data_dir=data_dir) as workspace:
            return workspace.storage_reason

    reason = await to_thread(storage)
    if reason:
        remedy = "put agent.data_dir on ext4, xfs or btrfs"
        return [Check("data directory", "degraded", f"{found}; no overlay layers: {reason}", remedy)]
    return [Check("data directory", "ok", found)]


def filesystem_of(path: Path) -> str:
    """Return the type of the filesystem that holds `path`, `unknown` where that cannot be read."""
    best, found = "", "unknown"
    try:
        mounts = Path("/proc/mounts").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return found
    real = path.resolve()
    for line in mounts.splitlines():
        fields = line.split(" ")
        if len(fields) < 3:
            continue
        point = fields[1].encode().decode("unicode_escape")
        if len(point) >= len(best) and real.is_relative_to(point):
            best, found = point, fields[2]
    return found


async def _database(loaded: "Loaded", data_dir: Path) -> list[Check]:
    from bowerbird.cli.admin.doctor_data import look_at_data

    rows = await look_at_data(loaded, data_dir, lambda text: _redacted(loaded, text))
    return [Check(*row) for row in rows]


async def _hidden(loaded: "Loaded") -> list[Check]:
    """Say what of this directory agents do not see."""
    from bowerbird.workspace.tree.ground import Ground
    from bowerbird.workspace.tree.hiding import hidden_by

    directory = Path(directory_of(None))
    ground = Ground(directory, hidden=hidden_by(loaded.settings.workspace.hidden))
    names = await to_thread(ground.hidden_names, "/", _MOST_HIDDEN)
    if not names:
        return [Check("hidden files", "ok", f"none at the top of {directory} (workspace.hide)")]
    found = f"agents do not see {', '.join(names)} in {directory} (workspace.hide)"
    return [Check("hidden files", "ok", found, "to show one of them, name it in workspace.show")]


async def _sandbox(loaded: "Loaded", data_dir: Path) -> list[Check]:
    """Try whole sandboxes on the data directory; commands below the minimum are refused."""
    from bowerbird.app.sandboxes import open_sandboxes
    from bowerbird.tools.processes.process_tools import processes_unavailable

    try:
        host = await to_thread(open_sandboxes, loaded.settings, data_dir, files=loaded.files)
        try:
            status = await host.status()
        finally:
            await host.close()
    except (BowerbirdError, OSError) as error:
        return [Check("sandbox", "degraded", f"could not be probed: {error}")]
    limits = ", ".join(f"{name} by {how}" for name, how in status.limits.items())
    found = f"tier {status.tier}, network {status.network}"
    if status.isolation:
        found += f", isolation {' '.join(status.isolation)}; limits: {limits}"
    why = "; ".join(f"{tier}: {reason}" for tier, reason in status.reasons.items() if reason)
    if status.left_out:
        why = "; ".join(filter(None, (why, *status.left_out)))
    if status.network_reason:
        why = "; ".join(filter(None, (why, f"network: {status.network_reason}")))
    if processes_unavailable(status) is not None:
        below = f"{found}; commands are refused, sandbox.minimum is {status.minimum}"
        return [Check("sandbox", "degraded", below, why)]
    if status.tier == "overlay":
        return [Check("sandbox", "ok", found, why)]
    return [Check("sandbox", "degraded", found, why)]


async def _python() -> list[Check]:
    from bowerbird.sandbox.python.engine import available, installed_version

    reason = available()
    if reason is None:
        return [Check("python tool", "ok", "interpreter available")]
    if installed_version() is None:
        own = "by the sandbox's Python; one that needs no sandbox (optional): pip install 'bowerbird[python]'"
        return [Check("python tool", "ok", own)]
    return [Check("python tool", "degraded", reason, "reinstall: pip install 'bowerbird[python]'")]


async def _search() -> list[Check]:
    from bowerbird.workspace.find.ripgrep import find_ripgrep

    found = find_ripgrep()
    if found is not None:
        return [Check("search", "ok", found)]
    return [Check("search", "ok", "by Python; faster with ripgrep (optional): pip install 'bowerbird[fast]'")]


async def _extras(loaded: "Loaded") -> list[Check]:
    """What settings want and no library is there for; else one row of what could be added."""
    from bowerbird.core.extras import install_command, lacking

    settings = loaded.settings
    uses_sign_in = settings.server.auth == "oidc" or bool(settings.server.google_client_id)
    wanted = {"mcp": any(entry.enabled for entry in settings.mcp_servers.values()), "oidc": uses_sign_in}
    lacks = lacking()
    rows = [
        Check(
            f"extra {name}",
            "broken" if name == "oidc" else "degraded",
            f"not installed; {why}",
            install_command(name),
        )
        for name, why in lacks.items()
        if wanted.get(name)
    ]
    more = ", ".join(f"{name} ({why})" for name, why in lacks.items() if not wanted.get(name))
    return [*rows, *([Check("extras", "ok", f"not installed (optional): {more}")] if more else [])]


async def _model(loaded: "Loaded", *, online: bool) -> list[Check]:
    from bowerbird.app import choose_model
    from bowerbird.app.mapping import model_settings
    from bowerbird.models.registry import ModelPool

    try:
        chosen = choose_model(loaded, loaded.settings.cli.model)
    except BowerbirdError as error:
        return [Check("model", "broken", _redacted(loaded, str(error)))]
    checks = [Check("model", "degraded" if chosen.note else "ok", chosen.note or chosen.name)]
    pool = ModelPool(model_settings(loaded))
    try:
        try:
            router = pool.router
        except BowerbirdError as error:
            return [*checks, Check("model tiers", "broken", _redacted(loaded, str(error)))]
        if router is not None:
            checks += [
                Check(f"model tier {name}", "degraded", _redacted(loaded, reason))
                for name, reason in router.unavailable.items()
            ]
        if online:
            checks.append(await _tiny_call(loaded, pool, chosen.name))
    finally:
        await pool.aclose()
    return checks


async def _tiny_call(loaded: "Loaded", pool: object, name: str) -> Check:
    from bowerbird.core.messages import user_text
    from bowerbird.core.requests import ModelRequest
    from bowerbird.models.protocol import complete
    from bowerbird.models.registry import ModelPool

    assert isinstance(pool, ModelPool)
    model = pool.router if name.startswith("tier:") else pool.get(name)
    assert model is not None
    started = time.monotonic()
    try:
        async with asyncio.timeout(ONLINE_TIMEOUT_S):
            await complete(model, ModelRequest((user_text("Answer with the word ok."),), max_tokens=16))
    except TimeoutError:
        return Check("model call", "broken", f"no answer within {ONLINE_TIMEOUT_S:.0f} s")
    except (ModelError, BowerbirdError) as error:
        return Check("model call", "broken", _redacted(loaded, str(error)))
    return Check("model call", "ok", f"{name} answered in {time.monotonic() - started:.1f} s")


async def _embedded(loaded: "Loaded", data_dir: Path) -> list[Check]:
    from importlib.util import find_spec

    from bowerbird.models.local.weights import KNOWN, weights_path

    present = [weights.name for weights in KNOWN if weights_path(weights, data_dir).is_file()]
    if find_spec("xllamacpp") is None:
        return [Check("embedded model", "ok", "not installed (optional): pip install 'bowerbird[local]'")]
    if present:
        return [Check("embedded model", "ok", ", ".join(present))]
    return [Check("embedded model", "ok", "not fetched (optional): bowerbird model fetch [--small]")]


async def _port(loaded: "Loaded") -> list[Check]:
    server = loaded.settings.server
    family = socket.AF_INET6 if ":" in server.host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((server.host, server.port))
        except OSError as error:
            found = f"{server.host}:{server.port} cannot be used: {error.strerror}"
            return [
                Check("port", "degraded", found, "only a server needs it; choose another with server.port")
            ]
    return [Check("port", "ok", f"{server.host}:{server.port} is free")]


async def _open_files() -> list[Check]:
    import resource

    from bowerbird.core.processes import descriptors

    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]  # a server raises the other one itself
    if most == resource.RLIM_INFINITY or most >= descriptors.ENOUGH:
        return []
    return [
        Check(
            "open files", "degraded", f"a process of yours may have {most} open", "run: ulimit -n 4096, or "
            "set LimitNOFILE= in the systemd unit, so that many conversations can work at the same time",
        )
    ]  # fmt: skip


async def _clock(data_dir: Path) -> list[Check]:
    """Compare the clock with the filesystem's, and with reason."""
    probe = data_dir / ".clock"
    try:
        probe.touch()
        off = abs(probe.stat().st_mtime - time.time())
        probe.unlink()
    except OSError as error:
        return [Check("clock", "degraded", f"could not be compared: {error.strerror}")]
    if off > _CLOCK_OFF_S:
        return [
            Check(
                "clock",
                "degraded",
                f"{off:.0f} s off the filesystem's",
                "set the clock, for example with NTP",
            )
        ]
    if time.gmtime().tm_year < 2025:
        return [
            Check("clock", "broken", time.strftime("%Y-%m-%d"), "set the clock: budgets and leases need it")
        ]
    return [Check("clock", "ok", time.strftime("%Y-%m-%d %H:%M:%S %Z"))]


def _redacted(loaded: "Loaded", text: str) -> str:
    from bowerbird.models.redact import Redactor

    return Redactor(loaded.settings.secrets()).text(text)
