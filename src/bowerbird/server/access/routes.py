"""The routes of `/api/auth`: sign-in, tickets for sockets, tokens (SV-18, SV-54, SV-55, SV-62).

Here: those routes. Not here: checking credentials (`identity.py`), the rows (`store/rows/tokens.py`).
"""

from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Depends, Path, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from bowerbird.core.errors import InvalidArgument
from bowerbird.core.timestamps import now_iso
from bowerbird.server.access.identity import new_ticket, require, shown_caller
from bowerbird.server.common.context import Caller, Role, ServerContext, context_of
from bowerbird.server.common.errors import problem, said
from bowerbird.server.common.json_answers import answer
from bowerbird.store.rows.tokens import TICKET_S, TokenRow, all_tokens, expiry, make_token, revoke

router = APIRouter(prefix="/api/auth", tags=["auth"])

Context = Annotated[ServerContext, Depends(context_of)]
Viewer = Annotated[Caller, Depends(require("viewer"))]
Admin = Annotated[Caller, Depends(require("admin"))]


class AuthConfig(BaseModel):
    """How people sign in here."""

    enabled: bool
    google_client_id: str | None


class Me(BaseModel):
    """Who is calling."""

    authenticated: bool
    email: str | None = None
    name: str | None = None
    picture: str | None = None
    role: str | None = None
    user: str | None = None


class Ticket(BaseModel):
    """A one-time entrance for a socket: `?ticket=`, within `expires_in` seconds."""

    ticket: str
    expires_in: int


class NewToken(BaseModel):
    """A token to be made; unknown members are an error."""

    model_config = ConfigDict(strict=True, extra="forbid")

    name: Annotated[str, Field(min_length=1, max_length=100, pattern=r"^[ -~]*[!-~][ -~]*$")]
    role: Role = "user"
    user: Annotated[str, Field(max_length=200)] = ""
    expires: Annotated[
        str | None, Field(pattern=r"^(?:[1-9][0-9]{0,3}[smhd]|[1-9][0-9]{0,2}w)$", description="Such as 90d.")
    ] = None


class TokenShown(BaseModel):
    """A token without its secret."""

    id: str
    name: str
    role: str
    user: str
    created_at: str
    expires_at: str | None
    revoked_at: str | None
    usable: bool


class TokenMade(TokenShown):
    """A new token with its secret, which is shown this once."""

    token: str


@router.get("/config", response_model=AuthConfig, summary="How people sign in here")
async def config(context: Context) -> Response:
    """Open to everybody."""
    settings = context.settings
    return answer({"enabled": settings.auth != "none", "google_client_id": settings.google_client_id})


@router.get("/me", response_model=Me, response_model_exclude_none=True, summary="Who is calling")
async def me(caller: Viewer) -> Response:
    """The owner of the credential; without auth the one user there is."""
    return answer(shown_caller(caller))


@router.post("/ticket", response_model=Ticket, summary="A one-time entrance for a socket")
async def ticket(request: Request, context: Context, caller: Viewer) -> Response:
    """Browsers cannot send headers with a socket: `…/ws?ticket=` admits this caller once."""
    until: float | None = request.scope["state"].get("expires_at")
    secret = await new_ticket(context, caller, until)
    return answer({"ticket": secret, "expires_in": int(TICKET_S)}, headers={"Cache-Control": "no-store"})


@router.get("/tokens", response_model=list[TokenShown], summary="All tokens")
async def tokens(context: Context, caller: Admin) -> Response:
    """Without their secrets, which nobody has."""
    del caller
    return answer([_shown(row) for row in await context.store.read(all_tokens)])


@router.post("/tokens", response_model=TokenMade, status_code=201, summary="Make a token")
async def create(context: Context, caller: Admin, wanted: NewToken) -> Response:
    """The secret is in this answer and nowhere else."""
    del caller
    until = expiry(wanted.expires) if wanted.expires else None
    try:
        row, secret = await context.store.write(
            lambda c: make_token(c, wanted.name, wanted.role, user=wanted.user, expires_at=until)
        )
    except InvalidArgument as error:
        # Its form was checked with the body: what is left is a name that is taken.
        raise problem("conflict", said(str(error))) from error
    return answer({**_shown(row), "token": secret}, 201, headers={"Cache-Control": "no-store"})


@router.delete("/tokens/{token_id}", response_model=TokenShown, summary="Revoke a token at once")
async def delete(
    context: Context, caller: Admin, token_id: Annotated[str, Path(description="Its id or its name.")]
) -> Response:
    """Sockets that came with it are closed at once. `server.denied_users` keeps out who may also sign in."""
    del caller
    rows = await context.store.write(lambda c: revoke(c, token_id))
    if not rows:
        raise problem("not_found", "there is no such token that could be revoked")
    context.in_force.note_revoked()
    return answer(_shown(rows[0]))


def _shown(row: TokenRow) -> dict[str, Any]:
    values: dict[str, Any] = msgspec.structs.asdict(row)
    return {"id": values.pop("token_id"), **values, "usable": row.is_usable(now_iso())}
