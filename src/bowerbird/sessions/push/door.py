"""The outbox's door to push services (UI-95).

Here: sending one message, and what a service's answer means. Not here: whom to tell (`part.py`), the
message's encryption (`encryption.py`), trying again (`delivery/outbox.py`).
"""

import asyncio
import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

import msgspec

from bowerbird.core.errors import InvalidArgument, ToolError
from bowerbird.core.extras import missing
from bowerbird.sessions.delivery.messages import Parcel
from bowerbird.sessions.delivery.outbox import DeliveryFailed
from bowerbird.sessions.push.encryption import authorization, encrypted
from bowerbird.sessions.push.own_key import own_key
from bowerbird.sessions.push.rules import DOOR, WHAT, PushRules, check_endpoint, guard_of
from bowerbird.store.rows.push import drop_subscription, find_subscription
from bowerbird.store.store import Store

SEND_S = 15.0
KEPT_S = 24 * 3600  # by the push service, for a browser that is off


class PushDoor:
    """`Deliverer` to push services."""

    def __init__(self, store: Store, rules: Callable[[], PushRules]) -> None:
        self._store = store
        self._rules = rules

    @property
    def door(self) -> str:
        """See `Deliverer`."""
        return DOOR

    def parts(self, text: str) -> Sequence[Mapping[str, Any]]:
        """See `Deliverer`; no session answers through push."""
        return [{"text": text}]

    async def send(self, address: str, parcel: Parcel, key: str) -> str | None:
        """See `Deliverer`; a second message of one kind replaces the first, so no key is needed."""
        import httpx2  # a server that tells nobody needs none

        del key
        row = await self._store.write(lambda c: find_subscription(c, address), flush=False)
        rules = self._rules()
        if row is None or not rules.enabled:
            return None  # signed out meanwhile: nobody is told, and nothing is left to try
        lack = missing("push", WHAT)
        if lack is not None:
            raise DeliveryFailed(str(lack), is_final=True)
        private = await self._store.write(own_key)
        try:
            check_endpoint(row.endpoint, rules)
            body = encrypted(msgspec.json.encode(parcel.content), row.p256dh, row.auth)
            status, retry_after = await _post(
                row.endpoint, body, _headers(row.endpoint, private, rules.contact, parcel), rules
            )
        except (InvalidArgument, ToolError, httpx2.InvalidURL) as error:
            await self._forget(row.id)
            raise DeliveryFailed(str(error), is_final=True) from error
        except httpx2.HTTPError as error:
            host = urlsplit(row.endpoint).hostname
            raise DeliveryFailed(f"{host}: {type(error).__name__}") from error
        if status in (404, 410):
            await self._forget(row.id)
            return None
        if not 200 <= status < 300:
            is_final = 400 <= status < 500 and status not in (408, 429)
            raise DeliveryFailed(
                f"the push service said {status}", retry_after_s=retry_after, is_final=is_final
            )
        return None

    async def _forget(self, row_id: str) -> None:
        await self._store.write(lambda c: drop_subscription(c, row_id))


def _headers(endpoint: str, private: str, contact: str, parcel: Parcel) -> dict[str, str]:
    about = f"{parcel.content.get('kind')}:{parcel.content.get('conversation')}"
    return {
        "Authorization": authorization(endpoint, private, contact),
        "Content-Encoding": "aes128gcm",
        "Content-Type": "application/octet-stream",
        "TTL": str(KEPT_S),
        "Urgency": "high" if parcel.content.get("kind") == "answer" else "normal",
        # A newer message of the same kind takes the place of one that has not arrived.
        "Topic": hashlib.sha256(about.encode()).hexdigest()[:32],
    }


async def _post(
    endpoint: str, body: bytes, headers: Mapping[str, str], rules: PushRules
) -> tuple[int, float | None]:
    """Send to a push service; return its status, and after how long it may be asked again.

    The address that was checked is the one connected to; no redirect is followed, no answer's body is read.
    """
    import httpx2

    from bowerbird.tools.web.pinned_http import PinnedTransport

    transport = PinnedTransport(guard_of(rules), rules.verify)
    async with (
        asyncio.timeout(SEND_S),
        httpx2.AsyncClient(transport=transport, timeout=SEND_S, trust_env=False) as client,
        client.stream("POST", endpoint, content=body, headers=dict(headers)) as response,
    ):
        wait = response.headers.get("retry-after", "")
        return response.status_code, float(wait) if wait.isdecimal() and len(wait) < 7 else None
