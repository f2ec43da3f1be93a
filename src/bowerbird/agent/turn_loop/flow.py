"""Steps that consist of steps: generators that yield events and further generators.

Here: how such nested generators become one flat stream, without a layer of delegation per event, and
are closed in order whatever happens. Not here: any step.

`yield other(turn)` inside a step runs `other` to its end there; what it raises is raised at that
`yield`, so a step can catch the failures of the steps it consists of.
"""

from collections.abc import AsyncGenerator
from types import AsyncGeneratorType
from typing import TypeAlias, cast

from bowerbird.core.events import RunEvent

Flow: TypeAlias = "AsyncGenerator[RunEvent | Flow, None]"


async def flatten(root: Flow) -> AsyncGenerator[RunEvent, None]:
    """Yield the events of `root` and of every step it yields, in order. Use with `aclosing`."""
    stack: list[Flow] = [root]
    failure: BaseException | None = None
    try:
        while stack:
            top = stack[-1]
            try:
                event = await (anext(top) if failure is None else top.athrow(failure))
            except StopAsyncIteration:
                stack.pop()
                failure = None
                continue
            except BaseException as error:  # noqa: BLE001 - handed to the step that yielded this one
                stack.pop()
                failure = error
                continue
            failure = None
            if type(event) is AsyncGeneratorType:
                stack.append(cast("Flow", event))
            else:
                yield cast("RunEvent", event)
        if failure is not None:
            raise failure
    finally:
        for step in reversed(stack):
            await step.aclose()
