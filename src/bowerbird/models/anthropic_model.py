"""The Anthropic adapter: the official SDK's client behind the Anthropic wire.

Here: how the SDK's client is made. Not here: the wire (`anthropic_wire`, `anthropic_fold`), the call
(`adapter`). The SDK is imported with the first call.
"""

from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any, cast
from urllib.parse import urlsplit

from bowerbird.core.errors import ModelError
from bowerbird.core.requests import ModelRequest
from bowerbird.models.adapter import Fold
from bowerbird.models.answer import Answer
from bowerbird.models.anthropic_fold import AnthropicFold
from bowerbird.models.anthropic_wire import OPTIONAL_FIELDS, build_request
from bowerbird.models.catalog import Traits
from bowerbird.models.connection import Connection, Endpoint, SdkClient, http_client_options
from bowerbird.models.redact import Redactor

PATH = "/v1/messages"
VENDOR_HOST = "api.anthropic.com"


class AnthropicWire:
    """See `adapter.Wire`."""

    optional_fields = OPTIONAL_FIELDS

    def body(
        self, request: ModelRequest, traits: Traits, blobs: Mapping[str, bytes], without: frozenset[str]
    ) -> tuple[dict[str, Any], tuple[str, ...]]:
        """Body and notes of a request."""
        return build_request(request, traits, blobs, without)

    def fold(
        self, answer: Answer, failed: Callable[[Mapping[str, Any]], ModelError], request_id: str | None
    ) -> Fold:
        """A fold for one answer."""
        return AnthropicFold(answer, answer.model, failed, request_id)


def connect(endpoint: Endpoint, redactor: Redactor) -> Connection:
    """Return a connection to a server that speaks Anthropic Messages."""
    return Connection(endpoint, PATH, _sdk, _client, redactor)


def _sdk() -> ModuleType:
    import anthropic

    return anthropic


def _client(endpoint: Endpoint) -> SdkClient:
    import anthropic

    headers = dict(endpoint.headers)
    if endpoint.api_key and urlsplit(endpoint.base_url).hostname != VENDOR_HOST:
        # The SDK sends a bearer token; compatible servers and gateways often know the older header only.
        headers.setdefault("X-Api-Key", endpoint.api_key)
    options = http_client_options(endpoint)
    client = anthropic.AsyncAnthropic(
        api_key=endpoint.api_key or "",
        base_url=endpoint.base_url,
        max_retries=0,
        default_headers=headers,
        timeout=options["timeout"],
        open_telemetry=False,  # our own spans follow our settings (MO-36)
        http_client=anthropic.DefaultAioHttpClient(**options),
    )
    # The SDK adds headers from its own environment variables; only settings decide here.
    vars(client)["_custom_headers"] = headers
    return cast("SdkClient", client)
