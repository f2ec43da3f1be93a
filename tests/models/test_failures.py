"""What goes wrong at a provider, as errors a user can act on (MO-13)."""

import inspect
import json
import socket
from datetime import UTC, datetime

import aiohttp
import pytest
from aiohttp import client_exceptions
from aiohttp.client_reqrep import ConnectionKey
from multidict import CIMultiDict, CIMultiDictProxy
from support.model_settings import HELLO, KEY, QUICK
from yarl import URL

from bowerbird.core.errors import ConfigError, ModelError
from bowerbird.models import ModelSettings, ProviderSettings, RetryPolicy, Timeouts, complete, open_model
from bowerbird.models.failures import Asked, error_from_status, quoted, refused_field, retry_after_s
from bowerbird.models.providers.endpoint import Endpoint
from bowerbird.models.providers.transport import Transport
from bowerbird.models.redact import Redactor

ASKED = Asked("openai", "gpt-x", "https://api.openai.com/v1", "OPENAI_API_KEY")
PLAIN = Redactor()


def failures_of_http() -> dict[type[Exception], Exception]:
    """One of each class of failure that the HTTP library knows, as it makes them."""
    key = ConnectionKey("h", 1, False, True, None, None, None)
    address = URL("http://h:1/")
    info = aiohttp.RequestInfo(address, "POST", CIMultiDictProxy(CIMultiDict()), address)
    system = OSError(111, "refused")
    made: dict[type[Exception], Exception] = {}
    for cls in (c for c in vars(client_exceptions).values() if inspect.isclass(c)):
        if not issubclass(cls, aiohttp.ClientError):
            continue
        if issubclass(cls, aiohttp.ClientResponseError):
            made[cls] = cls(info, (), status=400, message="said")
        elif issubclass(cls, client_exceptions.UnixClientConnectorError):
            made[cls] = cls("/socket", key, system)
        elif issubclass(cls, aiohttp.ClientConnectorError):
            made[cls] = cls(key, system)
        elif cls is aiohttp.ServerFingerprintMismatch:
            made[cls] = cls(b"a" * 32, b"b" * 32, "h", 1)
        else:
            made[cls] = cls("said")
    return made


@pytest.mark.parametrize("cls", list(failures_of_http()), ids=lambda cls: cls.__name__)
async def test_every_failure_of_the_http_library_is_mapped(cls: type[Exception]) -> None:
    """A new one of a later version cannot be missed; none shows the library's own names."""
    endpoint = Endpoint(ASKED, "http://127.0.0.1:1/v1")
    transport = Transport(endpoint, "/x", {}, PLAIN)
    mapped = transport.error_of(failures_of_http()[cls])
    await transport.aclose()
    assert isinstance(mapped, ModelError) and mapped.provider == "openai"
    assert mapped.kind == ("bad_request" if issubclass(cls, aiohttp.InvalidURL) else mapped.kind)
    assert str(mapped).startswith(
        "no connection to" if mapped.kind == "timeout" else "openai at http://127.0.0.1:1/v1"
    )
    assert "ssl:" not in str(mapped) and "message=" not in str(mapped)


@pytest.mark.parametrize(
    ("status", "body", "kind", "retryable"),
    [
        (400, "bad", "bad_request", False),
        (400, "prompt is too long: 300000 tokens > 200000 maximum", "context_overflow", False),
        (400, '{"error":{"message":"x","code":"context_length_exceeded"}}', "context_overflow", False),
        (400, "Your credit balance is too low", "quota", False),
        (400, '{"error":{"message":"x","code":"content_policy_violation"}}', "refused", False),
        (401, "", "auth", False),
        (402, "", "quota", False),
        (403, "", "auth", False),
        (404, "", "not_found", False),
        (408, "", "timeout", True),
        (422, "", "bad_request", False),
        (429, "slow down", "rate_limit", True),
        (429, '{"error":{"message":"x","code":"insufficient_quota"}}', "quota", False),
        (500, "", "server", True),
        (501, "", "server", False),
        (503, "", "overloaded", True),
        (504, "", "timeout", True),
        (529, "", "overloaded", True),
    ],
)
def test_statuses_have_their_kinds(status, body, kind, retryable):
    error = error_from_status(ASKED, status, {"x-request-id": "r1"}, body, PLAIN)
    assert (error.kind, error.retryable, error.status, error.request_id) == (kind, retryable, status, "r1")
    assert (error.provider, error.model) == ("openai", "gpt-x")


def test_messages_tell_what_to_do():
    assert "check OPENAI_API_KEY" in str(error_from_status(ASKED, 401, {}, "", PLAIN))
    not_found = str(error_from_status(ASKED, 404, {}, "", PLAIN))
    assert "'gpt-x'" in not_found and "check the model's name and the base URL" in not_found


def test_a_page_of_a_proxy_is_named_by_its_title():
    """A gateway that fails answers with a page: its marks and styles are nothing to read in a terminal."""
    page = "<!DOCTYPE html>\n<html><head><title>502 Bad\n Gateway</title><style>b{color:red}</style></head><body><center><h1>502 Bad Gateway</h1></center><hr>nginx</body></html>"
    assert str(error_from_status(ASKED, 502, {}, page, PLAIN)).endswith("(HTTP 502): 502 Bad Gateway")
    bare = "<html><head><style>b{color:red}</style></head><body><h1>Too many  requests</h1><p>Wait &amp; see.</p></body></html>"
    assert str(error_from_status(ASKED, 429, {}, bare, PLAIN)).endswith(
        "(HTTP 429): Too many requests Wait & see."
    )


