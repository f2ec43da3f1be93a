"""Commands in a directory that their user may not look into: `sudo -u bowerbird …` in an administrator's home."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from support.patience import HANG_S, patience
from support.terminals import COMMAND, clean_environment

pytestmark = pytest.mark.timeout(patience(60))

# The superuser, too, is kept out by a directory's mode without these.
RIGHTS = "-dac_override,-dac_read_search,-fowner"
LIKE_ANYBODY = ["setpriv", f"--bounding-set={RIGHTS}", f"--inh-caps={RIGHTS}"] if os.geteuid() == 0 else []
INSIDE = 'cd "$1" && chmod 0 . && shift && exec "$@"'


@pytest.mark.parametrize("command", ["token list", "sessions --all", "config check", "usage"])
def test_what_cannot_be_looked_at_is_not_there(tmp_path: Path, command: str) -> None:
    """It was ".env: Permission denied; check its permissions, or keep the data elsewhere"."""
    if LIKE_ANYBODY and shutil.which("setpriv") is None:
        pytest.skip("the superuser may look everywhere, and setpriv is missing here")
    for name in ("home", "closed"):
        (tmp_path / name).mkdir()
    settings = tmp_path / "config.yaml"
    settings.write_text("agent: {data_dir: ./data, workspace: ./home}\n", encoding="utf-8")
    settings.chmod(0o600)
    words = [*LIKE_ANYBODY, *COMMAND, "--config", str(settings), *command.split()]
    environment = clean_environment(tmp_path / "home")
    inside = ["bash", "-c", INSIDE, "-", str(tmp_path / "closed"), *words]
    try:
        done = subprocess.run(
            inside, env=environment, capture_output=True, text=True, timeout=HANG_S, check=False
        )
    finally:
        (tmp_path / "closed").chmod(0o700)
    assert done.returncode == 0, done.stderr
    assert "ermission" not in done.stderr
