"""What a wheel holds and needs: the pages are in it, and nothing of Node is needed to install it (UI-1)."""

import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
from support.patience import patience
from support.plain_install import built_wheel

pytestmark = pytest.mark.timeout(patience(300))

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel of this source, as `python -m build` and `uv build` make it; its pages are built where they are not."""
    return built_wheel(tmp_path_factory.mktemp("wheel"))


def test_the_pages_are_in_the_wheel_and_their_sources_are_not(wheel: Path) -> None:
    """UI-1: a server that was installed from it serves both faces."""
    names = zipfile.ZipFile(wheel).namelist()
    assert "bowerbird/ui/index.html" in names
    scripts = {name for name in names if name.startswith("bowerbird/ui/assets/") and ".js" in name}
    assert scripts and not any(f"{name}.gz" in scripts for name in scripts)  # one form of each is enough
    assert not [name for name in names if name.endswith((".ts", ".tsx")) or "node_modules" in name]


def test_it_installs_without_node_and_the_command_answers(wheel: Path, tmp_path: Path) -> None:
    """UI-1: into an environment of its own, with no program on the PATH."""
    target = tmp_path / "installed"
    install = [
        sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--disable-pip-version-check",
        "--target", str(target), str(wheel),
    ]  # fmt: skip
    subprocess.run(install, check=True, env={"PATH": "/nonexistent", "HOME": str(tmp_path)})
    program = "import bowerbird, sys; sys.stdout.write(bowerbird.__file__); import bowerbird.cli.main"
    paths = [str(target), *(path for path in sys.path if "site-packages" in path)]
    environment = {"PATH": "/nonexistent", "HOME": str(tmp_path), "PYTHONPATH": ":".join(paths)}
    said = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert said.stdout.startswith(str(target))


def test_what_a_plain_install_leaves_out_is_named_by_extras() -> None:
    """F of the audit: drivers and engines that few need come with an extra, and messages name it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    plain = " ".join(project["dependencies"])
    extras = project["optional-dependencies"]
    for name, package in (
        ("postgres", "asyncpg"),
        ("local", "xllamacpp"),
        ("python", "pydantic-monty"),
        ("fast", "ripgrep"),
        ("fast", "uvloop"),
    ):
        assert package not in plain and any(package in each for each in extras[name])
