"""What a sandboxed process sees: mounts, environment, toolchains (SB-21 … SB-24), as bubblewrap arguments.

Here: pure builders over facts about the host that `host_facts` reads once. Not here: starting anything.
"""

import fnmatch
import os
import sys
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from bowerbird.core.errors import ConfigError
from bowerbird.sandbox.run.shown_trees import is_below, without
from bowerbird.sandbox.run.toolchains import Toolchains, find_toolchains

HOME = "/home/agent"
HOST_NAME = "bowerbird"
SPILLS = "/run/bowerbird/out"
INSIDE = "/run/bowerbird/lib/inside"
GIT = "/run/bowerbird/git"
BRANCH_OF_NOTHING = "/workspace"
_SMALL_BYTES = 64 << 20
_SYSTEM_LINKS = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
_ETC = (
    "nsswitch.conf", "ssl", "ca-certificates", "ld.so.cache", "alternatives", "localtime", "services",
    "protocols", "host.conf", "gai.conf", "os-release", "mime.types", "timezone",
)  # fmt: skip
# Parts of packages that stand in `/etc`: without them a Java or Maven of the system's does not start.
_ETC_OF_PACKAGES = ("java-*", "maven/m2.conf", "maven/logging")
OWN_ETC = ("passwd", "group", "hosts", "resolv.conf")
"""Files of `/etc` that are written for commands; `write_accounts` makes them."""
_DEFAULT_PATH = ("/usr/local/bin", "/usr/bin", "/bin", "/usr/local/sbin", "/usr/sbin", "/sbin")
_OWN_LOOPBACK = "localhost,127.0.0.1,::1"  # servers that tests start inside are the sandbox's own
_SECRET_NAMES = ("*KEY*", "*TOKEN*", "*SECRET*", "*PASSWORD*", "*CREDENTIAL*")


class HostFacts(msgspec.Struct, frozen=True):
    """What of the host matters to a sandbox.

    Attributes:
        links: top-level names that are links (`bin` → `usr/bin`) or directories (target None).
        etc: names below `/etc` that exist and may be shown.
        read_only: directories shown read-only at their own path: toolchains, the interpreter.
        tools: the developer's own environment: PATH and variables, as outside.
        system: `/usr`, or its parts where something in it is not for commands.
        tree_links: links of directories that are shown in parts, with their targets.
        left_out: what of these trees is not shown, for people.
        named: those of `read_only` that settings name.
    """

    links: Mapping[str, str | None]
    etc: tuple[str, ...]
    read_only: tuple[str, ...]
    tools: Toolchains
    interpreter: str
    system: tuple[str, ...] = ("/usr",)
    tree_links: tuple[tuple[str, str], ...] = ()
    left_out: tuple[str, ...] = ()
    named: tuple[str, ...] = ()

    def apart_from(
        self, kept: Sequence[Path], workspaces: Sequence[Path] = (), own: Path | None = None
    ) -> "HostFacts":
        """Return these facts without what commands must not see. Blocks.

        Args:
            kept: the data directory and settings files. workspaces: those known. own: the branch's, whose
                tools commands see on the branch.
        """
        system = without(self.system, kept, workspaces)
        # An interpreter or an environment that stands in the workspace is the branch's to show.
        trees = [t for t in self.read_only if own is None or t in self.named or not _lies_in(t, own)]
        shown = without(trees, [*kept, *map(Path, self.tools.secrets)], workspaces)
        return msgspec.structs.replace(
            self,
            system=system.trees,
            read_only=shown.trees,
            tree_links=(*system.links, *shown.links),
            left_out=(*system.notes, *shown.notes),
        )

    def with_tree(self, tree: str) -> "HostFacts":
        """Return these facts with one more directory that commands see, read-only."""
        return msgspec.structs.replace(self, read_only=(*self.read_only, tree))

    def path(self, workspace: Path | None, root: str) -> tuple[str, ...]:
        """Return PATH for a branch that stands at `root`: in the user's order, as far as it is shown. Blocks.

        An entry in the workspace is the branch's; versions that shims lead to there come before the shims.
        """
        links = (f"/{name}" for name in self.links)
        tops = (root, *self.system, *links, *self.read_only, *(link for link, _ in self.tree_links))
        found: list[str] = []
        for entry in self.tools.path:
            place = in_branch(entry, workspace, root) or entry
            # Relative ones mean the same inside.
            if place.startswith("/") and not _is_shown(place, tops):
                continue
            for shims in self.tools.shims:
                if entry == shims.directory:
                    found += shims.stands_for(workspace)
            found.append(place)
        return tuple(dict.fromkeys([*found, *_DEFAULT_PATH]))

    def shows(self, path: str) -> bool:
        """Whether commands see a path of the host, by its name."""
        links = (f"/{name}" for name in self.links)
        return any(is_below(path, top) for top in (*self.system, *links, *self.read_only))

    @property
    def own_path(self) -> tuple[str, ...]:
        """PATH without any branch."""
        return self.path(None, BRANCH_OF_NOTHING)

    def variables(self, workspace: Path | None, root: str) -> dict[str, str]:
        """Return the variables of tools, each path as commands find it, none that leads nowhere. Blocks."""
        told = {name: in_branch(value, workspace, root) or value for name, value in self.tools.env.items()}
        tops = (root, *self.system, *self.read_only)
        return {
            name: value for name, value in told.items() if not value.startswith("/") or _is_shown(value, tops)
        }


