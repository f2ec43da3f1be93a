"""What a vendor or a local server has: one GET, for probes and for Ollama's first model (PR-4, PR-6).

Here: the list of models, and what its absence means. Not here: when it is asked (`agent`).
"""

import asyncio
import json
from typing import Any, cast

from bowerbird.core.threads import to_thread
from bowerbird.models.providers.anthropic_model import VERSION
from bowerbird.models.settings import is_loopback
from bowerbird.providers.api.reaching import Reach

LISTING_S = 5.0
_LARGEST = 4 * 1024 * 1024


class NotListed(Exception):
    """No list came; `status` is HTTP's, None where nobody answered."""

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


async def listed_models(reach: Reach) -> list[str]:
    """Return the names of the models at `reach`, as many as it says.

    Raises:
        NotListed: no answer within 5 s, or one that is no list.
    """
    try:
        async with asyncio.timeout(LISTING_S):
            status, body = await _get(reach)
    except TimeoutError as error:
        raise NotListed(f"{reach.base_url} did not answer within {LISTING_S:g} s") from error
    if status != 200:
        raise NotListed(f"{reach.base_url} answers HTTP {status}", status)
    try:
        return _names(json.loads(body))
    except (ValueError, RecursionError) as error:
        raise NotListed(f"{reach.base_url} answers with something that is no list of models", 200) from error


async def _get(reach: Reach) -> tuple[int, bytes]:
    aiohttp = await to_thread(_aiohttp)
    path = {"anthropic": "/v1/models", "ollama": "/api/tags"}.get(reach.preset.wire, "/models")
    try:
        async with (
            aiohttp.ClientSession(trust_env=not is_loopback(reach.base_url)) as session,
            session.get(reach.base_url + path, headers=_headers(reach), allow_redirects=False) as response,
        ):
            body = bytearray()
            async for chunk in response.content.iter_any():
                body += chunk
                if len(body) > _LARGEST:
                    raise NotListed(f"{reach.base_url} answers with more than a list of models", 200)
            return response.status, bytes(body)
    except (aiohttp.ClientError, OSError, ValueError) as error:
        said = error.strerror if isinstance(error, OSError) and error.strerror else type(error).__name__
        raise NotListed(f"{reach.base_url} cannot be reached: {said}") from error


def _headers(reach: Reach) -> dict[str, str]:
    headers = dict(reach.headers)
    if reach.preset.wire == "anthropic":
        headers["anthropic-version"] = VERSION
        if reach.api_key:
            headers["x-api-key"] = reach.api_key
    elif reach.api_key:
        headers["authorization"] = f"Bearer {reach.api_key}"
    return headers


def _names(answer: object) -> list[str]:
    """Return the names in a list of either form: `data[].id` of the vendors, `models[].name` of Ollama."""
    if not isinstance(answer, dict):
        raise ValueError("no object")
    table = cast("dict[str, Any]", answer)
    rows = table.get("data", table.get("models"))
    if not isinstance(rows, list):
        raise ValueError("no list")
    found: list[str] = []
    for row in cast("list[Any]", rows):
        if isinstance(row, dict):
            fields = cast("dict[str, Any]", row)
            name = fields.get("name") or fields.get("id")
            if isinstance(name, str) and name.strip():
                found.append(name)
    return found


def _aiohttp() -> Any:
    import aiohttp  # takes long enough to stall others: imported in a thread

    return aiohttp
