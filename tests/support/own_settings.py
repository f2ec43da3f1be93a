"""`bowerbird serve` as a person starts it: a process with that person's settings and no flags but a port.

Here: starting and ending it; what it printed is looked through for secrets. Not here: what tests ask.
"""

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
from support.patience import HANG_S
from support.servers import free_port, until

SECRET = "planted-0123456789"


@contextmanager
def serving(home: Path, **variables: str) -> Iterator[httpx.Client]:
    """`bowerbird serve` of a person's own settings, without any file but theirs."""
    port = free_port()
    work, told = home / "work", home / f"serve.{port}.log"
    work.mkdir(exist_ok=True)
    # A file, since nobody reads along: a full pipe would stop the server, and its helpers would hold it open.
    with told.open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "bowerbird.cli.main", "serve", "--port", str(port)], cwd=work,
            stdout=log, stderr=subprocess.STDOUT,
            env={"PATH": os.environ["PATH"], "HOME": str(home), "STORE_MIN_FREE_MB": "0", **variables},
        )  # fmt: skip
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=HANG_S, trust_env=False) as http:

            def up() -> bool:
                assert process.poll() is None, told.read_text()
                with contextlib.suppress(httpx.TransportError):
                    return http.get("/health").status_code == 200
                return False

            until(up, "it serves", 60)
            yield http
        process.terminate()
        process.wait(HANG_S)
        said = told.read_text()
        assert "Traceback" not in said and SECRET not in said
    finally:
        process.kill()
        process.wait()
