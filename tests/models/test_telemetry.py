"""OpenTelemetry spans of model calls (MO-36)."""

import json

import pytest
from msgspec.structs import replace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from support.model_settings import HELLO, KEY

from bowerbird.core.errors import ModelError
from bowerbird.models import Redactor, complete
from bowerbird.models.wrappers.telemetry import TelemetryModel


@pytest.fixture
def spans():
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    exporter.provider = provider
    yield exporter
    provider.shutdown()


async def test_a_call_is_a_span_by_the_conventions_without_content(fake, open_fake, spans, wire):
    fake.script({"text": "secret words", "usage": {"input": 10, "cache_read": 5, "output": 3}})
    model = TelemetryModel(open_fake(wire), provider=spans.provider)
    await complete(model, replace(HELLO, session="t1", temperature=0.5))
    (span,) = spans.get_finished_spans()
    seen = dict(span.attributes)
    assert span.name == f"chat {model.info.model}" and seen["gen_ai.operation.name"] == "chat"
    assert seen["gen_ai.provider.name"] == wire and seen["gen_ai.conversation.id"] == "t1"
    assert (seen["gen_ai.usage.input_tokens"], seen["gen_ai.usage.output_tokens"]) == (15, 3)
    assert seen["gen_ai.response.finish_reasons"] == ("end_turn",)
    assert "secret words" not in json.dumps(seen, default=str) and "hello" not in json.dumps(
        seen, default=str
    )


async def test_content_stands_in_spans_only_when_allowed_and_redacted(fake, open_fake, spans):
    fake.script({"text": f"the key is {KEY}"})
    model = TelemetryModel(
        open_fake("openai"), content=True, redactor=Redactor([KEY]), provider=spans.provider
    )
    await complete(model, HELLO)
    (span,) = spans.get_finished_spans()
    assert "hello" in span.attributes["gen_ai.input.messages"]
    assert "[redacted:secret]" in span.attributes["gen_ai.output.messages"]


async def test_a_failed_call_is_a_failed_span(fake, open_fake, spans):
    fake.script({"status": 401})
    with pytest.raises(ModelError):
        await complete(TelemetryModel(open_fake("openai"), provider=spans.provider), HELLO)
    (span,) = spans.get_finished_spans()
    assert span.attributes["error.type"] == "auth" and not span.status.is_ok
