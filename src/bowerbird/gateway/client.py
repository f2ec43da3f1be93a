"""The client of a gateway, for the tool of agents (TO-46).

Here: one request and what becomes of it. Not here: which bridges an agent may use, texts for models.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from bowerbird.core.errors import ToolError
from bowerbird.core.forms import convert, decode

_ANSWER_BYTES = 16 << 20
_MORE_S = 15.0  # for the gateway's own part


class Answer(msgspec.Struct, frozen=True):
    """How a command of the host ended."""

    stdout: str
    stderr: str
    returncode: int
    truncated: bool = False
    timed_out: bool = False


@dataclass(frozen=True, slots=True)
class GatewayClient:
    """One bridge of a gateway.

    Attributes:
        url: of the gateway, or `unix:/path` of its socket.
    """

    url: str
    bridge: str
    token: str = field(repr=False)

    async def execute(
        self, cmd: Sequence[str], timeout_s: float, *, cwd: str | None = None, stdin: str | None = None
    ) -> Answer:
        """Run a command on the host.

        Args:
            cwd: where; None = where the bridge says.

        Raises:
            ToolError: the gateway refuses it, or cannot be reached; it says which.
        """
        import aiohttp

        is_unix = self.url.startswith("unix:")
        connector = aiohttp.UnixConnector(self.url.removeprefix("unix:")) if is_unix else None
        base = "http://gateway" if is_unix else self.url.rstrip("/")
        body: dict[str, Any] = {"bridge": self.bridge, "cmd": list(cmd), "timeout": timeout_s}
        body |= {} if cwd is None else {"cwd": cwd}
        body |= {} if stdin is None else {"stdin": stdin}
        try:
            async with (
                aiohttp.ClientSession(connector=connector, trust_env=False) as session,
                session.post(
                    f"{base}/execute",
                    data=msgspec.json.encode(body),
                    headers={"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"},
                    timeout=aiohttp.ClientTimeout(total=timeout_s + _MORE_S),
                    allow_redirects=False,
                ) as response,
            ):
                content = await response.content.read(_ANSWER_BYTES)
                while (more := await response.content.read(_ANSWER_BYTES - len(content))) and more:
                    content += more
                status = response.status
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise ToolError(
                f"the host gateway cannot be reached ({type(error).__name__}); "
                "is `bowerbird gateway` running?"
            ) from None
        return self._read(status, content)

    def _read(self, status: int, content: bytes) -> Answer:
        try:
            said: Any = decode(content)
            if status == 200:
                return convert(said, Answer)
            reason = str(said["error"])
        except (msgspec.DecodeError, msgspec.ValidationError, LookupError, TypeError):
            raise ToolError(
                f"what answers at the gateway's address is no gateway (status {status})"
            ) from None
        raise ToolError(f"the host gateway refused it ({status}): {reason}")
