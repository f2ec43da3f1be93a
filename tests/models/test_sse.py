"""Event streams cut anywhere give the same payloads; the folds give the same events."""

import json

from hypothesis import given
from hypothesis import strategies as st
from support.fake_wire import Plan, anthropic_events, openai_events

from bowerbird.core.errors import ModelError
from bowerbird.core.messages import user_text
from bowerbird.core.requests import End, ModelRequest
from bowerbird.models.answers.answer import Answer
from bowerbird.models.providers.anthropic_fold import AnthropicFold
from bowerbird.models.providers.openai_fold import OpenAIFold
from bowerbird.models.providers.sse import SseParser

STEP = {
    "thinking": "Grübeln, 考える",
    "text": '<think>a</think>Grüße, 世界 \U0001f426 "quoted"\nlines',
    "deltas": 9,
    "tools": [{"name": "f", "id": "c1", "input": {"p": "ä\n"}}, {"name": "g", "id": "c2", "raw": "{}"}],
    "usage": {"input": 3, "output": 4},
}
REQUEST = ModelRequest((user_text("x"),))


def stream(wire: str, newline: bytes = b"\n") -> bytes:
    make = anthropic_events if wire == "anthropic" else openai_events
    body = {"model": "m", "stream_options": {"include_usage": True}}
    raw = b"".join(data for data, _ in make(Plan(STEP, 0, "s", body), body))
    return raw.replace(b"\n", newline)


def fold(wire: str, chunks: list[bytes]) -> list[object]:
    def failed(payload: object) -> ModelError:
        raise AssertionError(payload)

    answer = Answer(REQUEST, "p:m")
    folded = (AnthropicFold if wire == "anthropic" else OpenAIFold)(answer, "m", failed)
    parser, events = SseParser(), []
    for chunk in chunks:
        for payload in parser.feed(chunk):
            events += folded.feed(payload)
    for payload in parser.finish():
        events += folded.feed(payload)
    events += folded.finish()
    assert folded.complete
    end = folded.end()
    assert isinstance(end, End)
    return [*events, end.message.content, end.stop_reason, end.usage]


@given(st.sampled_from(["anthropic", "openai"]), st.sampled_from([b"\n", b"\r\n"]), st.data())
def test_a_stream_split_at_any_byte_boundary_gives_the_same_events(wire, newline, data):
    raw = stream(wire, newline)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(raw)), max_size=12)))
    pieces = [raw[a:b] for a, b in zip([0, *cuts], [*cuts, len(raw)], strict=True)]
    assert fold(wire, pieces) == fold(wire, [stream(wire)])


@given(st.sampled_from(["anthropic", "openai"]))
def test_a_stream_read_byte_by_byte_gives_the_same_events(wire):
    raw = stream(wire)
    assert fold(wire, [raw[i : i + 1] for i in range(len(raw))]) == fold(wire, [raw])


@given(
    st.lists(
        st.text(alphabet=st.characters(codec="utf-8", exclude_characters="\r\n"), max_size=20), min_size=1
    )
)
def test_comments_fields_and_several_data_lines_follow_the_standard(lines):
    raw = ": comment\nid: 7\nretry: 5\nevent: x\n" + "".join(f"data: {line}\n" for line in lines) + "\n"
    assert SseParser().feed(raw.encode()) == ["\n".join(lines).encode()]


def test_an_event_without_blank_line_at_the_end_is_not_lost():
    parser = SseParser()
    assert parser.feed(b"data: 1\n\ndata: [DONE]") == [b"1"]
    assert parser.finish() == [b"[DONE]"]


def test_both_wires_fold_to_the_same_answer():
    ours = fold("anthropic", [stream("anthropic")]), fold("openai", [stream("openai")])
    texts = ["".join(getattr(b, "text", "") for b in events[-3]) for events in ours]
    assert texts[0].removeprefix("<think>a</think>") == texts[1]
    assert [[b.input for b in events[-3] if hasattr(b, "input")] for events in ours] == [
        [{"p": "ä\n"}, {}],
        [{"p": "ä\n"}, {}],
    ]


def chunk(delta: dict[str, object], **more: object) -> bytes:
    return b"data: " + json.dumps({"choices": [{"delta": delta}], **more}).encode() + b"\n\n"


def finish(reason: str = "stop") -> bytes:
    return b"data: " + json.dumps({"choices": [{"delta": {}, "finish_reason": reason}]}).encode() + b"\n\n"


def test_calls_of_servers_that_number_them_otherwise_stay_apart():
    """Calls without index, and parallel calls that all carry index 0."""

    def call(index: int | None, call_id: str | None, name: str | None, arguments: str) -> dict[str, object]:
        number = {} if index is None else {"index": index}
        return {"tool_calls": [{**number, "id": call_id, "function": {"name": name, "arguments": arguments}}]}

    unnumbered = [
        call(None, "a", "f", '{"n":'),
        call(None, None, None, "1}"),
        call(None, "b", "f", '{"n":2}'),
    ]
    all_zero = [call(0, "a", "f", '{"n":1}'), call(0, "b", "f", '{"n":'), call(0, None, None, "2}")]
    for deltas in (unnumbered, all_zero):
        content = fold("openai", [*map(chunk, deltas), finish("tool_calls")])[-3]
        assert [(b.id, b.input) for b in content] == [("a", {"n": 1}), ("b", {"n": 2})]


def test_reasoning_comes_from_any_of_its_fields():
    """MO-23."""
    parts = [
        {"type": "thinking", "thinking": [{"type": "text", "text": "why"}]},
        {"type": "text", "text": "so"},
    ]
    for deltas in (
        [{"reasoning_content": "why"}, {"content": "so"}],
        [{"reasoning": "why"}, {"content": "so"}],
        [{"content": parts}],
        [{"content": "<think>why</think>\n\nso"}],
    ):
        thinking, text = fold("openai", [*map(chunk, deltas), finish()])[-3]
        assert (thinking.thinking, thinking.origin, text.text) == ("why", "p:m", "so")
