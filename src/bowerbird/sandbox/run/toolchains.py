"""The developer's own environment: what commands must see so that PATH works inside (GI-14, D-26).

Here: the tables (tool → what of it is needed, names that are never shown) and the search from PATH over links
and first lines of scripts to interpreters and their libraries. Everything found is shown read-only.
Not here: how it is shown (`profile`), what Bowerbird itself keeps back (`shown_trees`).
"""

import fnmatch
import os
import stat
from collections.abc import Collection, Iterator, Mapping, Sequence
from glob import escape, glob
from pathlib import Path

import msgspec

from bowerbird.core.errors import ConfigError
from bowerbird.sandbox.run.shown_trees import is_below

_MOST_ENTRIES, _MOST_TREES, _MOST_UP = 1_000, 256, 5
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")


class _Manager(msgspec.Struct, frozen=True):
    """A tool with a place of its own below the home.

    Attributes:
        variable: says where it is; told to commands, whose HOME is another, if `told`.
        shows: what of it commands need; never its settings or what it keeps for itself.
        versions: name of the file in which a project chooses a version; its shims then lead there.
    """

    name: str
    variable: str
    place: str
    shows: tuple[str, ...]
    told: bool = True
    versions: str = ""


_ENV = ("bin", "libexec", "shims", "versions", "version", "plugins", "completions")
_MANAGERS = (
    _Manager("pyenv", "PYENV_ROOT", "~/.pyenv", (*_ENV, "pyenv.d"), versions=".python-version"),
    _Manager("rbenv", "RBENV_ROOT", "~/.rbenv", (*_ENV, "rbenv.d"), versions=".ruby-version"),
    _Manager("nodenv", "NODENV_ROOT", "~/.nodenv", (*_ENV, "nodenv.d"), versions=".node-version"),
    _Manager("nvm", "NVM_DIR", "~/.nvm", ("versions", "alias", "nvm.sh", "nvm-exec")),
    _Manager("volta", "VOLTA_HOME", "~/.volta", ("bin", "tools", "volta", "volta-shim", "volta-migrate")),
    _Manager("mise", "MISE_DATA_DIR", "~/.local/share/mise", ("installs", "shims", "plugins")),
    _Manager("asdf", "ASDF_DATA_DIR", "~/.asdf", ("bin", "lib", "libexec", "installs", "shims", "plugins")),
    _Manager("sdkman", "SDKMAN_DIR", "~/.sdkman", ("candidates",)),
    _Manager("rustup", "RUSTUP_HOME", "~/.rustup", ("toolchains", "settings.toml", "update-hashes")),
    _Manager("cargo", "CARGO_HOME", "~/.cargo", ("bin",), told=False),
    _Manager("go", "GOPATH", "~/go", ("bin",), told=False),
    _Manager("uv", "", "~/.local/share/uv", ("python",), told=False),
    _Manager("opt", "", "/opt", ("",), told=False),
    _Manager("nix", "", "/nix", ("store",), told=False),
)


class _Prefix(msgspec.Struct, frozen=True):
    """A tool that is known by what lies in its directory: all of `marks`. `shows`: what of it; none = all."""

    name: str
    marks: tuple[str, ...]
    shows: tuple[str, ...] = ("",)


_PREFIXES = (
    _Prefix("venv", ("pyvenv.cfg",)),
    _Prefix("conda", ("conda-meta",)),
    _Prefix("python", ("bin/python3*", "lib/python3*/os.py")),
    _Prefix("node", ("bin/node", "lib/node_modules")),
    _Prefix("go", ("bin/go", "pkg/tool")),
    _Prefix("rustup", ("bin/rustc", "lib/rustlib")),
    _Prefix("java", ("bin/java", "lib/modules")),
    _Prefix("java", ("bin/java", "jre/lib")),
    _Prefix("ruby", ("bin/ruby", "lib/ruby")),
    _Prefix("java", ("bin/mvn", "boot"), ("bin", "boot", "lib", "conf")),
    _Prefix("java", ("bin/gradle", "lib/plugins"), ("bin", "lib")),
    _Prefix("homebrew", ("Cellar", "bin")),
    # Whatever else was installed with a prefix: `npm install -g`, `pip install --user`, `make install`.
    _Prefix("path", ("bin", "lib"), ("bin", "lib", "libexec")),
)
KNOWN = tuple(sorted({"path", *(each.name for each in (*_MANAGERS, *_PREFIXES))}))
"""What `sandbox.toolchains` may list."""

