"""Web push: a browser asks to be told, or no longer (UI-95).

Here: the routes. Not here: when it is told and how (`sessions/push`), what it shows (`web/public/sw.js`).
"""

from typing import Annotated

from fastapi import APIRouter
from pydantic import Field
from starlette.responses import Response

from bowerbird.server.common.json_answers import answer
from bowerbird.server.routes.common import Body, Context, Shown, StatusShown, User
from bowerbird.sessions.push.part import Push
from bowerbird.sessions.push.rules import LONGEST_ENDPOINT

router = APIRouter(prefix="/api/push", tags=["push"])

Endpoint = Annotated[str, Field(min_length=1, max_length=LONGEST_ENDPOINT)]
BrowserKey = Annotated[str, Field(min_length=1, max_length=200)]


class KeyShown(Shown):
    """What browsers subscribe with (`applicationServerKey`, base64url)."""

    key: str


class BrowserKeys(Body):
    """Keys of a browser, base64url."""

    p256dh: BrowserKey
    auth: BrowserKey


class NewSubscription(Body):
    """A browser's subscription, as `PushSubscription.toJSON()` gives it."""

    endpoint: Endpoint
    keys: BrowserKeys


class OldSubscription(Body):
    """The browser that is to be told no longer."""

    endpoint: Endpoint


@router.get("/key", response_model=KeyShown, summary="The key that browsers subscribe with")
async def key(context: Context, caller: User) -> Response:
    """The same as long as the database lives."""
    del caller
    return answer({"key": await context.sessions.part(Push).key()})


@router.put("/subscription", response_model=StatusShown, summary="Tell a browser")
async def subscribe(context: Context, caller: User, wanted: NewSubscription) -> Response:
    """It is told when one of the caller's agents asks something, or has ended what took long; it ends with
    the credential that it was made with."""
    push, keys = context.sessions.part(Push), wanted.keys
    await push.subscribe(caller.user_id, caller.credential, wanted.endpoint, keys.p256dh, keys.auth)
    return answer({"status": "subscribed"})


@router.post("/unsubscribe", response_model=StatusShown, summary="Tell a browser no longer")
async def unsubscribe(context: Context, caller: User, wanted: OldSubscription) -> Response:
    """Asked at sign-out; a browser that is not known is no error."""
    known = await context.sessions.part(Push).unsubscribe(caller.user_id, wanted.endpoint)
    return answer({"status": "removed" if known else "unknown"})
