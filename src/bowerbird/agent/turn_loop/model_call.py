"""A model call as a step of the turn: room for it, the stream, what its failure means.

Here: budget → stream → settle, overflow, provider failures (AG-44, AG-56, MO-32). Not here: the
request and the stream's events (`model_step`), what the answer means (`continuation`).
"""

from bowerbird.agent.turn_loop.flow import Flow
from bowerbird.agent.turn_loop.model_step import Ask, build_request, expected_usage, stream_reply
from bowerbird.agent.turn_loop.spending import afford, settle
from bowerbird.agent.turn_loop.state import Turn
from bowerbird.agent.turn_loop.summarise import compact, too_large
from bowerbird.core.errors import ModelError
from bowerbird.core.events import RunError

MOST_OVERFLOWS = 2  # summaries after "context too long" before the run gives up


async def call_model(turn: Turn, ask: Ask) -> Flow:
    """Ask once. Afterwards `turn.reply` is the answer, or None: then the run has ended (`turn.done`),
    or room was made and the loop goes round again."""
    turn.reply = None
    request = await build_request(turn, ask)
    yield afford(turn, request, expected_usage(request, turn.cached, turn.sent_tokens))
    if turn.done is not None or turn.request is None:
        return
    turn.iterations += 1
    try:
        yield stream_reply(turn, turn.request)
    except ModelError as error:
        if error.kind == "context_overflow":
            yield make_room(turn, str(error))
        else:
            report(turn, error)
    finally:
        await settle(turn)


async def make_room(turn: Turn, message: str) -> Flow:
    """Summarise after the provider said that the context is too long; end the run if that cannot help."""
    turn.reply = None
    turn.iterations -= 1
    turn.overflows += 1
    problem = too_large(turn)
    before = len(turn.history.compactions)
    if problem is None and turn.overflows <= MOST_OVERFLOWS:
        yield compact(turn, "overflow")
    if len(turn.history.compactions) == before:
        turn.finish("model_error", turn.text_so_far(), RunError("ModelError", problem or message))


def report(turn: Turn, error: ModelError) -> None:
    """End the run with the provider's failure."""
    failure = RunError(type(error).__name__, str(error), error.retryable)
    turn.finish("refused" if error.kind == "refused" else "model_error", turn.said(), failure)
