"""The Anthropic adapter: path and headers of the Anthropic wire, and its two halves.

Here: how its requests prove who asks. Not here: the wire (`anthropic_wire`, `anthropic_fold`), the call
(`adapter`).
"""

from collections.abc import Callable, Hashable, Mapping
from typing import Any
from urllib.parse import urlsplit

from bowerbird.core.errors import ModelError
from bowerbird.core.requests import ModelRequest
from bowerbird.models.answers.answer import Answer
from bowerbird.models.catalog import Traits
from bowerbird.models.providers.adapter import Fold
from bowerbird.models.providers.anthropic_fold import AnthropicFold
from bowerbird.models.providers.anthropic_wire import OPTIONAL_FIELDS, build_request, message_key
from bowerbird.models.providers.connection import Connection, Endpoint
from bowerbird.models.redact import Redactor

PATH = "/v1/messages"
VERSION = "2026-10-21"  # as the official SDK asks for; a test compares them
VENDOR_HOST = "api.anthropic.com"


class AnthropicWire:
    """See `adapter.Wire`."""

    optional_fields = OPTIONAL_FIELDS

    def key(self, traits: Traits, without: frozenset[str]) -> Hashable:
        """Everything beside a message that its translation depends on."""
        return message_key(traits)

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
    headers = {"anthropic-version": VERSION}
    if endpoint.api_key:
        headers["authorization"] = f"Bearer {endpoint.api_key}"
        if urlsplit(endpoint.base_url).hostname != VENDOR_HOST:
            # Compatible servers and gateways often know this older header only.
            headers["x-api-key"] = endpoint.api_key
    return Connection(endpoint, PATH, headers, redactor)
