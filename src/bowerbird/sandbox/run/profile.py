"""What a sandboxed process sees: mounts, environment, toolchains (SB-21 … SB-24), as bubblewrap arguments.

Here: pure builders over facts about the host that `host_facts` reads once. Not here: starting anything.
"""

import fnmatch
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from bowerbird.core.errors import ConfigError
from bowerbird.sandbox.run.shown_trees import is_below, without

HOME = "/home/agent"
SPILLS = "/run/bowerbird/out"
INSIDE = "/run/bowerbird/lib/inside"
BRANCH_OF_NOTHING = "/workspace"
_TMP_BYTES, _SMALL_BYTES = 1 << 30, 64 << 20
_SYSTEM_LINKS = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
_ETC = (
    "hosts", "nsswitch.conf", "resolv.conf", "ssl", "ca-certificates", "ld.so.cache", "alternatives",
    "localtime",
)  # fmt: skip
_TOOLCHAINS = (
    "~/.pyenv/versions", "~/.local/share/uv/python", "~/.nvm/versions", "~/.rustup/toolchains",
    "~/.cargo/bin", "/opt", "/nix/store",
)  # fmt: skip
_DEFAULT_PATH = ("/usr/local/bin", "/usr/bin", "/bin", "/usr/local/sbin", "/usr/sbin", "/sbin")
_OWN_LOOPBACK = "localhost,127.0.0.1,::1"  # servers that tests start inside are the sandbox's own
_SECRET_NAMES = ("*KEY*", "*TOKEN*", "*SECRET*", "*PASSWORD*", "*CREDENTIAL*")


@dataclass(frozen=True, slots=True)
class HostFacts:
    """What of the host matters to a sandbox.

    Attributes:
        links: top-level names that are links (`bin` → `usr/bin`) or directories (target None).
        etc: names below `/etc` that exist and may be shown.
        read_only: directories shown read-only at their own path: toolchains, the interpreter.
        path: PATH inside, only visible directories.
        git_identity: the user's `user.name` and `user.email` for commits, as far as set.
        system: `/usr`, or its parts where something in it is not for commands.
        tree_links: links of directories that are shown in parts, with their targets.
        left_out: what of these trees is not shown, for people.
    """

    links: Mapping[str, str | None]
    etc: tuple[str, ...]
    read_only: tuple[str, ...]
    path: tuple[str, ...]
    interpreter: str
    git_identity: Mapping[str, str]
    system: tuple[str, ...] = ("/usr",)
    tree_links: tuple[tuple[str, str], ...] = ()
    left_out: tuple[str, ...] = ()

    def apart_from(self, kept: Sequence[Path], workspaces: Sequence[Path] = ()) -> "HostFacts":
        """Return these facts without what commands must not see. Blocks.

        Args:
            kept: the data directory and settings files. workspaces: those known.
        """
        system = without(self.system, kept, workspaces)
        shown = without(self.read_only, kept, workspaces)
        tops = (*system.trees, *shown.trees)
        return replace(
            self,
            system=system.trees,
            read_only=shown.trees,
            tree_links=(*system.links, *shown.links),
            left_out=(*system.notes, *shown.notes),
            path=tuple(p for p in self.path if p in _DEFAULT_PATH or any(is_below(p, top) for top in tops)),
        )


def host_facts(
    *, toolchains: bool = True, read_only: Sequence[str] = (), git_identity: Mapping[str, str]
) -> HostFacts:
    """Read the host once: which system directories, toolchains and PATH entries exist.

    Args:
        toolchains: show those of SB-22 that exist.
        read_only: further absolute directories to show (`sandbox.read_only`).

    Raises:
        ConfigError: an entry of `read_only` is not absolute or does not exist.
    """
    for entry in read_only:
        if not Path(entry).is_absolute() or not Path(entry).exists():
            raise ConfigError(f"sandbox.read_only: {entry!r} must be an absolute path that exists")
    base = str(Path(sys.base_prefix).resolve())
    shown = [str(Path(t).expanduser()) for t in _TOOLCHAINS] if toolchains else []
    visible = [*read_only, *(p for p in shown if Path(p).is_dir())]
    if not any(is_below(base, top) for top in ("/usr", *visible)):
        visible.append(base)
    links = {n: _link_target(Path("/", n)) for n in _SYSTEM_LINKS if os.path.lexists(f"/{n}")}
    return HostFacts(
        links=links,
        etc=tuple(n for n in _ETC if Path("/etc", n).exists()),
        read_only=tuple(visible),
        path=_visible_path(os.environ.get("PATH", ""), base, ("/usr", *visible)),
        interpreter=str(Path(sys.executable).resolve()),
        git_identity=dict(git_identity),
    )


def _link_target(path: Path) -> str | None:
    return str(path.readlink()) if path.is_symlink() else None


