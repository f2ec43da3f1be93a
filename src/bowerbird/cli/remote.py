"""A running server, as `--server URL` (or BOWERBIRD_URL) and BOWERBIRD_TOKEN name it (UI-41).

Here: requests over HTTP, which conversation an id means there, a server's refusals as exit codes, and which
commands work over a server. Not here: the commands (`remote_*.py`), the socket (`remote_events.py`).
"""

import http.client
import json
import os
import urllib.parse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from bowerbird.cli.exits import CONFIG, FAILED, PARTLY, USAGE, CliExit
from bowerbird.cli.shell import Shell
from bowerbird.cli.text import harmless, one_line
from bowerbird.core.errors import LandingRefused
from bowerbird.models.settings import is_loopback

TIMEOUT_S = 120.0
MOST_ROWS = 1000


@dataclass(frozen=True, slots=True)
class Server:
    """Where a server is and how it knows us."""

    url: str
    token: str | None = field(default=None, repr=False)

    @classmethod
    def of(cls, shell: Shell) -> "Server":
        """Return the server that the command line or the environment names."""
        url = (shell.anywhere.server or os.environ.get("BOWERBIRD_URL") or "").rstrip("/")
        parts = urllib.parse.urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise CliExit(USAGE, f"{harmless(url)!r} is no server's address; say --server http://HOST:PORT")
        token = os.environ.get("BOWERBIRD_TOKEN") or None
        if token and parts.scheme == "http" and not is_loopback(url):
            shell.terminal.warn(f"BOWERBIRD_TOKEN goes to {harmless(parts.hostname)} unencrypted", "yellow")
        return cls(url, token)

    @property
    def headers(self) -> dict[str, str]:
        """What every request says of us."""
        return {"Authorization": f"Bearer {self.token}"} if self.token else {}

    def get(self, path: str, /, **query: Any) -> Any:
        """Return what stands at `path`."""
        return self.ask("GET", path, query=query)

    def text(self, path: str, /, **query: Any) -> str:
        """Return what stands at `path`, as it is."""
        return self._answer("GET", path, None, query).decode("utf-8", "surrogateescape")

    def ask(self, method: str, path: str, body: Any = None, query: Mapping[str, Any] | None = None) -> Any:
        """Send a request; return the answer's JSON.

        Raises:
            CliExit: the server is not there, does not let us, or refuses; says what to do.
            LandingRefused: it refuses to land, with the paths.
        """
        raw = self._answer(method, path, body, query or {})
        try:
            return json.loads(raw)
        except ValueError:
            raise CliExit(FAILED, f"{harmless(self.url)} is no Bowerbird server: it sent no JSON") from None

    def _answer(self, method: str, path: str, body: Any, query: Mapping[str, Any]) -> bytes:
        given = {name: value for name, value in query.items() if value is not None}
        where = path + ("?" + urllib.parse.urlencode(given, doseq=True) if given else "")
        parts = urllib.parse.urlsplit(self.url)
        kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        connection = kind(cast("str", parts.hostname), parts.port, timeout=TIMEOUT_S)
        sent = None if body is None else json.dumps(body).encode()
        headers = self.headers | ({"Content-Type": "application/json"} if sent is not None else {})
        try:
            connection.request(method, parts.path + where, sent, headers)
            response = connection.getresponse()
            raw = response.read()
        except (OSError, http.client.HTTPException) as error:
            raise self.gone(error) from None
        finally:
            connection.close()
        if response.status >= 300:
            raise self._refusal(response.status, raw)
        return raw

    def gone(self, error: Exception) -> CliExit:
        """Return what is said when nobody answers."""
        why = getattr(error, "strerror", None) or str(error) or type(error).__name__
        return CliExit(
            FAILED,
            f"no server answers at {harmless(self.url)}: {why}. Start one with `bowerbird serve`, "
            "or name another with --server or BOWERBIRD_URL",
        )

    def _refusal(self, status: int, raw: bytes) -> Exception:
        try:
            data = json.loads(raw)
            detail, code = data.get("detail"), data.get("code", "")
        except (ValueError, AttributeError):
            return CliExit(FAILED, f"{harmless(self.url)} is no Bowerbird server: it answered {status}")
        if isinstance(detail, list):
            rows = cast("list[dict[str, Any]]", detail)
            detail = "; ".join(f"{row.get('loc', ['?'])[-1]}: {row.get('msg')}" for row in rows)
        said = one_line(str(detail), 500)
        if status == 401:
            what = "refuses BOWERBIRD_TOKEN" if self.token else "wants a token"
            return CliExit(
                CONFIG,
                f"the server at {harmless(self.url)} {what}: {said}. Set BOWERBIRD_TOKEN; "
                "`bowerbird token create NAME` on the server's machine makes one",
            )
        if code == "landing_refused" and data.get("refused"):
            return LandingRefused(said, refused=data["refused"])
        exits = {403: CONFIG, 404: USAGE, 409: PARTLY if code == "stale" else USAGE, 422: USAGE}
        return CliExit(exits.get(status, FAILED), f"the server refuses: {said}")

    # ------------------------------------------------------------ conversations

    def sessions(self) -> list[dict[str, Any]]:
        """Return the conversations we may see, the newest first."""
        return cast("list[dict[str, Any]]", self.get("/api/conversations", limit=MOST_ROWS))

    def session(self, given: str | None) -> str:
        """Return the id of a conversation: given, by 4 characters or more of it, else the newest.

        Raises:
            CliExit: code 2; an ambiguous beginning is answered with the list of what it fits.
        """
        rows = self.sessions()
        if not given:
            if not rows:
                raise CliExit(USAGE, f"there is no session on {harmless(self.url)} yet")
            return str(rows[0]["id"])
        fitting = [row for row in rows if str(row["id"]).startswith(given)]
        exact = [row for row in fitting if row["id"] == given]
        if len(given) < 4 or not fitting:
            hint = (
                "give at least 4 characters of its id"
                if len(given) < 4
                else "`bowerbird sessions` lists them"
            )
            raise CliExit(USAGE, f"no session {harmless(given)!r} on {harmless(self.url)}; {hint}")
        if len(fitting) > 1 and not exact:
            listed = "".join(f"\n  {row['id']}  {one_line(row['title'] or '', 60)}" for row in fitting)
            raise CliExit(USAGE, f"{given} fits several sessions:{listed}")
        return str((exact or fitting)[0]["id"])

    def place(self, thread_id: str, rest: str = "") -> str:
        """Return the path of a conversation's resource."""
        return f"/api/conversations/{urllib.parse.quote(thread_id)}{rest}"


def no_workspace(workspace: str | None) -> None:
    """Refuse `--workspace`, which names a directory of this machine."""
    if workspace is not None:
        raise CliExit(USAGE, "--workspace names a directory of this machine; leave it out with --server")


def there(paths: Sequence[str]) -> list[str] | None:
    """Return paths as the server's branch knows them, None for all."""
    return [path.removeprefix("./").lstrip("/") for path in paths] or None
