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
        (
            400,
            '[{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":'
            '"INVALID_ARGUMENT","details":[{"reason":"API_KEY_INVALID"}]}}]',
            "auth",
            False,
        ),
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


def google(quota: str, delay: str) -> str:
    """What Gemini answers with 429, as its users quote it (google-gemini/gemini-cli, RooCodeInc/Roo-Code #3883)."""
    violation = {"quotaMetric": "generate_content_free_tier_input_token_count", "quotaId": quota}
    details = [
        {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [violation]},
        {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay},
    ]
    said = "You exceeded your current quota, please check your plan and billing details."
    error = {"code": 429, "message": said, "status": "RESOURCE_EXHAUSTED", "details": details}
    return json.dumps([{"error": error}])


def groq(limit: str, wait: str) -> str:
    """What Groq answers with 429 (continuedev/continue #10920)."""
    said = f"Rate limit reached for model `m` in organization `o` on {limit}: Limit 6000, Used 5900, Requested 300. "
    said += (
        f"Please try again in {wait}. Need more tokens? Upgrade at https://console.groq.com/settings/billing"
    )
    return json.dumps({"error": {"message": said, "type": "tokens", "code": "rate_limit_exceeded"}})


PER_MINUTE, PER_DAY = (f"GenerateContentInputTokensPerModelPer{span}-FreeTier" for span in ("Minute", "Day"))


@pytest.mark.parametrize(
    ("body", "kind", "wait"),
    [
        (google(PER_MINUTE, "26s"), "rate_limit", 26.0),
        (google(PER_DAY, "26s"), "quota", 26.0),
        (json.dumps({"error": {"code": 429, "message": "Provider returned error", "metadata": {
            "raw": google(PER_MINUTE, "3.5s")}}}), "rate_limit", 3.5),
        (groq("tokens per minute (TPM)", "7.66s"), "rate_limit", 7.66),
        (groq("requests per minute (RPM)", "450ms"), "rate_limit", 0.45),
        (groq("tokens per minute (TPM)", "2m3s"), "rate_limit", 123.0),
        (groq("tokens per day (TPD)", "9m38.016s"), "quota", 578.016),
        (groq("tokens per day (TPD)", "12s"), "rate_limit", 12.0),
        ('{"error":{"message":"Please retry after 28 seconds.","code":"429"}}', "rate_limit", 28.0),
        ('{"error":{"message":"Rate limit exceeded: free-models-per-day. Add 10 credits","code":429}}',
         "quota", None),
        ('{"error":{"message":"Your account is suspended","type":"exceeded_current_quota_error"}}',
         "quota", None),
        ('{"error":{"message":"You exceeded your current quota","code":"insufficient_quota"}}', "quota", None),
        ('{"error":{"code":"1113","message":"Insufficient balance. Please recharge."}}', "quota", None),
    ],
)  # fmt: skip
def test_a_limit_per_minute_is_waited_for_and_one_of_the_day_or_of_money_is_not(body, kind, wait):
    error = error_from_status(ASKED, 429, {}, body, PLAIN)
    assert (error.kind, error.retryable, error.retry_after_s) == (kind, kind == "rate_limit", wait)


@pytest.mark.parametrize(
    "body", [google(PER_MINUTE, "0.4s"), groq("tokens per minute (TPM)", "0.4s")], ids=["gemini", "groq"]
)
async def test_the_wait_that_a_body_names_is_kept(fake, open_fake, body):
    fake.script({"status": 429, "body": body}, {"text": "at last"})
    assert (await complete(open_fake("openai"), HELLO)).message.text == "at last"
    assert 0.4 <= fake.times[1] - fake.times[0] < 3.0


TOO_LONG = [
    (400, "The input token count (1196265) exceeds the maximum number of tokens allowed (1048576)."),
    (400, "This model's maximum prompt length is 131072 but the request contains 537812 tokens."),
    (400, "Invalid request: Your request exceeded model token limit: 262144 (requested: 291351)"),
    (400, '{"error":{"code":"1261","message":"Prompt exceeds max length"}}'),
    (400, "InternalError.Algo.InvalidParameter: Range of input length should be [1, 202745]"),
    (500, "The number of tokens to keep from the initial prompt is greater than the context length "
          "(n_keep: 10247 >= n_ctx: 4096). Try to load the model with a larger context length"),
    (400, "Trying to keep the first 15857 tokens when context the overflows. However, the model is loaded with "
          "context length of only 4096 tokens, which is not enough."),
    (400, "Cannot truncate prompt with n_keep (15028) >= n_ctx (7424)"),
    (422, "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4097. Given: 5000 `inputs`"),
    (400, "The input (210000 tokens) is longer than the model's context length (200000 tokens)."),
    (400, "input length and `max_tokens` exceed context limit: 199759 + 8192 > 200000, decrease input length"),
    (413, '{"type":"error","error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}'),
    (413, "<html><head><title>413 Request Entity Too Large</title></head></html>"),
    (400, '{"error":{"code":400,"type":"exceed_context_size_error","message":"the request exceeds the '
          'available context size (4096 tokens), try increasing it","n_ctx":4096}}'),
    (500, "Context size has been exceeded."),
    (400, "The decoder prompt (length 9000) is longer than the maximum model length of 8192."),
    (400, "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens"),
    (400, "prompt too long; exceeded max context length by 12 tokens"),
    (400, "ValidationException: Input is too long for requested model."),
    (400, "Prompt contains 40000 tokens ... too large for model with 32768 maximum context length"),
    (400, "invalid params, context window exceeds limit"),
    (400, "Please reduce the length of the messages or completion."),
    (400, "prompt token count of 5000 exceeds the limit of 4096"),
    (429, "Request too large for gpt-4o in organization o on tokens per min (TPM): Limit 30000, Requested "
          "40000. The input or output tokens must be reduced in order to run successfully."),
    (413, "Request too large for model `m` on tokens per minute (TPM): Limit 6000, Requested 7000, please "
          "reduce your message size and try again. Visit https://console.groq.com/settings/billing"),
]  # fmt: skip


@pytest.mark.parametrize(("status", "body"), TOO_LONG, ids=[body[:40] for _, body in TOO_LONG])
def test_a_conversation_that_is_too_long_is_known_by_the_words_of_every_provider(status, body):
    error = error_from_status(ASKED, status, {}, body, PLAIN)
    assert (error.kind, error.retryable) == ("context_overflow", False)


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (429, "ThrottlingException: Too many tokens, please wait before trying again.", "rate_limit"),
        (429, "This request would exceed your organization's rate limit of 40,000 input tokens per minute", "rate_limit"),
        (400, "max_tokens: 128000 > 64000, which is the maximum allowed number of output tokens", "bad_request"),
        (400, "Invalid 'tools': array too long. Expected an array with maximum length 128", "bad_request"),
        (500, "upstream billing service timeout", "server"),
    ],
)  # fmt: skip
def test_other_limits_are_not_taken_for_a_conversation_that_is_too_long(status, body, kind):
    assert error_from_status(ASKED, status, {}, body, PLAIN).kind == kind


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