def _visible_path(host_path: str, base: str, tops: Sequence[str]) -> tuple[str, ...]:
    found: list[str] = []
    for entry in host_path.split(":"):
        # pyenv's shims are scripts in the home directory; what they lead to is the interpreter in use.
        directory = f"{base}/bin" if entry.endswith("/.pyenv/shims") else entry
        if directory and any(is_below(directory, top) for top in tops) and Path(directory).is_dir():
            found.append(directory)
    return tuple(dict.fromkeys([*found, *_DEFAULT_PATH]))


def environment(
    facts: HostFacts,
    root: str,
    *,
    extra: Mapping[str, str],
    secrets: Sequence[str] = (),
    proxy: str | None = None,
) -> dict[str, str]:
    """Return the whole environment of a command; nothing of the server's own is in it.

    Args:
        root: the branch's path inside.
        extra: `sandbox.env`.
        secrets: names of `extra` that look like secrets and are allowed all the same (`sandbox.env_secrets`).
        proxy: URL of the allow-list proxy, or None while the network is closed.

    Raises:
        ConfigError: a name in `extra` looks like a secret and is not listed.
    """
    for name in extra:
        if name not in secrets and any(fnmatch.fnmatchcase(name.upper(), p) for p in _SECRET_NAMES):
            raise ConfigError(
                f"sandbox.env: {name} looks like a secret; list it in sandbox.env_secrets to pass it"
            )
    env = {
        "PATH": ":".join(facts.path), "HOME": HOME, "LANG": "C.UTF-8", "TERM": "dumb", "TMPDIR": "/tmp",
        "TZ": os.environ.get("TZ", "UTC"), "CI": "1", "PWD": root,
        "GIT_CONFIG_NOSYSTEM": "1",  # the host's is not shown, and one that may not be read stops Git
    }  # fmt: skip
    git = {"safe.directory": "*", **facts.git_identity}
    env["GIT_CONFIG_COUNT"] = str(len(git))
    for number, (key, value) in enumerate(git.items()):
        env[f"GIT_CONFIG_KEY_{number}"] = key
        env[f"GIT_CONFIG_VALUE_{number}"] = value
    if proxy:
        for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
            env[name] = env[name.lower()] = proxy
        env["NO_PROXY"] = env["no_proxy"] = _OWN_LOOPBACK
    return {**env, **extra}


@dataclass(frozen=True, slots=True)
class Places:
    """Host directories that one branch's sandbox shows, and where the branch stands inside."""

    root: str
    home: str
    spills: str
    accounts: str  # directory with the synthetic passwd and group
    inside: str  # the helper package
    sockets: str | None = None  # directory of the proxy's socket
    git: tuple[tuple[str, str], ...] = ()  # of a repository elsewhere: host path, path inside


def bubblewrap(program: str, facts: HostFacts, places: Places) -> list[str]:
    """Return the bubblewrap command line up to `--`: namespaces, mounts, no capability but one.

    CAP_SYS_ADMIN of the sandbox's own user namespace stays with the zygote, which needs it to give each
    command its process namespace; commands lose it before they start.
    """
    words = [
        program, "--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-net",
        "--unshare-cgroup-try", "--hostname", "bowerbird", "--new-session", "--die-with-parent",
        "--cap-drop", "ALL", "--cap-add", "CAP_SYS_ADMIN", "--clearenv",
    ]  # fmt: skip
    for part in facts.system:
        words += ["--ro-bind", part, part]
    for name, target in facts.links.items():
        words += ["--symlink", target, f"/{name}"] if target else ["--ro-bind", f"/{name}", f"/{name}"]
    for name in facts.etc:
        words += ["--ro-bind", f"/etc/{name}", f"/etc/{name}"]
    for name in ("passwd", "group"):
        words += ["--ro-bind", f"{places.accounts}/{name}", f"/etc/{name}"]
    words += ["--proc", "/proc", "--dev", "/dev"]
    words += ["--size", str(_SMALL_BYTES), "--tmpfs", "/dev/shm"]
    words += ["--size", str(_TMP_BYTES), "--tmpfs", "/tmp", "--size", str(_SMALL_BYTES), "--tmpfs", "/run"]
    for directory in facts.read_only:
        words += ["--ro-bind", directory, directory]
    for path, target in facts.tree_links:
        words += ["--symlink", target, path]
    words += ["--bind", places.home, HOME]
    words += ["--ro-bind", places.spills, SPILLS, "--ro-bind", places.inside, INSIDE]
    if places.sockets:
        words += ["--ro-bind", places.sockets, "/run/bowerbird/net"]
    for there, here in places.git:
        words += ["--ro-bind", there, here]
    words += ["--dir", places.root]
    # What is left to write has a limit of its own; memory filled with files is in no process's account.
    return [*words, "--remount-ro", "/dev", "--remount-ro", "/", "--chdir", "/"]
