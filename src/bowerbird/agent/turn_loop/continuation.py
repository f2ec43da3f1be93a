"""What an answer means for the turn: one pure decision (AG-36, AG-42, AG-52).

Here: tools next, done, go on after a cut, ask again. Not here: doing it (`loop`).
"""

from typing import Literal

from bowerbird.agent.turn_loop.state import Reply

MOST_CONTINUATIONS = 3

Next = Literal["tools", "answer", "continue", "truncated", "ask_again", "silent", "refused", "overflow"]

CONTINUE = "Your answer was cut at the output limit. Continue exactly where it ended; repeat nothing."
ASK_AGAIN = "Your reply was empty. Answer now, or call a tool."


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
    if cut:
        return "truncated" if continuations >= MOST_CONTINUATIONS else "continue"
    if not reply.message.text.strip():
        return "silent" if asked_again else "ask_again"
    return "answer"