_DIRECTORIES = (
    "VIRTUAL_ENV", "CONDA_PREFIX", "JAVA_HOME", "GOROOT", "NVM_BIN", "MAVEN_HOME", "M2_HOME", "GRADLE_HOME",
    "DOTNET_ROOT", "FNM_MULTISHELL_PATH",
)  # fmt: skip
_CHOICES = (
    "CONDA_DEFAULT_ENV", "PYENV_VERSION", "RBENV_VERSION", "NODENV_VERSION", "RUSTUP_TOOLCHAIN",
    "GOTOOLCHAIN",
)  # fmt: skip
TOLD = (*_DIRECTORIES, *_CHOICES, *(each.variable for each in _MANAGERS if each.told))
"""Variables of the user's that commands have as well."""

# Places that hold a person's things beside tools: only what a table names is shown of them.
_NEVER_WHOLE = ("", ".local", ".local/share", ".local/state", ".config", ".cache", ".cargo", "go", ".rustup")
# Wherever they lie, and all below them: these are no tools.
_CLOSED = (
    ".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".password-store", ".bowerbird", "keyrings",
    ".mozilla", ".thunderbird", "gcloud", ".claude", ".codex", ".gemini",
)  # fmt: skip
SECRETS = (
    ".env", ".env.*", "pip.conf", ".npmrc", "npmrc", ".yarnrc.yml", ".netrc", "_netrc", ".pypirc", ".condarc",
    "condarc", "credentials", "credentials.toml", "credentials.json", "credentials.xml", ".credentials*",
    "auth.json", "settings.xml", "settings-security.xml", "gradle.properties", "init.gradle",
    ".git-credentials", ".gitconfig", ".pgpass", ".my.cnf", ".dockercfg", ".vault-token", ".vault-pass*",
    "id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "*.key", "*.p12", "*.pfx", "*.keystore", "*.kdbx",
    "*key.pem", "*_history",
)  # fmt: skip
"""Names that are not shown at the top of any tree or in its directories, whatever tool put them there."""
_SECRET_DEPTH = 2


class Toolchains(msgspec.Struct, frozen=True):
    """What commands see of the developer's environment.

    Attributes:
        trees: directories and files to show, none below another. secrets: what of them is left out.
        path: PATH as it is outside, less what is not there. env: variables that tools need.
        shims: directories of shims on `path`, with how their versions are chosen.
        user_sites: directories of packages that `pip install --user` made, by the name of their interpreter.
    """

    trees: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()
    path: tuple[str, ...] = ()
    env: Mapping[str, str] = msgspec.field(default_factory=dict[str, str])
    shims: tuple["Shims", ...] = ()
    user_sites: Mapping[str, str] = msgspec.field(default_factory=dict[str, str])


class Shims(msgspec.Struct, frozen=True):
    """A directory of scripts that ask a version manager which version runs."""

    directory: str
    root: str
    file: str
    chosen: str | None

    def stands_for(self, workspace: Path | None) -> tuple[str, ...]:
        """Return the directories that they lead to in a workspace; none = the system's. Blocks."""
        words = self.chosen or self._said(workspace)
        found: list[str] = []
        for word in words.replace(":", " ").split():
            versions = Path(self.root, "versions")
            exact = versions / word
            is_there = os.access(exact, os.R_OK | os.X_OK)
            named = [exact] if is_there else sorted(_found(str(versions), f"{word}.*"), key=_by_number)
            found += [f"{named[-1]}/bin"] if named else []
        return tuple(found)

    def _said(self, workspace: Path | None) -> str:
        above = [] if workspace is None else [workspace, *workspace.parents]
        for file in (*(each / self.file for each in above), Path(self.root, "version")):
            try:
                return " ".join(line.split("#")[0] for line in file.read_text().splitlines())
            except (OSError, UnicodeDecodeError):
                continue  # nothing is chosen there
        return ""


def _found(directory: str, pattern: str) -> list[Path]:
    """Return what fits in a directory; nothing where it may not be read, as another's home."""
    return [Path(path) for path in glob(f"{escape(directory)}/{pattern}")]  # noqa: PTH207 - which raises


def _by_number(path: Path) -> list[int]:
    return [int(part) if part.isdigit() else -1 for part in path.name.split(".")]


