"""D-9: `make demo` and `make test` install bubblewrap where they may, and else say what the weaker tier means."""

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
WEAKER = "weaker tier: on a copy of the branch"


def machine(place: Path, **programs: str) -> dict[str, str]:
    """Return the environment of a machine that has nothing but bash, git and these."""
    place.mkdir()
    for name in ("bash", "env"):
        (place / name).symlink_to(f"/usr/bin/{name}" if Path(f"/usr/bin/{name}").exists() else f"/bin/{name}")
    for name, script in {"git": "exit 0", **programs}.items():
        (place / name).write_text(f"#!/bin/bash\n{script}\n")
        (place / name).chmod(0o755)
    return {"PATH": str(place), "SEEN": str(place / "seen")}


def run(env: dict[str, str]) -> str:
    words = ["bash", "scripts/debian-packages", "sandbox"]
    done = subprocess.run(words, cwd=ROOT, env=env, capture_output=True, text=True, timeout=20, check=True)
    return done.stderr


@pytest.mark.parametrize("who", ["root", "sudo"])
def test_bubblewrap_is_installed_where_it_may_be(tmp_path, who: str):
    installs = (
        'echo "$@" >> "$SEEN"; [ "$1" = update ] || { printf "#!/bin/bash\\n" > "${0%/*}/bwrap"; chmod_ ; }'
    )
    programs = {"apt-get": f'chmod_() {{ /bin/chmod +x "${{0%/*}}/bwrap"; }}\n{installs}'}
    programs |= {"id": "echo 0"} if who == "root" else {"id": "echo 1000", "sudo": 'shift; "$@"', "true": ""}
    env = machine(tmp_path / "bin", **programs)
    assert run(env) == ""
    assert Path(env["SEEN"]).read_text() == "update -qq\ninstall -y -qq bubblewrap\n"


def test_where_it_may_not_be_one_line_says_what_that_means(tmp_path):
    env = machine(tmp_path / "bin", **{"apt-get": "exit 1", "id": "echo 1000", "sudo": "exit 1"})
    first, second = run(env).splitlines()
    assert "sudo apt-get install bubblewrap" in first and WEAKER in second


def test_the_same_where_there_is_no_apt_or_it_fails(tmp_path):
    assert WEAKER in run(machine(tmp_path / "none"))
    failing = run(machine(tmp_path / "fails", **{"apt-get": "exit 1", "id": "echo 0"}))
    assert "could not be installed: bubblewrap" in failing and WEAKER in failing


def test_nothing_is_said_where_it_is_there(tmp_path):
    assert run(machine(tmp_path / "bin", bwrap="exit 0", id="echo 1000")) == ""
    makefile = (ROOT / "Makefile").read_text()
    assert "scripts/debian-packages sandbox" in makefile and "\tscripts/debian-packages\n" in makefile
