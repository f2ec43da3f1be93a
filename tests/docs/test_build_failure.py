"""A build of the pages that fails says so in one sentence, below npm's own lines (UI-1)."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NPM = """#!/bin/sh
echo 'npm error code E404' >&2
echo 'npm error 404 Not Found - GET a-package' >&2
exit 1
"""


@pytest.fixture
def source(tmp_path: Path) -> tuple[Path, dict[str, str]]:
    """The sources without built pages, and an environment whose npm fails."""
    place, programs = tmp_path / "source", tmp_path / "bin"
    kept = shutil.ignore_patterns("node_modules", "ui", "__pycache__", ".git", ".venv")
    for name in ("scripts", "src", "web"):
        shutil.copytree(ROOT / name, place / name, ignore=kept)
    for name in ("pyproject.toml", "hatch_build.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, place / name)
    programs.mkdir()
    (programs / "npm").write_text(NPM)
    (programs / "node").write_text("#!/bin/sh\necho v22.1.0\n")
    for name in ("npm", "node"):
        (programs / name).chmod(0o755)
    return place, {**os.environ, "PATH": f"{programs}:/usr/bin:/bin"}


@pytest.mark.parametrize(
    "command",
    [["scripts/build_web.py"], ["-m", "hatchling", "build", "-t", "wheel"]],
    ids=["script", "wheel"],
)
def test_npm_s_own_lines_and_one_sentence_are_all_that_is_shown(
    source: tuple[Path, dict[str, str]], command: list[str]
) -> None:
    """It was a traceback of 27 lines."""
    place, environment = source
    done = subprocess.run(
        [sys.executable, *command], cwd=place, env=environment, capture_output=True, text=True, check=False
    )
    said = (done.stdout + done.stderr).strip().splitlines()
    assert done.returncode == 1 and "Traceback" not in "".join(said)
    assert "npm error code E404" in said and len(said) <= 5
    assert (
        said[-1] == "npm could not install what the pages are made of (exit 1); its own lines above say why"
    )