def in_branch(path: str, workspace: Path | None, root: str) -> str | None:
    """Return where a path of the workspace stands on the branch; None for others. Blocks."""
    if workspace is None or not path.startswith("/"):
        return None
    for name in (path, os.path.realpath(path)):
        if is_below(name, str(workspace)):
            return root + name[len(str(workspace)) :]
    return None


def _is_shown(path: str, tops: Sequence[str]) -> bool:
    """Whether a path is shown, as a whole or in parts."""
    return any(is_below(path, top) or is_below(top, path) for top in tops)


def _lies_in(tree: str, directory: Path) -> bool:
    return is_below(tree, str(directory)) or is_below(os.path.realpath(tree), os.path.realpath(directory))


def host_facts(*, toolchains: Collection[str] = ("auto",), read_only: Sequence[str] = ()) -> HostFacts:
    """Read the host once: which system directories, toolchains and PATH entries exist.

    Args:
        toolchains: `auto`, `off`, or names of `toolchains.KNOWN`.
        read_only: further absolute directories to show (`sandbox.read_only`).

    Raises:
        ConfigError: an entry of `read_only` is not absolute or does not exist; an unknown toolchain.
    """
    for entry in read_only:
        if not Path(entry).is_absolute() or not Path(entry).exists():
            raise ConfigError(f"sandbox.read_only: {entry!r} must be an absolute path that exists")
    tools = find_toolchains(toolchains, os.environ, home=Path.home())
    visible = list(read_only) + [t for t in tools.trees if not any(is_below(t, r) for r in read_only)]
    base = str(Path(sys.base_prefix).resolve())
    if not any(is_below(base, top) for top in ("/usr", *visible)):
        visible.append(base)
    links = {n: _link_target(Path("/", n)) for n in _SYSTEM_LINKS if os.path.lexists(f"/{n}")}
    named = (each for name in _ETC_OF_PACKAGES for each in Path("/etc").glob(name))
    return HostFacts(
        links=links,
        etc=(*(n for n in _ETC if Path("/etc", n).exists()), *(str(p.relative_to("/etc")) for p in named)),
        read_only=tuple(visible),
        tools=tools,
        interpreter=str(Path(sys.executable).resolve()),
        named=tuple(read_only),
    )


def _link_target(path: Path) -> str | None:
    return str(path.readlink()) if path.is_symlink() else None


class Standing(msgspec.Struct, frozen=True):
    """Where a branch stands for its commands: its `root` for a `workspace`, their home and temporary files.

    Attributes:
        first: directories before all others on PATH.
        git: directory of what they see of the user's Git configuration.
        packages: directories that Python imports from besides.
    """

    root: str
    workspace: Path | None = None
    home: str = HOME
    tmp: str = "/tmp"
    first: tuple[str, ...] = ()
    git: str = GIT
    packages: tuple[str, ...] = ()


