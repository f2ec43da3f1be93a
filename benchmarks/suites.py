"""Test suites of published projects, plain and on a branch, by a user without rights (GI, acceptance 1).

    python benchmarks/suites.py [--only pluggy click …] [--tiers overlay copy] [--place DIR] [--names]

Fetches source distributions and what their tests need with the ordinary pip and npm clients; makes a C project
with a Makefile and, where cargo or go is there, a crate and a module. Each suite runs in its own activated
environment: plain, then with `bowerbird sandbox run` in each tier. Prints outcomes, seconds and their ratio;
exit code 1 when a suite's outcome on a branch is another than plain. `--names` prints which tests differ,
`--place` keeps what was fetched for the next run. Needs Debian's python3 with venv; as root everything runs as
`nobody`, otherwise as you.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from support.unprivileged import NOBODY, Unprivileged

PYTHON = "/usr/bin/python3"
LIMIT_S = 1800
WORDS = ("passed", "failed", "skipped", "errors", "xfailed", "xpassed")


@dataclass(frozen=True)
class Suite:
    """One project: how it comes here and how its own tests run.

    Attributes:
        source: what pip downloads; None = `make` writes it. needs: what pip installs for its tests.
        command: a shell line, in the project with its environment active.
    """

    name: str
    command: str
    source: str | None = None
    needs: tuple[str, ...] = ()
    make: Callable[[Path], None] | None = None


@dataclass(frozen=True)
class Outcome:
    """What a run said: counts, the names of what failed, seconds."""

    counts: str
    names: frozenset[str]
    seconds: float
    text: str

    def same(self, other: "Outcome") -> bool:
        """Whether it is the same but for the time."""
        return (self.counts, self.names) == (other.counts, other.names)


# ---------------------------------------------------------------- projects that are written here

MAKEFILE = """\
OBJECTS := $(patsubst %.c,build/%.o,$(wildcard src/*.c))
test: build/check
	./build/check
build/check: $(OBJECTS)
	$(CC) -o $@ $^
build/%.o: %.c
	@mkdir -p $(@D)
	$(CC) -O1 -c -o $@ $<
"""


def make_c(place: Path) -> None:
    """A program of 120 files with a Makefile."""
    (place / "src").mkdir(parents=True)
    (place / "Makefile").write_text(MAKEFILE)
    for number in range(120):
        (place / f"src/f{number}.c").write_text(f"int f{number}(void) {{ return {number}; }}\n")
    lines = [f"int f{n}(void);" for n in range(120)]
    checks = [f"if (f{n}() == {n}) good++;" for n in range(120)]
    main = f'int main(void) {{ int good = 0; {" ".join(checks)} printf("%d passed\\n", good); return good != 120; }}'
    (place / "src/main.c").write_text("\n".join(["#include <stdio.h>", *lines, main, ""]))


def make_vitest(place: Path) -> None:
    """A package with vitest from the registry and forty tests."""
    place.mkdir()
    (place / "package.json").write_text('{"name": "sums", "type": "module", "private": true}\n')
    (place / "sum.js").write_text("export const sum = (...all) => all.reduce((a, b) => a + b, 0)\n")
    tests = [f"test('sum to {n}', () => expect(sum({n}, 1)).toBe({n + 1}))" for n in range(40)]
    head = "import { expect, test } from 'vitest'\nimport { sum } from './sum.js'\n"
    (place / "sum.test.js").write_text(head + "\n".join(tests) + "\n")
    subprocess.run(["npm", "install", "--silent", "--no-fund", "--no-audit", "vitest"], cwd=place, check=True)


def make_crate(place: Path) -> None:
    """A crate with twenty tests and no dependency."""
    (place / "src").mkdir(parents=True)
    (place / "Cargo.toml").write_text('[package]\nname = "sums"\nversion = "0.1.0"\nedition = "2021"\n')
    tests = [f"#[test] fn sum_{n}() {{ assert_eq!(super::sum({n}, 1), {n + 1}); }}" for n in range(20)]
    body = (
        "pub fn sum(a: u32, b: u32) -> u32 { a + b }\n#[cfg(test)]\nmod tests {\n"
        + "\n".join(tests)
        + "\n}\n"
    )
    (place / "src/lib.rs").write_text(body)


def make_module(place: Path) -> None:
    """A Go module with twenty tests and no dependency."""
    place.mkdir()
    (place / "go.mod").write_text("module sums\n\ngo 1.19\n")
    (place / "sum.go").write_text("package sums\n\nfunc Sum(a, b int) int { return a + b }\n")
    tests = [
        f"func TestSum{n}(t *testing.T) {{ if Sum({n}, 1) != {n + 1} {{ t.Fail() }} }}" for n in range(20)
    ]
    (place / "sum_test.go").write_text('package sums\n\nimport "testing"\n\n' + "\n".join(tests) + "\n")


PYTEST = "python -m pytest -q -p no:cacheprovider -rfE"
DJANGO = "basic file_storage forms_tests template_tests utils_tests cache"
SUITES = (
    Suite("pluggy", PYTEST, "pluggy", ("pytest",)),
    Suite("click", PYTEST, "click", ("pytest",)),
    Suite("jinja2", PYTEST, "jinja2", ("pytest", "trio")),
    Suite("attrs", f"{PYTEST} tests", "attrs", ("pytest", "hypothesis", "cloudpickle")),
    Suite("httpx", f"{PYTEST} tests", "httpx", (
        "pytest", "anyio", "trio", "uvicorn", "trustme", "chardet", "brotli", "zstandard", "h2", "socksio",
        "click", "pygments", "rich", "cryptography",
    )),
    Suite("watchdog", f"{PYTEST} tests -o addopts=", "watchdog", ("pytest", "flaky", "pytest-timeout", "PyYAML")),
    Suite("django", f"cd tests && python runtests.py --parallel 2 {DJANGO}", "Django", ("jinja2", "tzdata")),
    Suite("vitest", "./node_modules/.bin/vitest run", make=make_vitest),
    Suite("make", "make -j2 test", make=make_c),
    Suite("cargo", "cargo test --offline", make=make_crate),
    Suite("go", "go test ./...", make=make_module),
)  # fmt: skip


# ---------------------------------------------------------------- preparing and running


class Runs:
    """Where the projects are, and who runs them."""

    def __init__(self, place: Path) -> None:
        self._place = place
        (place / "user").mkdir(exist_ok=True)
        self._other: Unprivileged | None = None
        if os.getuid() == 0:
            installed = Path(tempfile.mkdtemp(dir=place))
            self._other = Unprivileged(installed)
            # As an installation has it: nobody may write there, and would compile all of it at each start.
            subprocess.run([sys.executable, "-m", "compileall", "-q", installed], check=False)

    def project(self, suite: Suite) -> Path:
        """Return the project's directory, made if it is not there yet."""
        made = self._place / "user" / suite.name
        if made.exists():
            return made
        begun = self._place / f"{suite.name}.begun"
        shutil.rmtree(begun, ignore_errors=True)
        if suite.source is not None:
            self._fetch(suite, begun)
        elif suite.make is not None:
            suite.make(begun)
        begun.rename(made)
        if suite.source is not None:  # an environment knows its own path
            venv = made / ".venv"
            subprocess.run([PYTHON, "-m", "venv", venv], check=True)
            pip = [venv / "bin/pip", "install", "-q", "--disable-pip-version-check", "-e", ".", *suite.needs]
            subprocess.run(pip, cwd=made, check=True)
        (made / ".gitignore").write_text(".venv/\nnode_modules/\nbuild/\ntarget/\n__pycache__/\n")
        for words in ("init -q", "add -A", "-c user.name=U -c user.email=u@example.org commit -qm first"):
            subprocess.run(["git", *words.split()], cwd=made, check=True)
        return made

    def _fetch(self, suite: Suite, place: Path) -> None:
        name = suite.source or suite.name
        pip = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", name]
        with tempfile.TemporaryDirectory() as downloads:
            subprocess.run([*pip, "--dest", downloads, name], check=True)
            [archive] = Path(downloads).glob("*.tar.gz")
            with tarfile.open(archive) as files:
                files.extractall(Path(downloads) / "unpacked", filter="data")
            [top] = (Path(downloads) / "unpacked").iterdir()
            shutil.move(top, place)

    def plain(self, suite: Suite, project: Path) -> Outcome:
        """Run a suite as in a shell."""
        copied = self._fresh(project)
        words, env = ["/bin/bash", "-c", suite.command], self._env(copied)
        start = time.perf_counter()
        if self._other is not None:
            ran = self._other.run_any(words, timeout=LIMIT_S, cwd=copied, env=env)
        else:
            ran = subprocess.run(
                words, cwd=copied, env=env, capture_output=True, text=True, timeout=LIMIT_S, check=False
            )
        return outcome(ran.returncode, ran.stdout + ran.stderr, time.perf_counter() - start)

    def on_a_branch(self, suite: Suite, project: Path, tier: str) -> Outcome:
        """Run a suite with `bowerbird sandbox run`, the whole command counted."""
        copied = self._fresh(project)
        env = self._env(copied) | {"BOWERBIRD_SANDBOX__TIER": tier}
        words = ["sandbox", "run", "--json", "--timeout", str(LIMIT_S), "--", suite.command]
        start = time.perf_counter()
        if self._other is not None:
            run = ["-m", "bowerbird.cli.main", *words]
            ran = self._other.run(run, timeout=LIMIT_S, cwd=copied, env=env)
        else:
            command = [str(Path(sys.executable).parent / "bowerbird"), *words]
            ran = subprocess.run(
                command, cwd=copied, env=env, capture_output=True, text=True, timeout=LIMIT_S, check=False
            )
        seconds = time.perf_counter() - start
        try:
            said = json.loads(ran.stdout)
        except ValueError:
            raise SystemExit(f"{suite.name}: {ran.stdout}{ran.stderr}") from None
        if said["tier"] != tier:
            raise SystemExit(f"{suite.name}: ran in tier {said['tier']}, not {tier}")
        return outcome(said["exit_code"], self._whole(said), seconds)

    @staticmethod
    def _whole(said: dict[str, str]) -> str:
        return f"{said['output']}\n{said['note'] or ''}"

    def _fresh(self, project: Path) -> Path:
        """Return the project where nothing ran before: the environment in it knows this one path."""
        for words in (["clean", "-fdq"], ["checkout", "-q", "."]):
            subprocess.run(["git", "-c", f"safe.directory={project}", *words], cwd=project, check=True)
        for built in ("build", "target"):
            shutil.rmtree(project / built, ignore_errors=True)
        for cache in [path for path in project.rglob("__pycache__") if ".venv" not in path.parts]:
            shutil.rmtree(cache)
        if self._other is not None:
            subprocess.run(["chown", "-R", f"{NOBODY}:{NOBODY}", project], check=True)
        return project

    def _tool(self, name: str) -> Path | None:
        """Return the directory of a tool that the user can run; one in root's home is copied from there."""
        found = shutil.which(name)
        if found is None:
            return None
        if self._other is None or not Path(found).is_relative_to(Path.home()):
            return Path(found).parent
        copied = self._place / "tools" / name
        if name == "cargo" and not copied.exists():
            said = subprocess.run(["rustc", "--print", "sysroot"], capture_output=True, text=True, check=True)
            ignored = shutil.ignore_patterns("doc", "man", "src")
            shutil.copytree(said.stdout.strip(), copied, symlinks=True, ignore=ignored)
        return copied / "bin" if copied.exists() else None

    def _env(self, project: Path) -> dict[str, str]:
        """The environment of a shell in which the project's environment is active."""
        home = str(self._other.work) if self._other is not None else os.environ["HOME"]
        venv = project / ".venv"
        active = [str(venv / "bin")] if venv.exists() else []
        path = [*active, "/usr/local/bin", "/usr/bin", "/bin"]
        for tool in ("cargo", "go", "npm"):
            if (found := self._tool(tool)) is not None and str(found) not in path:
                path.append(str(found))
        return {
            "PATH": ":".join(path), "HOME": home, "LANG": "C.UTF-8", "TMPDIR": home,
            **({"VIRTUAL_ENV": str(venv)} if active else {}),
        }  # fmt: skip


def outcome(code: int, text: str, seconds: float) -> Outcome:
    """Read what pytest, unittest, vitest, cargo and go say at their ends."""
    clean = re.sub(r"\x1b\[[0-9;]*m", "", text)
    found: dict[str, int] = {}
    for line in clean.splitlines():
        counted = re.findall(r"(\d+) (passed|failed|skipped|errors?|xfailed|xpassed)\b", line)
        if counted and all(n == "0" for n, _ in counted):
            continue  # cargo's tests of documentation, where there are none
        if counted and not line.lstrip().startswith("Test Files"):
            found |= {word.removesuffix("s") if word == "errors" else word: int(n) for n, word in counted}
    if ran := re.search(r"^Ran (\d+) tests", clean, re.MULTILINE):
        found["ran"] = int(ran[1])
        found |= {word: int(n) for word, n in re.findall(r"(failures|errors|skipped)=(\d+)", clean)}
    names = frozenset(re.findall(r"^(?:FAILED|ERROR|FAIL:|ERROR:) (\S+)", clean, re.MULTILINE))
    counts = ", ".join(f"{n} {word}" for word, n in found.items() if n)
    return Outcome(f"{counts or 'no counts'}; exit {code}", names, seconds, clean)


def main() -> int:
    """Prepare, run, print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="*", choices=[suite.name for suite in SUITES])
    parser.add_argument("--tiers", nargs="*", default=["overlay", "copy"])
    parser.add_argument("--place", type=Path)
    parser.add_argument("--names", action="store_true")
    asked = parser.parse_args()
    place = asked.place or Path(tempfile.mkdtemp(prefix="suites-"))
    place.mkdir(parents=True, exist_ok=True)
    place.chmod(0o755)
    runs, differ = Runs(place), 0
    for suite in SUITES:
        if asked.only and suite.name not in asked.only:
            continue
        tool = suite.command.split()[0]
        if suite.source is None and not tool.startswith("./") and shutil.which(tool) is None:
            print(f"{suite.name:9} no {tool} here", flush=True)
            continue
        project = runs.project(suite)
        plain = runs.plain(suite, project)
        print(f"{suite.name:9} plain   {plain.seconds:7.1f} s         {plain.counts}", flush=True)
        for tier in asked.tiers:
            ran = runs.on_a_branch(suite, project, tier)
            word = "same" if ran.same(plain) else "DIFFERS"
            differ += not ran.same(plain)
            ratio = ran.seconds / plain.seconds
            print(
                f"{suite.name:9} {tier:7} {ran.seconds:7.1f} s {ratio:5.2f} x {ran.counts}: {word}",
                flush=True,
            )
            if asked.names and not ran.same(plain):
                print(
                    f"  only plain: {sorted(plain.names - ran.names)}\n  only here: {sorted(ran.names - plain.names)}"
                )
                print(ran.text[-3000:])
    if asked.place is None:
        shutil.rmtree(place, ignore_errors=True)
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
