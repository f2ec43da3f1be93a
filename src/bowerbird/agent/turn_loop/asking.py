"""Questions to a person while a batch runs: approvals, `ask_user`, what running calls ask (AG-62, AG-63).

Here: requests, the tasks that wait for their answers, what an answer means in words. Not here: how
long is waited and through which door (`turn.Approver`), what runs after a yes (`tool_batch`).
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, cast

import msgspec

from bowerbird.agent.always import DECISIONS, rules_for
from bowerbird.agent.policy import Rule
from bowerbird.agent.turn import Approver
from bowerbird.agent.turn_loop.arguments import Prepared
from bowerbird.core.events import ApprovalAnswer, ApprovalRequest, ToolOutcome
from bowerbird.core.ids import new_id
from bowerbird.core.messages import TextBlock
from bowerbird.tools.control import AskUser
from bowerbird.tools.files.patches import diff_before

if TYPE_CHECKING:
    from bowerbird.workspace import Branch

APPROVE = frozenset(("approve", "auto_approve", "run_again", *DECISIONS))
DENIED = "User denied this tool call"
EDITED = "The user changed the command. What ran: {}"
NOBODY = "denied: nobody can answer here ({reason})"
DECLINED = "The user does not want to answer this question"


class Wanted(msgspec.Struct, frozen=True, eq=False):
    """A running call asks a person; `said` gets the words of the answer, None when there was none."""

    request: ApprovalRequest
    said: "asyncio.Future[str | None]"


class Answered(msgspec.Struct, frozen=True):
    """The end of one wait: an answer, None when the time ran out, or the door's own failure."""

    request: ApprovalRequest
    answer: ApprovalAnswer | None
    failure: Exception | None = None


class Questions:
    """Open questions of a batch, each waited for by a task. `close` must be called."""

    def __init__(self, approver: Approver | None, report: Callable[[Answered], None]) -> None:
        self._approver = approver
        self._report = report
        self._open: dict[str, asyncio.Task[None]] = {}

    def __bool__(self) -> bool:
        return bool(self._open)

    def ask(self, request: ApprovalRequest) -> None:
        """Start waiting for the answer to `request`, whose event was committed."""
        self._open[request.id] = asyncio.create_task(self._wait(request), name=f"ask {request.kind}")

    def closed(self, answered: Answered) -> bool:
        """Forget a question whose end was reported; raises what its door raised.

        Returns:
            Whether someone still waited for it: False after `withdraw`.
        """
        if self._open.pop(answered.request.id, None) is None:
            return False
        if answered.failure is not None:
            raise answered.failure
        return True

    def withdraw(self, request_id: str) -> None:
        """Stop waiting for an answer that nobody needs any more."""
        self._open.pop(request_id).cancel()

    def close(self) -> None:
        """Stop waiting."""
        for task in self._open.values():
            task.cancel()

    async def _wait(self, request: ApprovalRequest) -> None:
        assert self._approver is not None, "nothing is asked where nobody can answer"
        try:
            answer = await self._approver.ask(request)
        except Exception as error:  # noqa: BLE001 - raised again by `closed` in the task of the loop
            self._report(Answered(request, None, error))
        else:
            self._report(Answered(request, answer))


async def approval(asking: Sequence[Prepared], branch: "Branch | None") -> ApprovalRequest:
    """Return one request for all asking calls of a batch.

    A change of files comes with its `diff`, a call that can always be allowed with the `rules` for that.
    """
    more: dict[str, dict[str, Any]] = {}
    for p in asking:
        rules = [str(rule) for rule in rules_of([p])]
        more[p.call.id] = {"rules": rules} if rules else {}
        if branch is not None:
            more[p.call.id] |= await diff_before(p.name, p.arguments or {}, branch)
    return ApprovalRequest(
        id=new_id("r"),
        kind="approval",
        calls=tuple(p.call.id for p in asking),
        tools=tuple(
            {"name": p.name, "input": dict(p.arguments or {}), "id": p.call.id, **more[p.call.id]}
            for p in asking
        ),
    )


def rules_of(asking: Sequence[Prepared]) -> tuple[Rule, ...]:
    """Return what "always" means for these calls."""
    return tuple(rule for p in asking for rule in rules_for(p.name, p.arguments or {}))


def question(outcome: ToolOutcome, ask: AskUser) -> ApprovalRequest:
    """Return the request of an `ask_user` call."""
    tool = {"name": outcome.tool, "input": {"options": list(ask.options)}, "id": outcome.call}
    return ApprovalRequest(new_id("r"), "user", (outcome.call,), (tool,), ask.question)


def wanted(call: str, tool: str, text: str, options: Sequence[str]) -> ApprovalRequest:
    """Return the request of a running call that needs a person's word."""
    about = {"name": tool, "input": {"options": list(options)}, "id": call}
    return ApprovalRequest(new_id("r"), "user", (call,), (about,), text)


def unanswered(request: ApprovalRequest) -> ApprovalAnswer:
    """Return what closes a request of a running call that nobody answered."""
    return ApprovalAnswer(request.id, "deny", "system", "nobody answered in time")


def with_edit(outcome: ToolOutcome, command: str) -> ToolOutcome:
    """Return an outcome that says what ran in place of the model's own command."""
    note = EDITED.format(command)
    said = outcome.content
    content = f"{note}\n{said}" if isinstance(said, str) else [TextBlock(note), *said]
    return msgspec.structs.replace(outcome, content=content)


def answered(outcome: ToolOutcome, options: Sequence[str], answer: ApprovalAnswer) -> ToolOutcome:
    """Return the result of an `ask_user` call: the words, or that there are none.

    `deny` is an answer only where the agent offered that very word.

    Args:
        outcome: of the call. options: that the agent offered.
    """
    if is_declined(options, answer):
        text = f"{DECLINED}: {answer.feedback}" if answer.feedback else f"{DECLINED}."
        return msgspec.structs.replace(outcome, status="denied", content=text, data={"error": text})
    said = answer.feedback or answer.decision
    return msgspec.structs.replace(outcome, status="ok", content=said, data={"answer": said})


def options_of(request: ApprovalRequest) -> Sequence[str]:
    """Return the answers that a question offers."""
    options: object = request.tools[0].get("input", {}).get("options") if request.tools else None
    return cast("Sequence[str]", options) if isinstance(options, list) else ()


def is_declined(options: Sequence[str], answer: ApprovalAnswer) -> bool:
    """Return whether a question was left without an answer."""
    return answer.decision == "deny" and "deny" not in options


def denial(answer: ApprovalAnswer) -> str:
    """Return what a denied call's result says."""
    return f"{DENIED}: {answer.feedback}" if answer.feedback else DENIED
