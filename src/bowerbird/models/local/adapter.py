"""The embedded model as a `Model` (MO-9, MO-37, MO-38).

Here: `LocalModel`, the face of an engine that others see. Not here: one request's way through the
engine (`exchange.py`), which weights a name means (`opening.py`).
"""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing

from bowerbird.core.requests import ModelEvent, ModelInfo, ModelRequest, Start, ToolSpec
from bowerbird.models.local.choices import offered_tools
from bowerbird.models.local.engine import Engine
from bowerbird.models.local.exchange import Exchange

WARM_TOOLS = ("read_file", "list_files", "search_files", "write_file", "edit_file", "run_python_code")


class LocalModel:
    """A weights file as a `Model`. Engines are shared: close the model, not the engine.

    Args:
        engine: the weights, loaded at the first request.
        info: what it can do; `small` marks it in every door.
        all_tools: offer every tool of a request instead of its eight.
        on_close: called once when the model is closed.

    Example:
        model = open_local("default", settings)
        end = await complete(model, ModelRequest((user_text("Where is the port set?"),), tools=specs))
    """

    def __init__(
        self,
        engine: Engine,
        info: ModelInfo,
        *,
        all_tools: bool = False,
        on_close: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self._engine = engine
        self._info = info
        self._all_tools = all_tools
        self._on_close = on_close
        self._sorted: dict[str, str] = {}

    @property
    def info(self) -> ModelInfo:
        """What the model can do."""
        return self._info

    async def warm(self, request: ModelRequest | None = None) -> None:
        """Load the weights and evaluate the beginning that every step shares (about 5 s, once).

        Args:
            request: whose system text and tools; None = the usual tools and no system text.

        Raises:
            ModelError: kind `local`; the weights cannot be loaded.
        """
        wanted = request or ModelRequest((), tools=tuple(ToolSpec(name, "", {}) for name in WARM_TOOLS))
        await self._exchange(wanted).warm()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """Answer with one step: text, or one tool call. See `Model.stream`."""
        yield Start(self._info.name)
        async with aclosing(self._exchange(request).events()) as events:
            async for event in events:
                yield event

    async def aclose(self) -> None:
        """Give the engine back; the last user of a weights file unloads it. May be called twice."""
        on_close, self._on_close = self._on_close, None
        if on_close is not None:
            await on_close()

    def _exchange(self, request: ModelRequest) -> Exchange:
        tools = offered_tools(request.tools, request.tool_choice, self._all_tools)
        return Exchange(self._engine, self._info, request, tools, self._sorted)