def environment(
    facts: HostFacts,
    stands: Standing,
    *,
    extra: Mapping[str, str],
    secrets: Sequence[str] = (),
    proxy: str | None = None,
) -> dict[str, str]:
    """Return the whole environment of a command; of the server's, its tools, language and time zone. Blocks.

    Args:
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
        **facts.variables(stands.workspace, stands.root), **_language(),
        "PATH": ":".join((*stands.first, *facts.path(stands.workspace, stands.root))),
        "TERM": "dumb", "PWD": stands.root,
        "GIT_CONFIG_SYSTEM": f"{stands.git}/config",  # what is shown of the user's own, in the host's place
        "GIT_DISCOVERY_ACROSS_FILESYSTEM": "1",  # a package's repository lies above the branch's mount
        **_git_settings(stands.workspace),
    }  # fmt: skip
    if stands.packages:
        env["PYTHONPATH"] = ":".join(stands.packages)
    if proxy:
        for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
            env[name] = env[name.lower()] = proxy
        env["NO_PROXY"] = env["no_proxy"] = _OWN_LOOPBACK
    return {**env, **extra, "HOME": stands.home, "TMPDIR": stands.tmp}


def _git_settings(workspace: Path | None) -> dict[str, str]:
    """Return what git is told however a repository is set up: it may be another user's; keys are not here.

    Where the user signs commits, their landing signs those of the agent (`workspace/git/signing.py`).
    """
    said = [("safe.directory", "*")]
    with suppress(OSError):  # it has no repository, or one that lies elsewhere
        if workspace is not None and b"gpgsign" in (workspace / ".git/config").read_bytes().lower():
            said += [("commit.gpgsign", "false"), ("tag.gpgsign", "false")]
    named = {f"GIT_CONFIG_KEY_{at}": key for at, (key, _) in enumerate(said)}
    values = {f"GIT_CONFIG_VALUE_{at}": value for at, (_, value) in enumerate(said)}
    return {"GIT_CONFIG_COUNT": str(len(said)), **named, **values}


def _language() -> dict[str, str]:
    """Return the user's language and time zone; without TZ it is that of `/etc/localtime`, as outside."""
    said = {n: v for n, v in os.environ.items() if n in ("TZ", "LANG", "LANGUAGE") or n.startswith("LC_")}
    return said if said.keys() & {"LANG", "LC_ALL"} else {"LANG": "C.UTF-8", **said}


class Places(msgspec.Struct, frozen=True):
    """Host directories that one branch's sandbox shows, and where the branch stands inside."""

    root: str
    home: str
    spills: str
    accounts: str  # directory with the synthetic passwd and group
    inside: str  # the helper package
    sockets: str | None = None  # directory of the proxy's socket
    git: tuple[tuple[str, str], ...] = ()  # of a repository elsewhere: host path, path inside
    tmp: str | None = None  # an empty directory; None = memory
    caches: tuple[tuple[str, str], ...] = ()  # the branch's own part of each: host path, path inside


def bubblewrap(
    program: str, facts: HostFacts, places: Places, shared_memory: int = _SMALL_BYTES
) -> list[str]:
    """Return the bubblewrap command line up to `--`: namespaces, mounts, no capability but one.

    Args:
        shared_memory: bytes of `/dev/shm`, which count as memory.

    CAP_SYS_ADMIN of the sandbox's own user namespace stays with the zygote, which needs it to give each
    command its process namespace; commands lose it before they start.
    """
    words = [
        program, "--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-net",
        "--unshare-cgroup-try", "--hostname", HOST_NAME, "--new-session", "--die-with-parent",
        "--cap-drop", "ALL", "--cap-add", "CAP_SYS_ADMIN", "--clearenv",
    ]  # fmt: skip
    for part in facts.system:
        words += ["--ro-bind", part, part]
    for name, target in facts.links.items():
        words += ["--symlink", target, f"/{name}"] if target else ["--ro-bind", f"/{name}", f"/{name}"]
    for name in facts.etc:
        words += ["--ro-bind", f"/etc/{name}", f"/etc/{name}"]
    for name in OWN_ETC:
        words += ["--ro-bind", f"{places.accounts}/{name}", f"/etc/{name}"]
    words += ["--proc", "/proc", "--dev", "/dev"]
    words += ["--size", str(shared_memory), "--tmpfs", "/dev/shm"]
    # On disk, so that what is there counts as disk: in memory it would be in no process's account.
    words += ["--bind", places.tmp, "/tmp"] if places.tmp else ["--tmpfs", "/tmp"]
    words += ["--size", str(_SMALL_BYTES), "--tmpfs", "/run"]
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
    for there, here in places.caches:
        words += ["--bind", there, here]
    words += ["--dir", places.root]
    # What is left to write has a limit of its own; memory filled with files is in no process's account.
    return [*words, "--remount-ro", "/dev", "--remount-ro", "/", "--chdir", "/"]