def test_what_a_provider_says_and_what_to_do_are_one_sentence():
    """It read: `… purchase credits.; add credit there`."""
    body = '{"error": {"message": "Your credit balance is too low. Go to Billing."}}'
    assert "Go to Billing; add credit there or choose another model" in str(
        error_from_status(ASKED, 400, {}, body, PLAIN)
    )


def test_bodies_are_cut_at_500_characters_and_redacted_before_they_are_cut():
    text = "x" * 490 + " " + KEY
    said = quoted(text, Redactor([KEY]))
    assert len(said) <= 500 and KEY[:4] not in said
    assert len(str(error_from_status(ASKED, 500, {}, "<html>" + "y" * 9_000, PLAIN))) < 600


async def test_a_key_echoed_by_a_provider_is_in_no_error(fake, open_fake, wire):
    """Acceptance 8."""
    fake.script({"status": 401, "body": {"error": {"message": f"Incorrect API key provided: {KEY}."}}})
    with pytest.raises(ModelError) as caught:
        await complete(open_fake(wire), HELLO)
    assert KEY not in str(caught.value) and "[redacted:secret]" in str(caught.value)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "2"}, 2.0),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after": "-4"}, 0.0),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after": "Fri, 20 Nov 2026 12:00:30 GMT"}, 30.0),
        ({"retry-after": "Fri, 20 Nov 2026 11:00:00 GMT"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({}, None),
    ],
)
def test_retry_after_is_read_in_all_its_forms(headers, seconds):
    assert retry_after_s(headers, datetime(2026, 11, 20, 12, tzinfo=UTC)) == seconds


@pytest.mark.parametrize(
    ("status", "message", "field"),
    [
        (400, "Unsupported parameter: 'max_tokens' is not supported with this model.", "max_tokens"),
        (400, 'Unknown name "stream_options": Cannot find field.', "stream_options"),
        (422, '[{"type":"extra_forbidden","loc":["body","thinking"]}]', "thinking"),
        (400, "`temperature` is deprecated for this model.", "temperature"),
        (400, "max_tokens is too large", None),
        (400, "upstream not supported", None),
        (500, "temperature is not supported", None),
    ],
)
def test_a_refusal_names_its_field(status, message, field):
    optional = ["stream", "stream_options", "max_tokens", "temperature", "thinking"]
    assert refused_field(status, json.dumps({"detail": message}), optional) == field


def test_tls_verification_cannot_be_turned_off_for_other_hosts():
    """MO-17; a name that begins like an address of this machine is any host's."""
    for host in ("models.example.com", "127.example.com", "127.0.0.1.example.com"):
        off = ProviderSettings(KEY, f"https://{host}/v1", verify_tls=False)
        with pytest.raises(ConfigError, match="only loopback hosts allow that"):
            open_model("openai:m", ModelSettings(providers={"openai": off}))
    for host in ("localhost", "127.0.0.1", "127.1.2.3", "[::1]"):
        here = ProviderSettings(KEY, f"https://{host}/v1", verify_tls=False)
        open_model("openai:m", ModelSettings(providers={"openai": here}))


@pytest.mark.parametrize(
    "url", ["ftp://x", "localhost:11434", "http://", "http://x:port/v1", "http://x:99999"]
)
def test_a_base_url_that_is_none_is_refused_when_the_model_is_opened(url):
    with pytest.raises(ConfigError, match="base URL"):
        open_model("openai:m", ModelSettings(providers={"openai": ProviderSettings(KEY, url)}, retry=QUICK))


async def test_an_answer_that_is_no_protocol_is_an_error_with_a_reason(fake, open_fake):
    fake.script({"body": "data: {oops\n\n", "headers": {"content-type": "text/event-stream"}})
    with pytest.raises(ModelError, match="cannot be read"):
        await complete(open_fake("openai"), HELLO)
    fake.script({"body": "<html>hello</html>", "headers": {"content-type": "text/html"}})
    with pytest.raises(ModelError, match="answers with a page"):
        await complete(open_fake("openai"), HELLO)


async def test_a_server_that_takes_no_connection_is_a_timeout(wire):
    """MO-31: connecting has its own limit."""
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        waiting = [socket.socket() for _ in range(4)]
        try:
            for client in waiting:  # they fill the queue that nobody empties
                client.setblocking(False)
                client.connect_ex(full.getsockname())
            url = f"http://127.0.0.1:{full.getsockname()[1]}"
            provider = ProviderSettings(KEY, url, timeouts=Timeouts(connect_s=0.2))
            model = open_model(f"{wire}:m", ModelSettings(providers={wire: provider}, retry=RetryPolicy(0)))
            with pytest.raises(ModelError, match=r"no connection to .* within 0\.2 s") as caught:
                await complete(model, HELLO)
            await model.aclose()
        finally:
            for client in waiting:
                client.close()
    assert caught.value.kind == "timeout" and caught.value.retryable