def find_toolchains(chosen: Collection[str], environ: Mapping[str, str], *, home: Path) -> Toolchains:
    """Look for what PATH and the variables of `environ` need. Blocks; reads directories of PATH, no tree.

    Args:
        chosen: `auto`, `off`, or names of `KNOWN`.

    Raises:
        ConfigError: `chosen` holds another name.
    """
    search = _Search(frozenset(chosen), environ, str(home))
    entries = [each for each in environ.get("PATH", "").split(":") if each]
    for manager in _MANAGERS:
        search.manager(manager, entries)
    for name in _DIRECTORIES:
        if value := environ.get(name, ""):
            search.around(value)
    for entry in entries:
        search.directory(entry)
    return search.result(entries)


def may_be_shown(path: str, homes: Sequence[str]) -> bool:
    """Whether a tree may be a tool's: not a home or what leads to one, nothing of a closed name."""
    parts = path.strip("/").split("/")
    if (len(parts) < 2 and path != "/opt") or (len(parts) == 2 and parts[0] == "home"):
        return False
    for home in homes:
        if is_below(home, path) or any(path == f"{home}/{name}" for name in _NEVER_WHOLE):
            return False
    return path.startswith("/") and not any(part in _CLOSED for part in parts)


class _Search:
    def __init__(self, chosen: frozenset[str], environ: Mapping[str, str], home: str) -> None:
        unknown = sorted(chosen - {"auto", "off", "none", *KNOWN})
        if unknown:
            raise ConfigError(
                f"sandbox.toolchains: {unknown[0]!r} is not known: auto, off, {', '.join(KNOWN)}"
            )
        self._chosen = chosen
        self._environ = environ
        self._home = home
        self._homes = tuple(dict.fromkeys((home, os.path.realpath(home))))
        self._trees: dict[str, None] = {}
        self._env: dict[str, str] = {}
        self._shims: list[Shims] = []
        self._seen: set[str] = set()
        self._places: set[tuple[str, bool]] = set()

    def _wants(self, name: str) -> bool:
        return "auto" in self._chosen or name in self._chosen

    # ------------------------------------------------------------ what may be shown

    def add(self, path: str) -> None:
        """Show a tree if that may be; what is the system's is shown anyway."""
        if self.visible(path) or len(self._trees) >= _MOST_TREES:
            return
        names = (path, os.path.realpath(path))
        if all(may_be_shown(name, self._homes) for name in names) and os.path.exists(path):  # noqa: PTH110 - words
            self._trees[path] = None

    def visible(self, path: str) -> bool:
        """Whether a path is shown already."""
        return any(is_below(path, tree) for tree in (*_SYSTEM, *self._trees))

    # ------------------------------------------------------------ where things are

    def manager(self, manager: _Manager, entries: Sequence[str]) -> None:
        """Show what a version manager or an installer keeps: where its variable, PATH or custom say it is."""
        roots = [self._environ.get(manager.variable, "").split(":")[0]] if manager.variable else []
        below = manager.place.removeprefix("~") + "/"
        roots += [f"{e}/".partition(below)[0] + below for e in entries if below in f"{e}/"]
        roots += [manager.place.replace("~", self._home)]
        for root in dict.fromkeys(os.path.normpath(each) for each in roots if each.startswith("/")):
            if not self._wants(manager.name) or not os.path.isdir(root):  # noqa: PTH112 - may lie in another's home
                continue
            for part in manager.shows:
                self.add(f"{root}/{part}".rstrip("/"))
            if manager.told:
                self._env.setdefault(manager.variable, root)
            if manager.versions:
                chosen = self._environ.get(manager.variable.replace("_ROOT", "_VERSION"))
                self._shims.append(Shims(f"{root}/shims", root, manager.versions, chosen))

    def directory(self, entry: str) -> None:
        """Show a directory of PATH with what its programs need."""
        path = os.path.normpath(entry)
        if not os.path.isabs(path) or is_below(path, "/mnt") or any(is_below(path, top) for top in _SYSTEM):  # noqa: PTH117 - words
            return
        self.around(path)
        if self._wants("path"):
            self.add(path)
        if self.visible(path):
            self._programs(path)

    def around(self, path: str) -> None:
        """Show the tools that a path belongs to: it may lie deep in one, and that one in another."""
        for start in dict.fromkeys((os.path.normpath(path), os.path.realpath(path))):
            place = start
            for up in range(_MOST_UP):
                if place in ("/", *self._homes) or any(is_below(place, top) for top in _SYSTEM):
                    break
                if (place, up == 1) not in self._places:
                    self._places.add((place, up == 1))
                    self._prefix(place, near=up == 1)
                place = os.path.dirname(place)

    def _prefix(self, place: str, *, near: bool) -> None:
        here = Path(place)
        for prefix in _PREFIXES:
            if prefix.name == "path" and not near:  # a project above an environment may have `bin` and `lib`
                continue
            if not self._wants(prefix.name) or not all(_found(place, m) for m in prefix.marks):
                continue
            for part in prefix.shows:
                self.add(f"{place}/{part}".rstrip("/"))
            if prefix.name == "venv":
                self._interpreter(here)
            elif prefix.name == "conda" and here.parent.name == "envs":
                self.around(str(here.parent.parent))
            return

    def _interpreter(self, environment: Path) -> None:
        """Follow a virtual environment to the Python that it was made from."""
        for name in ("python", "python3"):
            self._follow(str(environment / "bin" / name))
        try:
            lines = (environment / "pyvenv.cfg").read_text().splitlines()
        except (OSError, UnicodeDecodeError):
            return  # not to be read, so nothing can be followed
        for line in lines:
            name, _, value = line.partition("=")
            if name.strip() == "home" and value.strip().startswith("/"):
                self.around(value.strip())

    def _programs(self, directory: str) -> None:
        try:
            names = sorted(os.listdir(directory))[:_MOST_ENTRIES]
        except OSError:
            return  # not to be read, so not to be run by name either
        for name in names:
            self._follow(f"{directory}/{name}")

    def _follow(self, program: str) -> None:
        """Show what a link leads to, and the interpreter that a script names in its first lines."""
        real = os.path.realpath(program)
        if real != program and not self.visible(real):
            self.around(os.path.dirname(real))
            if self._wants("path"):
                self.add(real)
        interpreter = first_line_program(real)
        if interpreter and not any(is_below(interpreter, top) for top in _SYSTEM):
            self.around(os.path.dirname(interpreter))
            if interpreter != program and interpreter not in self._seen:
                self._seen.add(interpreter)
                self._follow(interpreter)

    # ------------------------------------------------------------ the result

    def result(self, entries: Sequence[str]) -> Toolchains:
        """Return what was found, with PATH as it is outside."""
        trees = [t for t in self._trees if not any(t != o and is_below(t, o) for o in self._trees)]
        env = {name: root for name, root in self._env.items() if any(is_below(t, root) for t in trees)}
        if "off" not in self._chosen:
            env |= {name: self._environ[name] for name in (*_DIRECTORIES, *_CHOICES) if name in self._environ}
        sites = {
            path.parent.name: str(path)
            for path in _found(self._home, ".local/lib/python3*/site-packages")
            if self.visible(str(path))
        }
        secrets = tuple(each for tree in trees for each in secrets_in(tree))
        path = tuple(dict.fromkeys(entries))
        return Toolchains(tuple(trees), secrets, path, env, tuple(self._shims), sites)


