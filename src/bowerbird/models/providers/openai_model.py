"""The OpenAI adapter and its compatible presets: path and headers of the OpenAI wire, and its two halves.

Here: how its requests prove who asks. Not here: the wire (`openai_wire`, `openai_fold`), the call
(`adapter`).
"""

from collections.abc import Callable, Hashable, Mapping
from typing import Any

from bowerbird.core.errors import ModelError
from bowerbird.core.model_presets import Preset
from bowerbird.core.requests import ModelRequest
from bowerbird.models.answers.answer import Answer
from bowerbird.models.catalog import Traits
from bowerbird.models.providers.adapter import Fold
from bowerbird.models.providers.connection import Connection, Endpoint
from bowerbird.models.providers.openai_fold import OpenAIFold
from bowerbird.models.providers.openai_wire import OPTIONAL_FIELDS, build_request, message_key
from bowerbird.models.redact import Redactor

PATH = "/chat/completions"


class OpenAIWire:
    """See `adapter.Wire`; `preset` says in what a server differs."""

    optional_fields = OPTIONAL_FIELDS

    def __init__(self, preset: Preset, *, own_host: bool) -> None:
        self._preset = preset
        # OpenAI itself never writes tags; everywhere else a model may.
        self._think_tags = not (preset.name == "openai" and own_host)

    def key(self, traits: Traits, without: frozenset[str]) -> Hashable:
        """Everything beside a message that its translation depends on."""
        return message_key(traits, self._preset, without)

    def body(
        self, request: ModelRequest, traits: Traits, blobs: Mapping[str, bytes], without: frozenset[str]
    ) -> tuple[dict[str, Any], tuple[str, ...]]:
        """Body and notes of a request."""
        return build_request(request, traits, self._preset, blobs, without)

    def fold(
        self, answer: Answer, failed: Callable[[Mapping[str, Any]], ModelError], request_id: str | None
    ) -> Fold:
        """A fold for one answer."""
        return OpenAIFold(answer, answer.model, failed, request_id, think_tags=self._think_tags)


def connect(endpoint: Endpoint, redactor: Redactor) -> Connection:
    """Return a connection to a server that speaks OpenAI Chat Completions."""
    # For a server without keys none is invented.
    headers = {"authorization": f"Bearer {endpoint.api_key}"} if endpoint.api_key else {}
    return Connection(endpoint, PATH, headers, redactor)
