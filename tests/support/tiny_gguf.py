"""Writes a tiny GGUF weights file with random weights: the real engine loads it in a moment.

Here: the file format as far as a one-layer llama with a vocabulary of bytes needs it. The model says
nonsense, which is what tests of the engine, the grammar and the adapter want: whatever comes out
right does so because it is enforced.
"""

import math
import random
import struct
from pathlib import Path

_UINT32, _FLOAT32, _STRING, _ARRAY, _INT32 = 4, 6, 8, 9, 5
_F32 = 0
_ALIGN = 32
_EMBED, _HEADS, _FEED, _LAYERS = 32, 2, 64, 1
_NORMAL, _CONTROL = 1, 3

CHAT_TEMPLATE = (
    "{% for m in messages %}<{{ m['role'] }}>{{ m['content'] }}\n{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}"
)


def write_tiny_gguf(path: Path, *, seed: int = 1, context: int = 32_768) -> Path:
    """Write the file (about 170 kB) and return its path; one seed gives one file."""
    tokens = [*(_shown(byte) for byte in range(256)), "th", "<|end|>"]
    kinds = [_NORMAL] * 257 + [_CONTROL]
    end = len(tokens) - 1
    metadata = [
        _string("general.architecture", "llama"),
        _string("general.name", "tiny"),
        _uint("llama.context_length", context),
        _uint("llama.embedding_length", _EMBED),
        _uint("llama.block_count", _LAYERS),
        _uint("llama.feed_forward_length", _FEED),
        _uint("llama.attention.head_count", _HEADS),
        _uint("llama.rope.dimension_count", _EMBED // _HEADS),
        _key("llama.attention.layer_norm_rms_epsilon") + struct.pack("<If", _FLOAT32, 1e-5),
        _string("tokenizer.ggml.model", "gpt2"),
        _string("tokenizer.ggml.pre", "gpt-2"),
        _array("tokenizer.ggml.tokens", _STRING, [_text(token) for token in tokens]),
        _array("tokenizer.ggml.token_type", _INT32, [struct.pack("<i", kind) for kind in kinds]),
        _array("tokenizer.ggml.merges", _STRING, [_text("t h")]),
        _uint("tokenizer.ggml.bos_token_id", end),
        _uint("tokenizer.ggml.eos_token_id", end),
        _string("tokenizer.chat_template", CHAT_TEMPLATE),
    ]
    tensors = _tensors(len(tokens), random.Random(seed))
    head = [b"GGUF", struct.pack("<IQQ", 3, len(tensors), len(metadata)), *metadata]
    offset, data = 0, bytearray()
    for name, shape, values in tensors:
        head.append(_text(name) + struct.pack("<I", len(shape)))
        head.append(b"".join(struct.pack("<Q", size) for size in shape) + struct.pack("<IQ", _F32, offset))
        data += values + bytes(-len(values) % _ALIGN)
        offset = len(data)
    header = b"".join(head)
    path.write_bytes(header + bytes(-len(header) % _ALIGN) + data)
    return path


def _tensors(vocabulary: int, dice: random.Random) -> list[tuple[str, tuple[int, ...], bytes]]:
    def drawn(*shape: int, loud: int = -1) -> tuple[tuple[int, ...], bytes]:
        rows = math.prod(shape) // shape[0]
        values = [dice.gauss(0, 1.5 if row == loud else 0.3) for row in range(rows) for _ in range(shape[0])]
        return shape, struct.pack(f"<{len(values)}f", *values)

    # A quotation mark is likely everywhere: free strings end soon, and tests with them.
    output = drawn(_EMBED, vocabulary, loud=ord('"'))
    ones = ((_EMBED,), struct.pack(f"<{_EMBED}f", *([1.0] * _EMBED)))
    named = {
        "token_embd": drawn(_EMBED, vocabulary),
        "output_norm": ones,
        "output": output,
    }
    for layer in range(_LAYERS):
        block = f"blk.{layer}"
        named |= {f"{block}.attn_norm": ones, f"{block}.ffn_norm": ones}
        named |= {f"{block}.attn_{part}": drawn(_EMBED, _EMBED) for part in ("q", "k", "v", "output")}
        named |= {f"{block}.ffn_{part}": drawn(_EMBED, _FEED) for part in ("gate", "up")}
        named[f"{block}.ffn_down"] = drawn(_FEED, _EMBED)
    return [(f"{name}.weight", shape, values) for name, (shape, values) in named.items()]


def _shown(byte: int) -> str:
    """Return how byte vocabularies write a byte: printable ones as themselves, others from U+0100 on."""
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [b for b in range(256) if b not in plain]
    return chr(byte) if byte in plain else chr(0x100 + others.index(byte))


def _text(text: str) -> bytes:
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def _key(name: str) -> bytes:
    return _text(name)


def _string(name: str, value: str) -> bytes:
    return _key(name) + struct.pack("<I", _STRING) + _text(value)


def _uint(name: str, value: int) -> bytes:
    return _key(name) + struct.pack("<II", _UINT32, value)


def _array(name: str, kind: int, items: list[bytes]) -> bytes:
    return _key(name) + struct.pack("<IIQ", _ARRAY, kind, len(items)) + b"".join(items)
