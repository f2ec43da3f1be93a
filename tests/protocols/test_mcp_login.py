"""Signing in at MCP servers: the flow, what is kept, renewing, the command (PT-17)."""

import asyncio
import contextlib
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import httpx
import pytest
from support.oauth_server import Authority, oauth_server
from support.patience import HANG_S, patience

from bowerbird.core.errors import ConfigError
from bowerbird.protocols.mcp_client import McpClient, ServerSpec
from bowerbird.protocols.mcp_client.logins import Logins
from bowerbird.protocols.mcp_client.oauth import LoginFailed, sign_in
from bowerbird.protocols.mcp_client.spec import OAuthSpec, Transport

pytestmark = pytest.mark.timeout(patience(90))


@pytest.fixture
async def guarded() -> AsyncIterator[tuple[str, Authority]]:
    async with oauth_server() as found:
        yield found


def spec_of(url: str, directory: Path) -> ServerSpec:
    return ServerSpec(
        name="tracker", transport="streamable_http", url=url, oauth=OAuthSpec(directory=directory)
    )


async def agree(address: str) -> None:
    """What a person's browser does: it follows the way to the server and back."""
    async with httpx.AsyncClient(follow_redirects=True, trust_env=False) as browser:
        await browser.get(address)


async def offered(spec: ServerSpec) -> list[str]:
    """The tools that a turn finds."""
    client = McpClient([spec])
    try:
        found = await client.gather()
        return [tool.name for tool in found.tools] or list(found.warnings)
    finally:
        await client.aclose()


async def test_a_person_signs_in_once_and_turns_use_it(
    guarded: tuple[str, Authority], tmp_path: Path
) -> None:
    """PT-17: discovery, registration, PKCE, the resource named; what is kept is nobody else's to read."""
    url, authority = guarded
    spec = spec_of(url, tmp_path / "logins")
    [told] = await offered(spec)
    assert "bowerbird mcp login tracker" in told
    assert await sign_in(spec, agree) == 1
    [asked] = authority.asked
    assert (asked.resource, len(asked.code_challenge)) == (url, 43)
    assert await offered(spec) == ["mcp__tracker__whoami"]
    secrets = [*authority.access, *authority.refresh]
    for path in (tmp_path / "logins").iterdir():
        assert path.stat().st_mode & 0o077 == 0
        assert not any(secret.encode() in path.read_bytes() for secret in secrets)


async def test_a_token_that_is_over_is_renewed_in_another_process(
    guarded: tuple[str, Authority], tmp_path: Path
) -> None:
    """PT-17: by what was kept; the person is not asked, and the new token is kept for the next."""
    url, authority = guarded
    authority.lives_s = 1  # ends before it is used
    spec = spec_of(url, tmp_path)
    await sign_in(spec, agree)
    authority.lives_s = 3600
    asked = len(authority.asked)
    assert await offered(spec) == ["mcp__tracker__whoami"]
    refreshed = authority.refreshed
    assert refreshed >= 1
    assert await offered(spec) == ["mcp__tracker__whoami"]
    assert (authority.refreshed, len(authority.asked)) == (refreshed, asked)


async def test_a_sign_in_that_counts_no_longer_names_the_way_out(
    guarded: tuple[str, Authority], tmp_path: Path
) -> None:
    """PT-17, PT-18: the server is left out with a warning that says what to do."""
    url, authority = guarded
    spec = spec_of(url, tmp_path)
    await sign_in(spec, agree)
    authority.access.clear()
    authority.refresh.clear()
    [told] = await offered(spec)
    assert "bowerbird mcp login tracker" in told


async def test_a_refusal_leaves_the_earlier_sign_in(guarded: tuple[str, Authority], tmp_path: Path) -> None:
    """PT-17."""
    url, authority = guarded
    spec = spec_of(url, tmp_path)
    await sign_in(spec, agree)
    authority.refuses = True
    with pytest.raises(LoginFailed, match="access_denied"):
        await sign_in(spec, agree)
    assert await offered(spec) == ["mcp__tracker__whoami"]


async def test_whoever_knocks_at_the_port_without_the_state_gets_nothing(
    guarded: tuple[str, Authority], tmp_path: Path
) -> None:
    """PT-17: a code that somebody else made is not taken."""
    url, _ = guarded

    async def forged(address: str) -> None:
        uri = httpx.URL(address).params["redirect_uri"]
        async with httpx.AsyncClient(trust_env=False) as stranger:
            assert (await stranger.get(uri.replace("callback", "other"))).status_code == 404
            await stranger.get(uri, params={"code": "x", "state": "y"})

    with pytest.raises(LoginFailed, match=r"(?i)state"):
        await sign_in(spec_of(url, tmp_path), forged)
    assert not Logins(tmp_path).has("tracker")


async def test_a_sign_in_is_waited_for_so_long(guarded: tuple[str, Authority], tmp_path: Path) -> None:
    """Law 8."""

    async def nobody(_: str) -> None:
        return None

    with pytest.raises(LoginFailed, match="nobody signed in"):
        await sign_in(spec_of(guarded[0], tmp_path), nobody, within_s=0.5)


