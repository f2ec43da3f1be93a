"""Long conversations: what was encoded for one call serves the next, and the bytes are the same (MO-53)."""

import random
import time
from collections.abc import Callable, Iterable, Sequence

import msgspec
import pytest

from bowerbird.core.growing import PIECE, Growing
from bowerbird.core.messages import (
    BlobSource,
    ImageBlock,
    Message,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    assistant_text,
    user_text,
)
from bowerbird.core.requests import ModelRequest
from bowerbird.models.catalog import traits_of
from bowerbird.models.names import preset_of
from bowerbird.models.providers import anthropic_model, beginnings, openai_model
from bowerbird.models.providers.encoding import encode_body
from bowerbird.models.providers.sse import SseParser
from bowerbird.models.settings import ModelOverride

PICTURE = ImageBlock("image/png", BlobSource("sha256:aa"))


def encoded(wire: str, messages: Sequence[Message], **more: object) -> bytes:
    """The body of a request with these messages."""
    held = messages if isinstance(messages, Growing) else tuple(messages)
    request = ModelRequest(held, system=("be kind",), **more)
    blobs = {"sha256:aa": b"\x89PNG"}
    traits = traits_of(preset_of(wire), "m", own_host=False, override=ModelOverride(images=True))
    if wire == "anthropic":
        return encode_body(anthropic_model.build_request(request, traits, blobs)[0])
    return encode_body(openai_model.build_request(request, traits, preset_of(wire), blobs)[0])


def some_message(chance: random.Random, n: int) -> Message:
    """Any message, also such as are left out or joined with their neighbours."""
    match chance.randrange(9):
        case 0:
            return Message("assistant", (ToolUseBlock(f"call {n}", "a", {"z": n, "a": [1]}),))
        case 1:
            return Message("user", (ToolResultBlock(f"call {n}", "result é \udcff", n % 2 == 0),))
        case 2:
            return Message("user", (ToolResultBlock(f"c{n}", [TextBlock("see"), PICTURE]), TextBlock("so")))
        case 3:
            return Message("assistant", (ThinkingBlock("hm", "sig", "anthropic:m"), TextBlock("aha")))
        case 4:
            return Message("assistant", (ThinkingBlock("of another", "sig", "openai:x"),))
        case 5 | 6:
            return assistant_text(f'answer "{n}"')
        case _:
            return user_text(f"question {n}")


def as_one(monkeypatch: pytest.MonkeyPatch, wire: str, messages: Sequence[Message], **more: object) -> bytes:
    """The body without anything that was kept."""
    with monkeypatch.context() as patch:
        patch.setattr(beginnings, "PIECE", 1 << 40)
        return encoded(wire, tuple(messages), **more)


@pytest.mark.parametrize("wire", ["anthropic", "openai"])
@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("held", [tuple, Growing.of], ids=["tuple", "growing"])
def test_a_long_conversation_is_sent_in_the_same_bytes_whatever_was_kept_of_it(
    wire: str,
    seed: int,
    held: Callable[[Iterable[Message]], Sequence[Message]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """MO-53, findings reliability 2: growing, marked in places, beginning elsewhere, a message changed."""
    chance = random.Random(seed)
    monkeypatch.setattr(beginnings, "RUN", 2)  # so that what is kept of many pieces together has its part
    said = Growing.of(some_message(chance, n) for n in range(chance.randrange(90, 400)))
    marks: tuple[int, ...] = ()
    for _ in range(8):
        if chance.random() < 0.7:  # a mark often stays where it was
            marks = tuple(chance.randrange(len(said)) for _ in range(chance.randrange(4)))
        more = {"cache_marks": marks, "dated": chance.random() < 0.5}
        assert encoded(wire, held(said), **more) == as_one(monkeypatch, wire, said, **more)
        at = chance.randrange(len(said))
        match chance.randrange(4):
            case 0:
                said = said.replaced(at, some_message(chance, at))
            case 1:
                said = Growing.of([user_text("a summary"), *said[at // 2 :]])
            case _:
                said = said.plus(some_message(chance, n) for n in range(chance.randrange(80)))


@pytest.mark.parametrize("wire", ["anthropic", "openai"])
def test_one_message_more_costs_no_second_translation_of_those_before(wire: str) -> None:
    """Findings reliability 2: 4,000 messages were translated and encoded for every call."""
    messages = [(user_text, assistant_text)[n % 2](f"word {n} " * 10) for n in range(20_000)]
    began = time.perf_counter()
    first = encoded(wire, messages)
    whole = time.perf_counter() - began
    best = whole
    for n in range(3):
        messages.append(user_text(f"more {n}"))
        began = time.perf_counter()
        again = encoded(wire, messages)
        best = min(best, time.perf_counter() - began)
    assert best < whole / 4, (best, whole)
    assert len(msgspec.json.decode(again)["messages"]) >= len(msgspec.json.decode(first)["messages"])


def test_pieces_of_one_role_are_put_together_in_time_by_their_length() -> None:
    """Results of many calls are one message at the provider: each piece copied all of it again."""

    def seconds(pieces: int) -> float:
        messages = [user_text(f"{n} " + "x" * 2_000) for n in range(PIECE * pieces)]
        encoded("anthropic", messages)
        times: list[float] = []
        for _ in range(3):
            began = time.process_time()
            body = encoded("anthropic", messages)
            times.append(time.process_time() - began)
        assert len(msgspec.json.decode(body)["messages"]) == 1
        return max(min(times), 0.0005)

    assert seconds(200) < 60 * seconds(20)  # 10 times the bytes; by the square 100 times and more


def test_what_was_kept_for_one_model_is_not_sent_to_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """MO-23: a signature goes back only to the model that made it."""
    thought = Message("assistant", (ThinkingBlock("hm", "sig", "anthropic:m"), TextBlock("aha")))
    messages = [message for n in range(100) for message in (user_text(str(n)), replace_id(thought, n))]
    assert encoded("anthropic", messages).count(b'"sig"') == 100
    assert encoded("openai", messages) == as_one(monkeypatch, "openai", messages)


def replace_id(message: Message, n: int) -> Message:
    return msgspec.structs.replace(message, id=f"msg_{n}")


def test_a_long_event_in_small_pieces_costs_in_proportion_to_its_length() -> None:
    """One event of 100 KB in pieces of 10 bytes took 161 ms, of 25 KB 11 ms."""

    def seconds(size: int) -> float:
        content = b"data: " + b"x" * size + b"\n\n"
        times: list[float] = []
        for _ in range(3):
            parser, payloads = SseParser(), list[bytes]()
            began = time.perf_counter()
            for at in range(0, len(content), 10):
                payloads += parser.feed(content[at : at + 10])
            times.append(time.perf_counter() - began)
            assert payloads == [b"x" * size]
        return min(times)

    assert seconds(1_600_000) < 80 * seconds(100_000)  # 16 times the bytes; by the square 256 times
