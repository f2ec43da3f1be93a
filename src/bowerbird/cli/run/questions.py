"""Questions of a turn at the prompt (UI-56, UI-71): the next lines are the answer.

Here: what is shown before a question, and its lines until they make an answer. Not here: what a line means
(`turn/dialogue.py`), reading lines (`chat.py`).
"""

from typing import TYPE_CHECKING

from bowerbird.cli.turn.answer import Answer
from bowerbird.cli.turn.asking import question_lines, styled_question
from bowerbird.cli.turn.dialogue import Dialogue
from bowerbird.core.events import ApprovalRequest

if TYPE_CHECKING:
    from bowerbird.cli.run.chat import Chat


async def answered(chat: "Chat", request: ApprovalRequest) -> Answer | None:
    """Put a question to the person; None when the turn was stopped instead."""
    screen = chat.screen
    screen.set_aside()
    screen.notifier.tell("a plan waits for you" if request.kind == "plan" else "the agent asks you something")
    screen.line("")
    if request.kind == "plan":
        screen.line("Plan:", "yellow")
        screen.answer(chat.markdown.paint(request.text, screen.width))
        screen.line(question_lines(request)[-1], "yellow")
    else:
        for text, style in styled_question(request, screen.width):
            screen.line(text, style)
    try:
        return await _by_lines(chat, request)
    finally:
        screen.notifier.begin()
        screen.give_back()


async def _by_lines(chat: "Chat", request: ApprovalRequest) -> Answer | None:
    dialogue = Dialogue(request)
    while not chat.stopping:
        line = await chat.ask(dialogue.question, dialogue.text)
        if chat.stopping:
            return None
        reply = dialogue.reply(line)
        if isinstance(reply, Answer):
            return reply
        for text in reply:
            chat.screen.line(text, "yellow" if len(reply) == 1 else "")
    return None
