"""Caches that builds without a network need, shown to commands (GI-15).

Here: which caches there are, where a branch keeps its own version of each, the links to them in its home.
Not here: mounting (`projection`, `copy_projection`), tools (`toolchains`).

Only the parts that hold downloaded or built things are in the table, never settings and credentials beside
them. In the overlay tier a cache stands in a place of its own, which no command can move, and what commands
change in it is the branch's; in the copy tier a few are read where they are.
"""

import contextlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from bowerbird.sandbox.run.shown_trees import is_below, without
from bowerbird.sandbox.run.toolchains import may_be_shown, secrets_in
from bowerbird.sandbox.run.warden import Overlay
from bowerbird.workspace.tree import handles
from bowerbird.workspace.tree.layers import make_whiteout

INSIDE = "/var/cache/bowerbird"
"""Where caches stand for commands in the overlay tier, by their names."""


class _Kind(msgspec.Struct, frozen=True):
    """A cache.

    Attributes:
        place: below a home, of the user's or of commands.
        moved: variables that say where it is instead, with what is to be added to their value.
        apart: patterns of what in it is not shown: copies of repositories keep the addresses they came from.
        read_only: its tools work where they cannot write it, so that the copy tier can show it.
        by_hash: all names in it are numbers, and too many to look at.
    """

    name: str
    place: str
    moved: tuple[tuple[str, str], ...] = ()
    apart: tuple[str, ...] = ()
    read_only: bool = False
    by_hash: bool = False


_KINDS = (
    _Kind(
        "go-modules",
        "go/pkg/mod",
        (("GOMODCACHE", ""), ("GOPATH", "/pkg/mod")),
        ("cache/vcs",),
        read_only=True,
    ),
    _Kind("go-build", ".cache/go-build", (("GOCACHE", ""), ("XDG_CACHE_HOME", "/go-build")), by_hash=True),
    _Kind("cargo", ".cargo/registry", (("CARGO_HOME", "/registry"),), read_only=True),
    _Kind("maven", ".m2/repository"),
    _Kind("gradle", ".gradle/caches/modules-2", (("GRADLE_USER_HOME", "/caches/modules-2"),)),
    _Kind("gradle-wrapper", ".gradle/wrapper/dists", (("GRADLE_USER_HOME", "/wrapper/dists"),)),
    _Kind("npm", ".npm/_cacache", (("npm_config_cache", "/_cacache"), ("NPM_CONFIG_CACHE", "/_cacache"))),
    _Kind("pnpm", ".local/share/pnpm/store", (("PNPM_HOME", "/store"), ("XDG_DATA_HOME", "/pnpm/store"))),
    _Kind("pip", ".cache/pip", (("PIP_CACHE_DIR", ""), ("XDG_CACHE_HOME", "/pip"))),
    _Kind("uv", ".cache/uv", (("UV_CACHE_DIR", ""), ("XDG_CACHE_HOME", "/uv")), ("git-v*",)),
)
VARIABLES = tuple(dict.fromkeys(name for kind in _KINDS for name, _ in kind.moved))
"""Those that say where caches are."""


def find_caches(environ: Mapping[str, str], home: Path) -> dict[str, str]:
    """Return the caches of a user by name, each with its real directory. Blocks."""
    found: dict[str, str] = {}
    for kind in _KINDS:
        places = [environ[name].split(":")[0] + rest for name, rest in kind.moved if environ.get(name)]
        for place in (*places, f"{home}/{kind.place}"):
            real = os.path.realpath(place)
            if place.startswith("/") and _is_cache(real, home):
                found[kind.name] = real
                break
    return found


def _is_cache(real: str, home: Path) -> bool:
    """Whether a directory may be one: the user's own, and not one that holds a person's other things."""
    homes = (str(home), os.path.realpath(home))
    with contextlib.suppress(OSError):
        return Path(real).is_dir() and Path(real).stat().st_uid == os.getuid() and may_be_shown(real, homes)
    return False


