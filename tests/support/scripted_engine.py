"""An engine that says what a test wrote, so that everything around the weights is real."""

from collections.abc import AsyncGenerator
from typing import Any

from bowerbird.core.requests import ModelInfo
from bowerbird.models.local import LocalModel
from bowerbird.models.local.engine import Piece
from bowerbird.models.local.generation import Counts, Generation

INFO = ModelInfo(
    provider="local", model="scripted", context_window=16_384, max_output_tokens=2_048, images=False,
    parallel_tools=False, constrained_output=True, cache=True, priced=True, small=True,
)  # fmt: skip


class ScriptedEngine:
    """Answers each generation with the next of `replies`; `asked` keeps what it was asked."""

    def __init__(self, *replies: str) -> None:
        self.replies = list(replies)
        self.asked: list[Generation] = []

    async def generate(self, generation: Generation) -> AsyncGenerator[Piece, None]:
        """See `Engine.generate`."""
        self.asked.append(generation)
        yield Piece(self.replies.pop(0))
        yield Piece(finish="stop", counts=Counts(10, 0, 5))


def scripted(*replies: str) -> tuple[LocalModel, ScriptedEngine]:
    """Return the embedded model with these words in its mouth, and the engine that says them."""
    engine: Any = ScriptedEngine(*replies)
    return LocalModel(engine, INFO), engine
