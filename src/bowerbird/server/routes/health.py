"""Health and metrics (SV-6, SV-34).

Here: what is said about the process itself. Not here: who measures (`metrics.py`).
"""

import asyncio
import hmac
import os
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from bowerbird.core.errors import BowerbirdError, SandboxUnavailable
from bowerbird.core.threads import to_thread
from bowerbird.server.common.context import Caller, ServerContext
from bowerbird.server.common.errors import problem
from bowerbird.server.common.json_answers import answer
from bowerbird.server.common.metrics import CONTENT_TYPE
from bowerbird.server.routes.common import Context, Shown, StatusShown, Viewer

router = APIRouter(tags=["health"])

READY_S = 5.0


class Health(Shown):
    """`status` alone for who is not signed in."""

    status: str
    model: str | None = None
    version: str | None = None
    sandbox: str | None = None
    store: str | None = None


class Sandbox(Shown):
    """Which isolation this host gives, and why no better one."""

    tier: str
    minimum: str
    reasons: dict[str, str | None]
    isolation: list[str]
    network: str
    network_reason: str | None
    limits: dict[str, str]


@router.get("/health", response_model=Health, summary="Whether the server answers, and what it runs on")
async def health(request: Request, context: Context) -> Response:
    """Open to everybody; without a credential, where one is needed, only `status`."""
    said: dict[str, Any] = {"status": "ok"}
    if isinstance(request.scope["state"].get("caller"), Caller):
        status = await context.sandbox_status()
        said |= {
            "model": context.offers.model,
            "version": context.version,
            "sandbox": status.tier,
            "store": context.store_kind,
        }
    return answer(said)


@router.get("/health/live", response_model=StatusShown, summary="Whether the event loop answers")
async def live() -> Response:
    """Always 200 while the process can answer at all."""
    return answer({"status": "ok"})


@router.get("/health/ready", response_model=StatusShown, summary="Whether new work would be done")
async def ready(context: Context) -> Response:
    """503 with reasons while the store, the sandbox or the end of the process stand in the way."""
    reasons = await reasons_against(context)
    if reasons:
        raise problem("not_ready", "; ".join(reasons), extra={"reasons": reasons})
    return answer({"status": "ready"})


async def reasons_against(context: ServerContext) -> list[str]:
    """Return why new work would not be done, empty when it would."""
    reasons: list[str] = []
    if context.life.draining.is_set():
        reasons.append("the server is shutting down")
    elif not context.life.ready.is_set():
        reasons.append("the server is starting")
    if not await to_thread(os.access, context.data_dir, os.W_OK | os.X_OK):
        reasons.append("the data directory cannot be written")
    try:
        context.store.require_space()
        async with asyncio.timeout(READY_S):
            await context.store.write(_nothing, flush=False)
    except TimeoutError:
        reasons.append(f"the database took no write within {READY_S:.0f} s")
    except BowerbirdError as error:
        reasons.append(f"the database takes no writes ({error.code})")
    try:
        (await context.sandbox_status()).require()
    except SandboxUnavailable as error:
        reasons.append(str(error))
    return reasons


def _nothing(_: object) -> None:
    """A write that changes nothing still needs the writer and its lock."""


@router.get("/metrics", summary="Figures for Prometheus", response_class=Response,
            responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}})  # fmt: skip
async def metrics(request: Request, context: Context) -> Response:
    """Needs the role admin, or `server.metrics_token` as a bearer token."""
    if not _may_read_metrics(request, context):
        raise problem("forbidden", "this needs the role admin, or server.metrics_token as a bearer token")
    return Response(context.metrics.text(), headers={"Content-Type": CONTENT_TYPE})


def _may_read_metrics(request: Request, context: ServerContext) -> bool:
    caller = request.scope["state"].get("caller")
    if isinstance(caller, Caller) and caller.role == "admin":
        return True
    token = context.settings.metrics_token
    scheme, _, given = request.headers.get("authorization", "").partition(" ")
    if token is None or scheme.lower() != "bearer":
        return False
    return hmac.compare_digest(given.strip().encode("utf-8", "replace"), token.encode())


@router.get("/api/sandbox", response_model=Sandbox, summary="Which isolation commands run in")
async def sandbox(context: Context, caller: Viewer) -> Response:
    """The tier in use (`overlay`, `copy`, `none`), what settings demand, and why not more."""
    del caller
    status = await context.sandbox_status()
    names = ("tier", "minimum", "reasons", "isolation", "network", "network_reason", "limits")
    return answer({name: getattr(status, name) for name in names})
