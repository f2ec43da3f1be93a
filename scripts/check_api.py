"""The server's description held against the server: schemathesis with every check, auth off and on (SV-4).

Here: a real server with a scripted model, and the run against it. Not here: what is checked
(schemathesis), the bounded run of the tests (`tests/server/test_common_rules.py`).

    python scripts/check_api.py [--auth none token] [--examples 20] [--seconds 120] [OPTION of schemathesis …]

Exit code 1 when a run found something. What follows the options goes to `schemathesis run` as it is, say
`--include-path /api/chat`.
"""

import argparse
import contextlib
import os
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from support.fake_models import FakeModels  # noqa: E402  the path is set first
from support.servers import free_port, serve  # noqa: E402  likewise

from bowerbird.store.rows.tokens import make_token  # noqa: E402  likewise

START_S = 60.0


@contextmanager
def server(directory: Path, fake: FakeModels) -> Iterator[str]:
    """Run `bowerbird serve` without auth; gives its address."""
    port = free_port()
    env = {
        "PATH": os.environ["PATH"], "HOME": str(directory), "ANTHROPIC_API_KEY": "k",
        "ANTHROPIC_BASE_URL": fake.anthropic_url, "LLM_MAX_RETRIES": "0", "BOWERBIRD_STORE__MIN_FREE_MB": "0",
    }  # fmt: skip
    command = [sys.executable, "-m", "bowerbird.cli.main", "serve", "--port", str(port)]
    log = directory / "serve.log"
    with log.open("wb") as said:
        process = subprocess.Popen(command, cwd=directory, env=env, stdout=said, stderr=said)
    try:
        address = f"http://127.0.0.1:{port}"
        _await(address, process)
        yield address
    finally:
        process.terminate()
        process.wait()
        text = log.read_text(errors="replace")
        if "Traceback" in text:
            print(text[-20_000:])


@contextmanager
def guarded(directory: Path, fake: FakeModels) -> Iterator[tuple[str, str]]:
    """Serve with tokens, and without the limit of wrong ones: the sixth in a minute is answered 429, but
    schemathesis takes only 401 and 403 for an answer to them. Gives the address and an admin's token."""
    with serve(directory, flags={"server.auth": "token"}, fake=fake) as running:
        store = running.serving.context.store
        _, secret = running.run(store.write(lambda c: make_token(c, "check", "admin", user="check")))
        yield running.url, secret


def _await(address: str, process: "subprocess.Popen[bytes]") -> None:
    end = time.monotonic() + START_S
    while time.monotonic() < end and process.poll() is None:
        with contextlib.suppress(OSError), urllib.request.urlopen(f"{address}/health"):
            return
        time.sleep(0.05)
    raise SystemExit("the server did not start")


def run(auth: str, examples: int, seconds: int, more: Sequence[str]) -> int:
    """Run once; returns the exit code."""
    with FakeModels() as fake, tempfile.TemporaryDirectory() as place:
        fake.script({"text": "hello"})
        with ExitStack() as stack:
            token = ""
            if auth == "none":
                address = stack.enter_context(server(Path(place), fake))
            else:
                address, token = stack.enter_context(guarded(Path(place), fake))
            command = [
                str(Path(sys.executable).parent / "schemathesis"), "run", f"{address}/openapi.json",
                "--checks", "all", "--max-examples", str(examples), "--max-time", str(seconds),
                "--continue-on-failure", "--suppress-health-check", "all", "--no-color",
            ]  # fmt: skip
            if token:
                command += ["--header", f"Authorization: Bearer {token}"]
            print(f"auth {auth}: {address}", flush=True)
            return subprocess.run([*command, *more], cwd=place, check=False).returncode


def main() -> int:
    """Read the options and run."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--auth", nargs="+", choices=("none", "token"), default=["none", "token"])
    parser.add_argument("--examples", type=int, default=20)
    parser.add_argument("--seconds", type=int, default=120)
    chosen, more = parser.parse_known_args()
    codes = [run(auth, chosen.examples, chosen.seconds, more) for auth in chosen.auth]
    return 1 if any(codes) else 0


if __name__ == "__main__":
    sys.exit(main())
