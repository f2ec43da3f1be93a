"""The OpenAI adapter and its compatible presets: the official SDK's client behind the OpenAI wire.

Here: how the SDK's client is made. Not here: the wire (`openai_wire`, `openai_fold`), the call
(`adapter`). The SDK is imported with the first call.
"""

from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any, cast

from bowerbird.core.errors import ModelError
from bowerbird.core.model_presets import Preset
from bowerbird.core.requests import ModelRequest
from bowerbird.models.adapter import Fold
from bowerbird.models.answer import Answer
from bowerbird.models.catalog import Traits
from bowerbird.models.connection import Connection, Endpoint, SdkClient, http_client_options
from bowerbird.models.openai_fold import OpenAIFold
from bowerbird.models.openai_wire import OPTIONAL_FIELDS, build_request
from bowerbird.models.redact import Redactor

PATH = "/chat/completions"


class OpenAIWire:
    """See `adapter.Wire`; `preset` says in what a server differs."""

    optional_fields = OPTIONAL_FIELDS

    def __init__(self, preset: Preset, *, own_host: bool) -> None:
        self._preset = preset
        # OpenAI itself never writes tags; everywhere else a model may.
        self._think_tags = not (preset.name == "openai" and own_host)

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
    return Connection(endpoint, PATH, _sdk, _client, redactor)


def _sdk() -> ModuleType:
    import openai

    return openai


def _client(endpoint: Endpoint) -> SdkClient:
    import openai

    headers = dict(endpoint.headers)
    options = http_client_options(endpoint)
    client = openai.AsyncOpenAI(
        api_key=endpoint.api_key or "none",  # the SDK insists on one; see `_Keyless`
        admin_api_key="",
        base_url=endpoint.base_url,
        timeout=options["timeout"],
        max_retries=0,
        default_headers=headers,
        http_client=openai.DefaultAioHttpClient(**options),
    )
    # The SDK adds these from its own environment variables; only settings decide here.
    client.organization = None
    client.project = None
    vars(client)["_custom_headers"] = headers
    keyed = endpoint.api_key or any(name.lower() == "authorization" for name in headers)
    return cast("SdkClient", client) if keyed else _Keyless(cast("SdkClient", client), openai.Omit())


class _Keyless:
    """A client for servers without keys: no `Authorization` is sent rather than an invented one."""

    def __init__(self, client: SdkClient, omit: object) -> None:
        self._client = client
        self._omit = omit

    async def post(self, path: str, *, options: Mapping[str, Any] | None = None, **more: Any) -> Any:
        given = dict(options or {})
        headers = {**given.pop("headers", {}), "Authorization": self._omit}
        return await self._client.post(path, options={**given, "headers": headers}, **more)

    async def close(self) -> None:
        await self._client.close()
