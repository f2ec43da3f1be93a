"""The gateway's HTTP server (AS-48, AS-52 … AS-56).

Here: routes, tokens, bodies and their limits, answers. Not here: what a bridge allows (`bridges.py`), how a
command runs (`running.py`), settings.
"""

import asyncio
import logging
import os
import stat
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from aiohttp import web

from bowerbird.gateway.bridges import (
    Bridge,
    Refused,
    bridge_of,
    environment_of,
    program_of,
    read_request,
    timeout_of,
)
from bowerbird.gateway.running import Outcome, directory_for, not_installed, run

BODY_BYTES = 1 << 20
BODY_S = 10.0
AT_ONCE = 8

_log = logging.getLogger(__name__)

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(frozen=True, slots=True)
class Gateway:
    """What a gateway serves.

    Attributes:
        default_timeout_s: of a command that names none.
    """

    bridges: Sequence[Bridge]
    default_timeout_s: float = 30.0


def answer(outcome: Outcome) -> dict[str, Any]:
    """Return an outcome as clients read it."""
    return {
        "stdout": outcome.stdout,
        "stderr": outcome.stderr,
        "returncode": outcome.returncode,
        "truncated": outcome.truncated,
        "timed_out": outcome.timed_out,
        "duration": outcome.duration_s,
    }


class Service:
    """The routes over one gateway; commands running at once are counted over all bridges.

    Args:
        ours: the environment that commands are given a part of.
    """

    def __init__(self, gateway: Gateway, ours: Mapping[str, str] | None = None) -> None:
        self._gateway = gateway
        self._ours = dict(os.environ if ours is None else ours)
        self._running = 0
        self._tokens = [bridge.token for bridge in gateway.bridges]

    def application(self) -> web.Application:
        """Return the application that serves the routes."""
        application = web.Application(middlewares=[_as_json], client_max_size=BODY_BYTES)
        application.add_routes([web.get("/health", self._health), web.post("/execute", self._execute)])
        return application

    async def _health(self, request: web.Request) -> web.StreamResponse:
        if "Authorization" not in request.headers:
            return _json(200, {"status": "ok"})
        bridge = self._bridge(request)
        found = {name: path is not None for name, path in sorted(bridge.programs.items())}
        return _json(200, {"status": "ok", "bridge": bridge.name, "commands": found})

    async def _execute(self, request: web.Request) -> web.StreamResponse:
        bridge = self._bridge(request)
        asked = read_request(await _body(request))
        program = program_of(bridge, asked)
        with directory_for(bridge, asked.cwd) as cwd:
            if self._running >= AT_ONCE:
                raise Refused(429, f"{AT_ONCE} commands are running; try again when one has ended")
            self._running += 1
            try:
                stream = await _begun(request) if asked.stream else None
                outcome = not_installed(asked.cmd[0])
                if program is not None:
                    outcome = await run(
                        program,
                        asked.cmd,
                        cwd=cwd,
                        env=environment_of(bridge, self._ours, self._tokens),
                        stdin=asked.stdin,
                        timeout_s=timeout_of(bridge, asked, self._gateway.default_timeout_s),
                        on_output=None if stream is None else stream.said,
                    )
            finally:
                self._running -= 1
        _log.info("%s: %s ended with %d", bridge.name, asked.cmd[0], outcome.returncode)
        return _json(200, answer(outcome)) if stream is None else await stream.ended(outcome)

    def _bridge(self, request: web.Request) -> Bridge:
        return bridge_of(self._gateway.bridges, request.headers.get("Authorization", ""))


class _Stream:
    """An answer line by line, as it comes."""

    def __init__(self, response: web.StreamResponse) -> None:
        self._response = response

    async def said(self, name: str, text: str) -> None:
        await self._line({"type": name, "data": text})

    async def ended(self, outcome: Outcome) -> web.StreamResponse:
        end = {key: value for key, value in answer(outcome).items() if key not in ("stdout", "stderr")}
        await self._line({"type": "exit", **end})
        await self._response.write_eof()
        return self._response

    async def _line(self, value: Mapping[str, Any]) -> None:
        await self._response.write(msgspec.json.encode(value) + b"\n")


async def _begun(request: web.Request) -> _Stream:
    response = web.StreamResponse(headers={"Content-Type": "application/x-ndjson"})
    await response.prepare(request)
    return _Stream(response)


async def _body(request: web.Request) -> bytes:
    try:
        async with asyncio.timeout(BODY_S):
            return await request.read()
    except TimeoutError:
        raise Refused(408, f"the body did not arrive within {BODY_S:g} s") from None
    except web.HTTPRequestEntityTooLarge:
        raise Refused(413, f"the body is larger than {BODY_BYTES} bytes") from None


@web.middleware
async def _as_json(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Give every refusal a JSON body, and never the inside of an error."""
    try:
        return await handler(request)
    except Refused as error:
        return _refusal(error.status, str(error))
    except web.HTTPException as error:
        return _refusal(error.status, (error.text or error.reason).partition(": ")[2] or error.reason)
    except ConnectionResetError:  # the client of a stream is gone, and its command with it
        raise
    except OSError as error:
        _log.exception("a command could not be run")
        return _refusal(503, f"the host cannot run it now: {error.strerror or type(error).__name__}")


def _refusal(status: int, message: str) -> web.Response:
    response = _json(status, {"error": message})
    if status == 408:
        response.force_close()  # nobody waits for the rest of the body
    return response


def _json(status: int, value: Mapping[str, Any]) -> web.Response:
    return web.Response(status=status, body=msgspec.json.encode(value), content_type="application/json")


async def serve(
    gateway: Gateway,
    *,
    bind: str,
    port: int,
    socket: Path | None,
    ready: Callable[[str], None],
    stop: asyncio.Event,
) -> None:
    """Serve until `stop` is set; what runs then is killed.

    Args:
        socket: a Unix socket in place of address and port, for the user alone (0600).
        ready: told where it listens.

    Raises:
        OSError: it cannot listen there.
    """
    # A client that leaves cancels its request, which kills its command.
    runner = web.AppRunner(
        Service(gateway).application(), handler_cancellation=True, access_log=None, shutdown_timeout=1.0
    )
    await runner.setup()
    try:
        if socket is None:
            site = web.TCPSite(runner, bind, port)
            await site.start()
            ready(f"http://{bind}:{runner.addresses[0][1]}")
        else:
            _free(socket)
            before = os.umask(0o177)
            try:
                await web.UnixSite(runner, str(socket)).start()
            finally:
                os.umask(before)
            ready(f"unix:{socket}")
        await stop.wait()
    finally:
        await runner.cleanup()
        if socket is not None:
            _free(socket)


def _free(socket: Path) -> None:
    """Remove what a killed gateway left; another kind of file stays, and listening there fails."""
    with suppress(OSError):
        if stat.S_ISSOCK(socket.lstat().st_mode):
            socket.unlink()