def test_what_is_kept_is_bound_to_its_server(tmp_path: Path) -> None:
    """PT-17: not another address, not another name, nothing damaged; the rest stays."""
    logins = Logins(tmp_path / "logins")
    logins.write("a", "https://a.example/mcp", {"tokens": 1})
    logins.write("b", "https://b.example/mcp", {"tokens": 2})
    assert logins.read("a", "https://a.example/mcp") == {"tokens": 1}
    assert logins.read("a", "https://evil.example/mcp") is None
    (tmp_path / "logins/a.sealed").write_bytes((tmp_path / "logins/b.sealed").read_bytes())
    assert logins.read("a", "https://b.example/mcp") is None
    (tmp_path / "logins/a.sealed").write_bytes(b"x")
    assert logins.read("a", "https://a.example/mcp") is None
    assert logins.read("b", "https://b.example/mcp") == {"tokens": 2}
    assert (logins.remove("a"), logins.remove("a")) == (True, False)


def test_a_clients_secret_is_masked(tmp_path: Path) -> None:
    """PT-24: as every other secret of a server."""
    spec = spec_of("https://x.example", tmp_path)
    assert spec.oauth is not None
    secret = replace(spec, oauth=replace(spec.oauth, client_id="me", client_secret="s3cret-of-the-client"))
    assert "s3cret" not in secret.masked("error: s3cret-of-the-client") + repr(secret)
    with pytest.raises(ConfigError):
        replace(spec, url="")


async def test_the_command_signs_in_and_out(guarded: tuple[str, Authority], tmp_path: Path) -> None:
    """PT-17: `bowerbird mcp login`, `test`, `logout`."""
    url, _ = guarded
    (tmp_path / "config.yaml").write_text(json.dumps({"mcp_servers": {"tracker": {"url": url}}}))
    env = {"HOME": str(tmp_path), "PATH": os.environ["PATH"], "NO_PROXY": "*"}

    async def run(*words: str) -> tuple[int | None, str]:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "bowerbird", "--config", "config.yaml", "mcp", *words,
            cwd=tmp_path, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        assert process.stdout is not None
        said = ""
        async for line in process.stdout:
            said += line.decode()
            if "sign in here: " in said and line.startswith(b"sign in here"):
                await agree(line.decode().partition("sign in here: ")[2].strip())
        return await process.wait(), said

    async with asyncio.timeout(HANG_S):
        assert (await run("test", "tracker"))[0] == 1
        code, said = await run("login", "--no-browser", "tracker")
        assert code == 0, said
        assert "signed in at tracker; it has 1 tools" in said
        assert (await run("test", "tracker"))[0] == 0
        assert (await run("logout", "tracker"))[0] == 0
        assert (await run("logout", "tracker"))[0] == 1
        code, said = await run("login", "nobody")
        assert (code, "tracker" in said) == (2, True)


@asynccontextmanager
async def locked() -> AsyncIterator[str]:
    """An MCP server that wants a credential and offers no way to sign in; yields its address."""
    refusal = b"HTTP/1.1 %s\r\nContent-Length: 2\r\nContent-Type: application/json\r\n\r\n{}"

    writers: list[asyncio.StreamWriter] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).lower()
                length = next(
                    (int(line[15:]) for line in head.split(b"\r\n") if line[:14] == b"content-length"), 0
                )
                await reader.readexactly(length)
                writer.write(refusal % (b"401 No" if head.split()[1] == b"/mcp" else b"404 No"))

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/mcp"
        for writer in writers:
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()


@pytest.mark.parametrize(
    ("transport", "headers", "has_oauth", "told"),
    [
        (
            "streamable_http",
            {},
            True,
            "bowerbird mcp login tracker; where it takes a token, set mcp_servers.tracker.",
        ),
        (
            "streamable_http",
            {},
            False,
            "wants a credential (HTTP 401); set mcp_servers.tracker.authorization_token",
        ),
        ("sse", {}, False, "wants a credential (HTTP 401); set mcp_servers.tracker.authorization_token"),
        (
            "streamable_http",
            {"Authorization": "Bearer old"},
            False,
            "refuses what is sent to it (HTTP 401); check",
        ),
    ],
)
async def test_a_server_that_lets_nobody_in_names_the_settings(
    tmp_path: Path, transport: Transport, headers: dict[str, str], has_oauth: bool, told: str
) -> None:
    """PT-17: it said "Server returned an error response"."""
    async with locked() as url:
        oauth = OAuthSpec(directory=tmp_path) if has_oauth else None
        spec = ServerSpec(name="tracker", transport=transport, url=url, headers=headers, oauth=oauth)
        [said] = await offered(spec)
    assert "MCP server tracker" in said and told in said and "Error:" not in said


async def test_a_sign_in_where_there_is_none_names_the_settings(tmp_path: Path) -> None:
    """PT-17: "Registration failed: 404" told nobody what to do."""
    async with locked() as url:
        with pytest.raises(LoginFailed, match=r"no sign-in was found .* mcp_servers\.tracker\.headers"):
            await sign_in(spec_of(url, tmp_path), agree, within_s=HANG_S)
