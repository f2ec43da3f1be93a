"""Tokens counted without a tokenizer: for reservations, and where a provider reports no usage (MO-14).

Here: estimates that err on the high side. Not here: prices, budgets.
"""

from collections.abc import Iterable

import msgspec

from bowerbird.core.messages import ImageBlock, Message, ToolResultBlock, block_to_data
from bowerbird.core.requests import ModelRequest

BYTES_PER_TOKEN = 3  # English has about 4, code and other scripts about 3
IMAGE_TOKENS = 1_600
_PER_MESSAGE = 8


def estimate_text(text: str) -> int:
    """Return how many tokens `text` has at most, roughly."""
    return (len(text.encode("utf-8", "surrogatepass")) + BYTES_PER_TOKEN - 1) // BYTES_PER_TOKEN


def estimate_messages(messages: Iterable[Message]) -> int:
    """Return an estimate of the tokens of `messages`."""
    total = 0
    for message in messages:
        total += _PER_MESSAGE
        for block in message.content:
            if isinstance(block, ImageBlock):
                total += IMAGE_TOKENS
                continue
            data = block_to_data(block)
            if isinstance(block, ToolResultBlock):
                data.pop("data", None)  # never sent
                if not isinstance(block.content, str):
                    total += IMAGE_TOKENS * sum(isinstance(part, ImageBlock) for part in block.content)
            total += estimate_text(repr(data))
    return total


def estimate_request(request: ModelRequest) -> int:
    """Return an estimate of the input tokens of `request`: tools, system, messages."""
    tools = msgspec.json.encode(request.tools).decode() if request.tools else ""
    return (
        estimate_text(tools)
        + sum(estimate_text(text) for text in request.system)
        + estimate_messages(request.messages)
    )
