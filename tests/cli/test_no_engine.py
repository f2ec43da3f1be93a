"""The embedded model where its engine, the extra `local`, is not installed (UI-64; finding A4 of the faces)."""

import subprocess
import sys

import pytest
from support.patience import HANG_S
from support.terminals import clean_environment

WITHOUT = (
    "import sys; sys.modules['xllamacpp'] = None; sys.argv = ['bowerbird', *sys.argv[1:]]; "
    "from bowerbird.cli.main import main; main()"
)


@pytest.mark.parametrize("arguments", [["model", "fetch"], ["model", "fetch", "--small"]])
def test_nothing_is_fetched_that_nothing_could_run(arguments, tmp_path):
    """It loaded 1.1 GB first, and said then that it cannot be used."""
    code, err = without_engine(tmp_path, *arguments)
    assert code == 78 and "nothing is fetched" in err and "pip install 'bowerbird[local]'" in err
    assert not list((tmp_path / "home").rglob("*.gguf*"))


def test_who_has_no_key_is_told_what_to_install_first(tmp_path):
    """UI-64."""
    code, err = without_engine(tmp_path, "hi")
    assert code == 78 and "ANTHROPIC_API_KEY is not set" in err
    assert "pip install 'bowerbird[local]', then bowerbird model fetch" in err


def without_engine(place, *arguments):
    (place / "home").mkdir()
    (place / "project").mkdir()
    ran = subprocess.run(
        [sys.executable, "-c", WITHOUT, *arguments],
        cwd=place / "project", env=clean_environment(place / "home"), capture_output=True, text=True,
        stdin=subprocess.DEVNULL, timeout=HANG_S, check=False,
    )  # fmt: skip
    return ran.returncode, ran.stderr
