"""The loop: model → tools → model …, until there is an answer or a limit (AG-38 … AG-53).

Here: the order of one iteration, what an answer means for the turn (`next_after`, pure), and how a run ends.
Not here: any I/O or persistence (events are yielded, the consumer stores them), one call of a model
(`model_call`), a batch of tools (`tool_batch`), summaries (`summarise`), structured answers (`structured`).

A consumer commits each step event before it asks for the next one; closing the generator closes the model's
stream and stops the tools.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Literal

from bowerbird.agent.context.compaction import sent_tokens
from bowerbird.agent.limits import KEEP_RESULTS
from bowerbird.agent.stop import Stopped
from bowerbird.agent.turn import TurnRun
from bowerbird.agent.turn_loop.flow import Flow, flatten
from bowerbird.agent.turn_loop.model_call import call_model, make_room
from bowerbird.agent.turn_loop.model_step import Ask
from bowerbird.agent.turn_loop.state import HINT_AT, Reply, Turn, with_totals
from bowerbird.agent.turn_loop.stuck import judge
from bowerbird.core.events import Injected, ModeChange, Notice, RunError, RunEvent, UserStep
from bowerbird.core.messages import user_text

MOST_CONTINUATIONS = 3

Next = Literal["tools", "answer", "continue", "truncated", "ask_again", "silent", "refused", "overflow"]

CONTINUE = "Your answer was cut at the output limit. Continue exactly where it ended; repeat nothing."
GO_ON = "You paused. Go on exactly where you ended; repeat nothing."
ASK_AGAIN = "Your reply was empty. Answer now, or call a tool."

REPEATING = (
    "You have made the same calls with the same results several times; they will not change. Do something "
    "different: another tool, other arguments, or answer with what you know."
)

WRAP_UP = (
    "Only {left} model calls are left in this run. Finish what is under way, start nothing new, and give "
    "the answer."
)

KEPT = (
    "{model} checks that nothing before its reasoning changed, so keep_results 0 counts as {share}: results "
    "of tools are sent whole until that part of the window is full"
)

_ASK = (
    "Stop here: {why}. Do not call tools. Answer the user as far as you can, and say what is done and what "
    "is still open."
)
_WHY = {"max_iterations": "all model calls of this run are used", "stuck": "the same calls keep repeating"}


def next_after(reply: Reply, continuations: int, asked_again: bool) -> Next:
    """Return what follows `reply`.

    Args:
        reply: a complete answer.
        continuations: how often this turn went on after a cut already.
        asked_again: whether an empty reply was answered by asking again already.
    """
    if reply.stop_reason == "refusal":
        return "refused"
    if reply.stop_reason == "context_overflow":
        return "overflow"
    cut = reply.stop_reason == "max_tokens"
    if reply.message.tool_uses:
        cut_call = cut and bool(reply.invalid_calls)
        return "truncated" if cut_call and continuations >= MOST_CONTINUATIONS else "tools"
    if reply.stop_reason == "paused":
        return "continue"
    if cut:
        return "truncated" if continuations >= MOST_CONTINUATIONS else "continue"
    if not reply.message.text.strip():
        return "silent" if asked_again else "ask_again"
    return "answer"


async def run_turn(run: TurnRun) -> AsyncGenerator[RunEvent, None]:
    """Run one turn and yield its events; the last one is `Done`. Use with `aclosing`.

    Failures of the model and of tools are events, not exceptions.

    Args:
        run: everything the turn needs.

    Raises:
        ConfigError: the model's key or price is missing.
        Exception: what an approver, inbox or budget raises, after stream and tools are stopped.

    Example:
        async with aclosing(run_turn(run)) as events:
            async for event in events:
                await store(event)
    """
    turn = Turn(run)
    limit = run.limits.deadline_s
    alarm = asyncio.get_running_loop().call_later(limit, turn.stop.set, "deadline") if limit else None
    try:
        async with aclosing(flatten(_until_done(turn))) as events:
            async for event in events:
                turn.record(event)
                yield event
    except Stopped as stopped:
        turn.finish(stopped.reason, turn.said())
    finally:
        if alarm is not None:
            alarm.cancel()
        turn.stop.detach()
    assert turn.done is not None, "the loop ends with a decision"
    yield with_totals(turn.done, turn.usage, turn.steps)


async def _until_done(turn: Turn) -> Flow:
    for message in turn.run.new:
        yield UserStep(message)
    is_first = bool(turn.run.new) and not turn.run.history.messages
    told = await turn.stop.guard(turn.run.opening()) if is_first and turn.run.opening is not None else ""
    if told:
        yield Injected("runtime", user_text(told))
    limits, info = turn.run.limits, turn.model.info
    if not limits.keep_results and info.checks_history and not _has_answers(turn):
        yield Notice("keep_results", KEPT.format(model=info.model, share=KEEP_RESULTS))
    if turn.run.more_tools is not None:
        for warning in turn.take_tools(await turn.stop.guard(turn.run.more_tools.gather())):
            yield Notice("tools", warning)
    if turn.history.pending_calls:
        yield _tools(turn)
    while turn.done is None:
        yield _iteration(turn)


def _has_answers(turn: Turn) -> bool:
    return any(message.role == "assistant" for message in turn.run.history.messages)


async def _iteration(turn: Turn) -> Flow:
    turn.stop.check()
    if turn.run.notices is not None and (news := await turn.stop.guard(turn.run.notices.poll())):
        for notice in news:
            yield notice
        await turn.run.notices.told()
    if turn.run.inbox is not None:
        for arrived in await turn.stop.guard(turn.run.inbox.poll()):
            yield arrived
    yield _room(turn)
    if turn.iterations_left <= 0:
        yield summary_without_tools(turn, "max_iterations")
        return
    if turn.iterations_left <= HINT_AT and not turn.run.one_step and not turn.hinted:
        turn.hinted = True
        yield Injected("runtime", user_text(WRAP_UP.format(left=turn.iterations_left)))
    yield call_model(turn, Ask())
    reply = turn.reply
    if turn.done is not None or reply is None:
        return
    if turn.run.one_step:
        turn.finish("awaiting_tools" if reply.message.tool_uses else "completed", reply.message.text)
        return
    yield _after(turn, reply)


async def _room(turn: Turn) -> Flow:
    """Summarise old messages when someone asked for it or the window fills."""
    focus, turn.compact_focus = turn.compact_focus, None
    if focus is not None:
        from bowerbird.agent.turn_loop.summarise import compact

        before = len(turn.history.compactions)
        yield compact(turn, turn.compact_by, focus)
        if turn.compact_by == "user" and len(turn.history.compactions) == before:
            # The wish is granted, or it would stand until some later turn is summarised unasked.
            yield ModeChange({"compact": None}, "user")
            yield Notice("compact_skipped", "there is nothing to summarise yet")
        return
    threshold = turn.run.limits.compact_threshold * turn.window
    if turn.history.last_context > threshold or sent_tokens(turn.view()) > threshold:
        from bowerbird.agent.turn_loop.summarise import compact

        yield compact(turn, "auto")


async def _after(turn: Turn, reply: Reply) -> Flow:
    """Do what an answer asks for: run its tools, end, or ask once more."""
    text = reply.message.text
    following = next_after(reply, turn.continuations, turn.asked_again)
    if following in ("tools", "truncated") and reply.message.tool_uses:
        turn.continuations += bool(reply.stop_reason == "max_tokens" and reply.invalid_calls)
        yield _tools(turn)
        if following == "truncated" and turn.done is None:
            turn.finish("truncated", turn.text_so_far(text))
    elif following == "continue":
        is_pause = reply.stop_reason == "paused"
        turn.continuations += not is_pause
        turn.pieces.append(text)
        yield Injected("runtime", user_text(GO_ON if is_pause else CONTINUE))
    elif following == "ask_again":
        turn.asked_again = True
        yield Injected("runtime", user_text(ASK_AGAIN))
    elif following == "overflow":
        yield make_room(turn, "the provider says that the context is too long")
    elif following == "silent":
        error = RunError("ModelError", "the model gave an empty reply twice", retryable=True)
        turn.finish("model_error", turn.text_so_far(), error)
    elif following == "answer":
        yield _answer(turn, turn.text_so_far(text))
    else:
        turn.finish("refused" if following == "refused" else "truncated", turn.text_so_far(text))


async def _answer(turn: Turn, text: str) -> Flow:
    if turn.mode == "plan":
        turn.finish("plan_ready", text)
    elif turn.run.output is not None:
        from bowerbird.agent.turn_loop.structured import structured_answer

        yield structured_answer(turn, turn.run.output, text)
    else:
        turn.finish("completed", text)


async def _tools(turn: Turn) -> Flow:
    """Run the calls that have no result yet, then decide whether the run can go on."""
    from bowerbird.agent.turn_loop.tool_batch import run_batch

    turn.pieces.clear()
    yield run_batch(turn, turn.history.pending_calls)
    if turn.waiting is not None:
        turn.finish(turn.waiting, turn.said())
    elif turn.plan is not None and turn.mode == "plan":
        turn.finish("plan_ready", turn.plan)
    elif turn.ending:
        turn.finish("completed", turn.said())
    else:
        verdict = judge(turn.rounds)
        if verdict == "warn":
            yield Injected("runtime", user_text(REPEATING))
        elif verdict == "stop":
            yield summary_without_tools(turn, "stuck")


async def summary_without_tools(turn: Turn, stop: Literal["max_iterations", "stuck"]) -> Flow:
    """End the run with `stop` after one more call without tools."""
    yield Injected("runtime", user_text(_ASK.format(why=_WHY[stop])))
    yield call_model(turn, Ask(tools=False))
    text = turn.reply.message.text if turn.reply is not None else ""
    turn.finish(stop, text.strip() or _what_ran(turn, stop))


def _what_ran(turn: Turn, stop: str) -> str:
    ran = Counter(turn.tools_started)
    tools = ", ".join(f"{name} × {count}" if count > 1 else name for name, count in ran.items())
    return f"Stopped: {_WHY[stop]}, and no summary could be made. Tools that ran: {tools or 'none'}."
