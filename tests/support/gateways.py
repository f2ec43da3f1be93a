"""A host gateway as people start it: the command as a process, listening on a Unix socket.

Here: starting it, asking it. Not here: what tests expect.
"""

import asyncio
import io
import json
import os
import subprocess
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import aiohttp
from support.patience import HANG_S
from support.terminals import COMMAND, clean_environment

TOKEN, OTHER = "t0ken-of-the-tools-bridge", "t0ken-of-the-other-bridge"


class Running:
    """A started gateway, and requests to it."""

    def __init__(self, place: Path, settings: Mapping[str, Any], **environment: str) -> None:
        self.place = place
        self.socket = place / "gateway.sock"
        config = place / "gateway.yaml"
        config.write_text(json.dumps({"gateway": {"socket": str(self.socket), **settings}}))
        config.chmod(0o600)
        self.process = subprocess.Popen(
            [*COMMAND, "gateway", "--config", str(config)], cwd=place, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
            env=clean_environment(place, **environment),
        )  # fmt: skip
        assert self.process.stderr is not None
        self.said = ""
        while "serves" not in self.said:
            line = self.process.stderr.readline()
            assert line, self.said
            self.said += line
        self._drain = threading.Thread(target=self.process.stderr.read, daemon=True)
        self._drain.start()

    def ask(
        self, body: Any, *, token: str | None = TOKEN, path: str = "/execute", method: str = "POST"
    ) -> Any:
        """Return status and answer of one request."""
        return asyncio.run(self.answer(body, token, path, method))

    async def answer(
        self, body: Any, token: str | None = TOKEN, path: str = "/execute", method: str = "POST"
    ) -> Any:
        """Return status and answer of one request; for several at once."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        async with (
            aiohttp.ClientSession(connector=aiohttp.UnixConnector(str(self.socket))) as session,
            session.request(
                method, f"http://gateway{path}", data=io.BytesIO(data), headers=headers
            ) as response,
        ):
            text = await response.text()
            lines = [json.loads(line) for line in text.splitlines()]
            return response.status, lines[0] if len(lines) == 1 else lines

    def run(self, *cmd: str, **more: Any) -> Any:
        """Run a command over the bridge `tools`; return what it gave."""
        status, answer = self.ask({"bridge": "tools", "cmd": cmd, **more})
        assert status == 200, answer
        return answer

    def stop(self) -> int:
        """End it as a service manager does."""
        self.process.terminate()
        code = self.process.wait(HANG_S)
        self._drain.join(HANG_S)
        assert self.process.stderr is not None
        self.process.stderr.close()
        return code


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