class BranchCaches:
    """The caches of one branch: what its commands change in them is its own, and never lands.

    Args:
        directory: the branch's in the data directory. found: as of `find_caches`.
        kept: directories that must not be seen through a cache.
    """

    def __init__(self, directory: Path, found: Mapping[str, str], kept: Sequence[Path]) -> None:
        self._uppers, self._works = directory / "caches", directory / "caches-work"
        closed = [os.path.realpath(each) for each in kept]
        self._shown = [
            (kind, found[kind.name])
            for kind in _KINDS
            if kind.name in found
            and not any(
                is_below(each, found[kind.name]) or is_below(found[kind.name], each) for each in closed
            )
        ]

    # ------------------------------------------------------------ the overlay tier

    def make(self, home: Path) -> list[tuple[str, str]]:
        """Make the branch's own directories and links to them; return each with where it stands. Blocks."""
        for kind, _ in self._shown:
            for directory in (self._uppers, self._works):
                (directory / kind.name).mkdir(mode=0o700, parents=True, exist_ok=True)
        _link(home, {kind.place: f"{INSIDE}/{kind.name}" for kind, _ in self._shown})
        return [(str(self._uppers / kind.name), f"{INSIDE}/{kind.name}") for kind, _ in self._shown]

    def overlays(self, masks: Path) -> list[tuple[str, Overlay]]:
        """Return what to mount there: the user's cache below, the branch's own directory above. Blocks.

        Args:
            masks: a directory for layers that hide what of a cache is not shown; made where it is needed. No
                command sees it, so none can put a link in the way of what is written here.
        """
        found: list[tuple[str, Overlay]] = []
        for kind, place in self._shown:
            lower = [place]
            for secret in _hidden(kind, place):
                hidden = masks / kind.name / os.path.relpath(secret, place)
                hidden.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                make_whiteout(hidden)
                lower = [str(masks / kind.name), place]
            upper, work = str(self._uppers / kind.name), str(self._works / kind.name)
            found.append((f"{INSIDE}/{kind.name}", Overlay(tuple(lower), upper, work)))
        return found

    # ------------------------------------------------------------ the copy tier

    def read_where_they_are(self, home: Path) -> list[str]:
        """Link to caches that tools only read; return the trees that commands may read for it. Blocks."""
        fit = [(kind, place) for kind, place in self._shown if kind.read_only]
        _link(home, {kind.place: place for kind, place in fit})
        secrets = [Path(each) for kind, place in fit for each in _hidden(kind, place)]
        return list(without([place for _, place in fit], secrets).trees)


def _hidden(kind: _Kind, place: str) -> list[str]:
    """Return what of a cache is not shown, none of it below another."""
    named = [str(path) for pattern in kind.apart for path in Path(place).glob(pattern)]
    found = [*named, *(() if kind.by_hash else secrets_in(place))]
    return [path for path in dict.fromkeys(found) if not any(path != o and is_below(path, o) for o in found)]


def _link(home: Path, targets: Mapping[str, str]) -> None:
    """Make the links in a branch's home, through none on the way; a link to what is not shown now goes.

    What else commands put in such a place stays.
    """
    root = os.open(home, handles.DIRECTORY)
    try:
        for kind in _KINDS:
            with contextlib.suppress(OSError):  # a command closed a directory, or put something else there
                _link_one(root, kind.place, targets.get(kind.place))
    finally:
        os.close(root)


def _link_one(root: int, place: str, target: str | None) -> None:
    *above, name = place.split("/")
    here = os.dup(root)
    try:
        for part in above:
            if target is not None:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(part, 0o700, dir_fd=here)
            inner = os.open(part, handles.DIRECTORY, dir_fd=here)
            os.close(here)
            here = inner
        with contextlib.suppress(OSError):  # nothing, or no link
            if os.readlink(name, dir_fd=here) != target:
                os.unlink(name, dir_fd=here)
        if target is not None:
            os.symlink(target, name, dir_fd=here)
    finally:
        os.close(here)
