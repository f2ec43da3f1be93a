"""GI-14, projects finding 3: `. .venv/bin/activate; bowerbird sandbox run -- pytest -q`, and the agent's `bash`."""

import importlib.util
import os
from pathlib import Path

import pytest
from support.layouts import install, make_venv

PACKAGES = ("pytest", "_pytest", "pluggy", "iniconfig", "packaging", "pygments", "py")


def with_pytest(place: Path) -> Path:
    """Make a virtual environment that has pytest, without a network."""
    packages: dict[str, Path] = {}
    for name in PACKAGES:
        found = importlib.util.find_spec(name)
        assert found is not None and found.origin is not None
        origin = Path(found.origin)
        packages[name if origin.stem == "__init__" else origin.name] = (
            origin.parent if origin.stem == "__init__" else origin
        )
    venv = make_venv(place)
    install(
        venv, packages, {"pytest": "import sys; from pytest import console_main; sys.exit(console_main())"}
    )
    return venv


@pytest.mark.parametrize("tier", ["overlay", "copy"])
@pytest.mark.parametrize("place", ["project/.venv", "home/venvs/project"])
def test_the_activated_environment_is_there(here, place: str, tier: str):
    venv = with_pytest(here.project.parent / place)
    (here.project / "test_it.py").write_text("def test_it():\n    assert 6 * 7 == 42\n")
    environment = {
        **here.environment, "VIRTUAL_ENV": str(venv), "PATH": f"{venv}/bin:{os.environ['PATH']}",
        "BOWERBIRD_SANDBOX__TIER": tier,
    }  # fmt: skip
    code, out, err = here.run(
        "sandbox", "run", "--", "pytest", "-q", "-p", "no:cacheprovider", env=environment
    )
    assert (code, "1 passed" in out) == (0, True), out + err
    assert f"tier {tier}" in err


def test_the_agent_s_shell_has_it(here):
    venv = with_pytest(here.home / "venvs/project")
    (here.project / "test_it.py").write_text("def test_it():\n    assert 6 * 7 == 42\n")
    here.fake.script({"tools": [{"name": "bash", "input": {"command": "pytest -q"}}]}, {"text": "ok"})
    environment = {**here.environment, "PATH": f"{venv}/bin:{os.environ['PATH']}"}
    assert here.run("run", "test it", env=environment)[0] == 0
    assert "1 passed" in str(here.fake.requests[-1]["messages"])
