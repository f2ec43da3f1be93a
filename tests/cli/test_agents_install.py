"""PR-28: installing a vendor's program, with an npm that does what the test says; whoever is killed, the earlier
installation works until the new one does."""

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.desk import Desk
from support.patience import HANG_S, patience
from support.servers import until

pytestmark = pytest.mark.timeout(patience(60))

NPM = """#!/bin/sh
# npm install --prefix PLACE …
place=$3
mkdir "$TEST/busy" 2>/dev/null || echo overlap >> "$TEST/overlaps"
mkdir -p "$place/node_modules/.bin"
printf '#!/bin/sh\\necho version %s\\n' "$(cat "$TEST/version")" > "$place/node_modules/.bin/opencode"
chmod +x "$place/node_modules/.bin/opencode"
if [ -e "$TEST/hang" ]; then
    sleep 600 &
    echo $! > "$TEST/child.new"; mv "$TEST/child.new" "$TEST/child"
    wait
fi
rmdir "$TEST/busy"
[ ! -e "$TEST/fail" ] || { echo "npm error: no network"; exit 1; }
"""


class Npm:
    """The machine's npm, and the installation that it makes."""

    def __init__(self, desk: Desk, place: Path) -> None:
        self.desk, self.place = desk, place
        self.agents = desk.home / ".bowerbird/data/agents"
        programs = place / "programs"
        programs.mkdir()
        for name, text in {"npm": NPM, "node": "#!/bin/sh\necho v99.0.0\n"}.items():
            (programs / name).write_text(text.replace("$TEST", str(place)))
            (programs / name).chmod(0o755)
        path = f"{programs}:{desk.environment['PATH']}"
        desk.environment["PATH"] = path
        self.offers("1")

    def offers(self, version: str, *flags: str) -> None:
        """Let npm install this version, and `hang` or `fail` over it."""
        (self.place / "version").write_text(version)
        for name in ("hang", "fail", "child"):
            (self.place / name).unlink(missing_ok=True)
        for name in flags:
            (self.place / name).touch()
        if (self.place / "busy").is_dir():
            (self.place / "busy").rmdir()

    def install(self) -> "subprocess.Popen[bytes]":
        return self.desk.start("agents", "install", "opencode")

    def works(self) -> str:
        """What the installed program says."""
        return subprocess.run(
            [self.agents / "bin/opencode"], capture_output=True, text=True, check=True, timeout=HANG_S
        ).stdout.strip()

    def child(self) -> int:
        """The process that npm started, once it has."""
        until((self.place / "child").exists, "npm hangs", HANG_S)
        return int((self.place / "child").read_text())


@pytest.fixture
def npm(here: Desk, tmp_path: Path) -> Iterator[Npm]:
    made = Npm(here, tmp_path)
    process = made.install()
    assert process.wait(HANG_S) == 0, process.communicate()
    assert made.works() == "version 1"
    yield made


def has_ended(pid: int) -> bool:
    try:
        return " Z " in Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return True


def test_an_update_that_fails_leaves_what_works(npm: Npm) -> None:
    npm.offers("2", "fail")
    process = npm.install()
    _, err = process.communicate(timeout=HANG_S)
    assert process.returncode == 1 and b"no network" in err
    assert npm.works() == "version 1"
    npm.offers("3")
    assert npm.install().wait(HANG_S) == 0 and npm.works() == "version 3"
    assert len(os.listdir(npm.agents / "opencode")) == 1


@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGKILL, -9), (signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGINT, 130)],
)
def test_an_update_that_is_stopped_leaves_what_works_and_no_process(
    npm: Npm, number: signal.Signals, code: int
) -> None:
    npm.offers("2", "hang")
    process = npm.install()
    child = npm.child()
    process.send_signal(number)
    _, err = process.communicate(timeout=HANG_S)
    assert process.returncode == code and b"Traceback" not in err
    until(lambda: has_ended(child), "nothing that npm started outlives it", HANG_S)
    assert npm.works() == "version 1"
    npm.offers("3")
    assert npm.install().wait(HANG_S) == 0 and npm.works() == "version 3"
    assert len(os.listdir(npm.agents / "opencode")) == 1


def test_two_at_once_install_one_after_the_other(npm: Npm) -> None:
    npm.offers("2", "hang")
    first = npm.install()
    child = npm.child()
    second = npm.install()
    assert second.stderr is not None
    assert b"another installation is running" in second.stderr.readline()
    (npm.place / "hang").unlink()
    os.kill(child, signal.SIGTERM)  # the first goes on
    assert [process.wait(HANG_S) for process in (first, second)] == [0, 0]
    assert npm.works() == "version 2" and not (npm.place / "overlaps").exists()
    assert len(os.listdir(npm.agents / "opencode")) == 1
