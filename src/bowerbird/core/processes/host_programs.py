"""Programs of the host: the one place where they begin, none of them inside somebody's workspace.

An agent writes into workspaces, and strangers write repositories. A program that starts there, or that looks
there for modules, settings or other programs, may be theirs. So it starts in a directory where nothing is,
finds programs on a PATH without the directories of workspaces, and gets few variables. Here: that. Not here:
processes in a sandbox, which are meant for such directories, and what is said over pipes (`kept_process.py`).

A workspace that holds the home directory keeps nothing out: the user's own programs lie in it, and what an
agent changes there a person has to accept.
"""

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    import asyncio

_EMPTY = ".bowerbird/empty"
_PLAIN = ("HOME", "LOGNAME", "USER", "SHELL", "TERM", "LANG", "LANGUAGE", "TZ", "TMPDIR")
_OF_THE_USER = (
    "COLORTERM", "NO_COLOR", "DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "DBUS_SESSION_BUS_ADDRESS",
    "SSH_AUTH_SOCK", "GPG_TTY",
)  # fmt: skip
_NETWORK = (
    "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "HTTP_PROXY", "HTTPS_PROXY",
    "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy",
)  # fmt: skip

HostProcess: TypeAlias = "subprocess.Popen[bytes]"

_workspaces: set[str] = set()


def keep_out_of(directory: Path) -> None:
    """Let no program of the host begin in a directory, or come from below it, from now on."""
    _workspaces.add(os.path.realpath(directory))


def is_in_workspace(path: str | Path) -> bool:
    """Whether a path is relative, or lies in a workspace or in this process's directory."""
    if not os.path.isabs(path):  # noqa: PTH117 - of text, thousands a second
        return True
    real, home = os.path.realpath(path), os.path.realpath(os.path.expanduser("~"))  # noqa: PTH111
    return any(_is_below(real, one) and not _is_below(home, one) for one in {*_workspaces, _here()})


def find_program(name: str, path: str | None = None) -> str | None:
    """Return where the host has a program: an absolute path as it is, a name outside of workspaces.

    Args:
        path: like the variable PATH, of directories that may be looked in; the usable part of ours when None.
    """
    if os.sep in name and not os.path.isabs(name):  # noqa: PTH117
        return None
    return shutil.which(name, path=usable_path() if path is None else path)


def usable_path(path: str | None = None) -> str:
    """Return a PATH without relative entries and those in workspaces."""
    entries = (os.environ.get("PATH", os.defpath) if path is None else path).split(os.pathsep)
    return os.pathsep.join(entry for entry in entries if entry and not is_in_workspace(entry))


def plain_environment(*names: str, begin: tuple[str, ...] = ()) -> dict[str, str]:
    """Return what of our environment any program may know: home, user, PATH, language. No keys.

    Args:
        names: of further variables. begin: how the names of others begin.
    """
    wanted, first = {*_PLAIN, *names}, ("LC_", *begin)
    found = {name: value for name, value in os.environ.items() if name in wanted or name.startswith(first)}
    return found | {"PATH": usable_path()}


def users_environment() -> dict[str, str]:
    """Return what a command of the user's own may know besides: screen, session, agents, ways out."""
    return plain_environment(*_OF_THE_USER, *_NETWORK, begin=("XDG_",))


def package_environment() -> dict[str, str]:
    """Return the plain environment with what the user's own pip, uv and npm are configured by."""
    return plain_environment(*_NETWORK, begin=("XDG_", "PIP_", "UV_", "npm_config_", "NPM_CONFIG_"))


def neutral_directory() -> str:
    """Return a directory in which, and above which, a program finds nothing: one of the user's, or `/`.

    For what settings name: a relative argument of theirs must not mean the whole disk. Made when needed.
    """
    home = os.path.expanduser("~")  # noqa: PTH111
    if os.path.isabs(home) and home != os.sep and not _holds_home(home):  # noqa: PTH117
        place = Path(home, _EMPTY)
        try:
            place.parent.mkdir(mode=0o700, exist_ok=True)
            place.mkdir(mode=0o500, exist_ok=True)
        except OSError:
            return os.sep
        return str(place)
    return os.sep


def popen(
    command: Sequence[str | bytes],
    *,
    cwd: str | Path | None = None,
    env: Mapping[str, str] | None = None,
    **options: Any,
) -> HostProcess:
    """Start a program as `subprocess.Popen` does.

    Args:
        cwd: a directory that a person named, or one of ours; the system's root when None.
        env: its variables; `plain_environment()` when None.

    Raises:
        OSError: it cannot be started.
    """
    return subprocess.Popen[bytes](command, cwd=cwd or os.sep, env=_given(env), **options)


async def start(command: Sequence[str]) -> "asyncio.subprocess.Process":
    """Start a program that is asked one thing: nothing on its standard input, its answer on a pipe.

    Raises:
        OSError: it cannot be started.
    """
    import asyncio

    return await asyncio.create_subprocess_exec(
        *command, cwd=os.sep, env=users_environment(), stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip


def run(
    command: Sequence[str],
    *,
    timeout: float | None,
    cwd: str | Path | None = None,
    env: Mapping[str, str] | None = None,
    stdin: bytes = b"",
    check: bool = False,
) -> "subprocess.CompletedProcess[bytes]":
    """Run a program to its end and return what it printed; arguments as of `popen`.

    Raises:
        OSError: it cannot be started.
        subprocess.SubprocessError: it took too long, or failed and `check` is set.
    """
    return subprocess.run(
        command, cwd=cwd or os.sep, env=_given(env), timeout=timeout, check=check, input=stdin,
        capture_output=True,
    )  # fmt: skip


def _given(env: Mapping[str, str] | None) -> Mapping[str, str]:
    return plain_environment() if env is None else env


def _holds_home(home: str) -> bool:
    real = os.path.realpath(home)
    return any(_is_below(real, one) for one in {*_workspaces, _here()} if one != os.sep)


def _is_below(path: str, top: str) -> bool:
    return top != os.sep and (path == top or path.startswith(top + os.sep))


def _here() -> str:
    try:
        return os.path.realpath(os.getcwd())  # noqa: PTH109
    except OSError:
        return os.sep  # it is gone
