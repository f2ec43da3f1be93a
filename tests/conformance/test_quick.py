"""A few scenarios of the conformance suite against the product, where the suite is installed (PT-14).

All of them: `tests/conformance/run.sh`, which installs it.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.patience import patience

HERE = Path(__file__).resolve().parent
PLACE = Path(os.environ.get("BOWERBIRD_CONFORMANCE") or HERE.parent.parent / ".conformance")
INSTALLED = (PLACE / "node_modules/@modelcontextprotocol/conformance/dist/index.js").exists()


@pytest.mark.skipif(not INSTALLED, reason="the suite is not installed: run tests/conformance/run.sh once")
@pytest.mark.timeout(patience(120))
def test_the_product_passes_what_the_suite_asks_first() -> None:
    """PT-14, acceptance 5."""
    env = {**os.environ, "PYTHON": sys.executable, "BOWERBIRD_CONFORMANCE": str(PLACE)}
    ran = subprocess.run(
        [str(HERE / "run.sh"), "quick"], env=env, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
