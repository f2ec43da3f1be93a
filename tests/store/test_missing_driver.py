"""PostgreSQL without its driver: an extra that a plain install leaves out is named."""

import os
import subprocess
import sys

# Python's own way to say that a module is not there.
WITHOUT = "import sys; sys.modules['asyncpg'] = None\nfrom bowerbird.cli.main import run_command\nsys.exit(run_command(['sessions']))"


def test_a_url_of_postgresql_names_the_extra(tmp_path):
    """F of the audit: everybody installed the driver that few need."""
    environment = {
        "PATH": os.environ["PATH"], "HOME": str(tmp_path), "BOWERBIRD_STORE__URL": "postgresql://me:pw@db/agent",
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 78 and "pip install 'bowerbird[postgres]'" in done.stderr
    assert "pw" not in done.stderr and "Traceback" not in done.stderr
