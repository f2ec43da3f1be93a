"""Running Python as a user without rights, wherever this interpreter and this project are kept.

Here: a copy of what is needed, readable by everybody, and the command that runs it as `nobody`. A home
directory may be closed to others, so nothing of it is relied on.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

NOBODY = 65534
_PROJECT = Path(__file__).parents[2]
_UNNEEDED = shutil.ignore_patterns(
    "test", "tests", "idlelib", "tkinter", "lib2to3", "ensurepip", "turtledemo", "config-*",
    "site-packages", "*.a",
)  # fmt: skip
_LARGE = (
    "xllamacpp*",
    "anthropic*",
    "openai*",
    "mkdocs*",
    "material*",
    "nodejs*",
    "ruff*",
    "pyright*",
    "uv*",
)


class Unprivileged:
    """A place of `nobody`'s with this project in it.

    Args:
        place: an empty directory; must be reachable by everybody. Made readable.
    """

    def __init__(self, place: Path) -> None:
        self._place = place
        place.chmod(0o755)
        self._project = place / "project"
        # Compiled modules come along: dozens of interpreters start, and each would compile what it imports.
        for name in ("src", "tests"):
            shutil.copytree(_PROJECT / name, self._project / name, copy_function=_linked)
        shutil.copy(_PROJECT / "pyproject.toml", self._project)
        self.work = place / "work"
        self.work.mkdir(mode=0o700)
        os.chown(self.work, NOBODY, NOBODY)
        self._python = sys.executable
        self._libraries = ""
        self._path = [str(self._project / "src"), str(self._project / "tests")]
        if not self._runs():
            self._copy_interpreter()
            if not self._runs():
                raise RuntimeError(f"no interpreter that user {NOBODY} can run, not even a copy in {place}")

    def _runs(self) -> bool:
        try:
            return self.run(["-c", "import msgspec, pytest, pyseccomp, pygit2"]).returncode == 0
        except OSError:  # it lies below a directory that others cannot enter, say a home
            return False

    def _copy_interpreter(self) -> None:
        base = self._place / "python"
        version = f"python{sys.version_info.major}.{sys.version_info.minor}"
        library = Path(sys.base_prefix) / "lib" / version
        shutil.copytree(library, base / "lib" / version, ignore=_UNNEEDED, copy_function=_linked)
        (base / "bin").mkdir()
        for library in (Path(sys.base_prefix) / "lib").glob("libpython*.so*"):
            shutil.copy(library, base / "lib")
        shutil.copy(Path(sys.executable).resolve(), base / "bin" / version)
        packages = base / "packages"
        shutil.copytree(
            _site_packages(),
            packages,
            ignore=shutil.ignore_patterns(*_LARGE),
            copy_function=_linked,
        )
        self._python = str(base / "bin" / version)
        self._libraries = str(base / "lib")  # an interpreter remembers where its library was
        self._path.append(str(packages))

    def run(
        self,
        words: list[str],
        *,
        timeout: float = 120,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """Run this interpreter as `nobody` with these arguments.

        Args:
            cwd: None = the project. env: of its environment, what is other than here.
        """
        return self.run_any(
            [self._python, "-B", *words], timeout=timeout, cwd=cwd, env=self._env() | dict(env or {})
        )

    def run_any(
        self, words: list[str], *, timeout: float, cwd: Path | None, env: Mapping[str, str]
    ) -> subprocess.CompletedProcess[str]:
        """Run any program as `nobody`, with this environment and no other."""
        return subprocess.run(
            words, user=NOBODY, group=NOBODY, extra_groups=[], cwd=cwd or self._project, env=dict(env),
            capture_output=True, text=True, errors="replace", timeout=timeout, check=False,
        )  # fmt: skip

    def _env(self) -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"], "HOME": str(self.work), "PYTHONPATH": ":".join(self._path),
            "TMPDIR": str(self.work), "LANG": "C.UTF-8",
            **({"LD_LIBRARY_PATH": self._libraries} if self._libraries else {}),
        }  # fmt: skip


def _linked(source: str, target: str) -> None:
    """Give a file a second name where that is possible: nobody here writes to it, and there are thousands."""
    try:
        os.link(source, target)
    except OSError:  # another file system
        shutil.copy2(source, target)


def _site_packages() -> Path:
    import msgspec

    return Path(msgspec.__file__).parents[1]


def run_corpus(nobody: Unprivileged, files: Sequence[str], cases: str) -> subprocess.CompletedProcess[str]:
    """Run `test_<file>.py` of the sandbox as that user, up to the first failure.

    Args:
        cases: pytest's `-k`; all when empty.
    """
    words = ["-m", "pytest", "-p", "no:cacheprovider", "-x", "-rs"]
    words += [str(path) for file in files for path in sorted(Path("tests/sandbox").rglob(f"test_{file}.py"))]
    return nobody.run([*words, "-k", cases] if cases else words, timeout=1400)