def first_line_program(script: str) -> str | None:
    """Return the absolute path of the interpreter that a script names, None for other files."""
    try:
        fd = os.open(script, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None  # not there, or not ours to read
    try:
        head = os.read(fd, 512) if stat.S_ISREG(os.fstat(fd).st_mode) else b""
    finally:
        os.close(fd)
    if not head.startswith(b"#!"):
        return None
    first, _, rest = head[2:].partition(b"\n")
    words = first.split()
    if words == [b"/bin/sh"] and rest.startswith(b"'''exec' "):  # pip's form for long paths and spaces
        second = rest.split(b"\n")[0].removeprefix(b"'''exec' ")
        words = [second.split(b'"')[1]] if second.startswith(b'"') else second.split()
    word = os.fsdecode(words[0]) if words else ""
    return os.path.normpath(word) if word.startswith("/") else None


def secrets_in(tree: str) -> Iterator[str]:
    """Yield what has a name of `SECRETS` at the top of a tree and in its directories."""
    todo = [(tree, 0)] if tree != "/nix/store" else []  # which every user of the machine reads
    while todo:
        directory, depth = todo.pop()
        try:
            with os.scandir(directory) as found:
                entries = [entry for entry, _ in zip(found, range(_MOST_ENTRIES), strict=False)]
        except OSError:
            continue  # a file, or not ours to read
        for entry in entries:
            if any(fnmatch.fnmatchcase(entry.name.lower(), name) for name in SECRETS):
                yield entry.path
            elif depth + 1 < _SECRET_DEPTH and entry.is_dir(follow_symlinks=False):
                todo.append((entry.path, depth + 1))
