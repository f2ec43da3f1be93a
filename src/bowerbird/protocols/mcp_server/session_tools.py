"""Tools over sessions: made, asked, watched, stopped, answered (PT-12).

Here: their arguments and results. Not here: sessions (`sessions`), their changes (`branch_tools.py`).
"""

import asyncio
import contextlib
import hashlib
from typing import Any

from bowerbird.core.errors import InvalidWorkspace
from bowerbird.core.threads import to_thread
from bowerbird.protocols.mcp_server import results
from bowerbird.protocols.mcp_server.ground import McpCaller, McpGround
from bowerbird.protocols.mcp_server.owned import owned_session
from bowerbird.protocols.mcp_server.tool import THREAD, Call, McpTool, Result, output, parameters, text
from bowerbird.sessions import shown
from bowerbird.sessions.values import TurnInfo

DOOR = "mcp"
LONGEST_WAIT_S = 600
MESSAGES = 20
PAGE = 100
_OPEN = ("queued", "running")
_OBJECT = {"type": "object"}
_STATE = {"type": "string"}
_NAMES = {"type": "array", "items": {"type": "string"}}


def session_tools(ground: McpGround) -> tuple[McpTool, ...]:
    """Return the tools over sessions."""
    tools = _SessionTools(ground)
    return (
        McpTool(
            name="session_create",
            title="Begin a session",
            description="Begin a session of Bowerbird's own agent on a branch of a workspace.",
            parameters=parameters(
                preset=text("Preset of instructions; leave it out for the usual one.", most=200),
                workspace=text("Workspace by name; leave it out for the usual one.", most=4096),
            ),
            output=output(thread_id={"type": "string"}),
            run=tools.create,
        ),
        McpTool(
            name="session_send",
            title="Say something in a session",
            description=(
                "Send a message to a session's agent. It is queued and answered in order, also when the "
                "caller leaves; with wait_s the answer is waited for. The agent works on a branch."
            ),
            parameters=parameters(
                ("thread_id", "content"),
                thread_id=THREAD,
                content=text("The message.", least=1),
                dedupe_key=text("The same key again is the same message; nothing runs twice.", most=255),
                wait_s={
                    "type": "number",
                    "minimum": 0,
                    "maximum": LONGEST_WAIT_S,
                    "default": 0,
                    "description": "Longest wait for the end of the turn, in seconds.",
                },
            ),
            output=output(
                turn_id={"type": "string"}, state=_STATE, answer={"type": "string"}, changes=_NAMES
            ),
            run=tools.send,
            open_world=True,
        ),
        McpTool(
            name="session_status",
            title="Look at a session",
            description="Return a session's state, newest messages, pending request, changes and cost.",
            parameters=parameters(
                ("thread_id",),
                thread_id=THREAD,
                after={
                    "type": "integer",
                    "minimum": 0,
                    "description": "Only messages after this cursor, oldest first.",
                },
            ),
            output=output(state=_STATE, messages={"type": "array", "items": _OBJECT}, changes=_NAMES),
            run=tools.status,
            needs="viewer",
            read_only=True,
            idempotent=True,
        ),
        McpTool(
            name="session_list",
            title="List sessions",
            description="List the caller's own sessions, the most recently used first, 100 at a time.",
            parameters=parameters(after=text("Id of the last session of the page before.", most=200)),
            output=output(sessions={"type": "array", "items": _OBJECT}, more={"type": "boolean"}),
            run=tools.list_sessions,
            needs="viewer",
            read_only=True,
            idempotent=True,
        ),
        McpTool(
            name="session_cancel",
            title="Stop a session's turn",
            description="Stop the turn that runs or waits in a session; finished work is kept.",
            parameters=parameters(("thread_id",), thread_id=THREAD),
            output=output(turn_id={"type": "string"}),
            run=tools.cancel,
        ),
        McpTool(
            name="session_answer",
            title="Answer an agent's question",
            description=(
                "Answer the approval or question that a session waits for, as session_status shows it: "
                "approve, deny or auto_approve for a tool; approve or reject for a plan; "
                "any words for a question."
            ),
            parameters=parameters(
                ("thread_id", "decision"),
                thread_id=THREAD,
                decision=text("The answer.", most=10_000, least=1),
                request_id=text("Id of the request, where several wait.", most=200),
                feedback=text("A remark, or what a plan should be instead.", most=10_000),
            ),
            output=output(),
            run=tools.answer,
        ),
    )


class _SessionTools:
    def __init__(self, ground: McpGround) -> None:
        self._ground = ground
        self._sessions = ground.sessions

    async def create(self, call: Call) -> Result:
        """Make a session."""
        places = self._ground.places
        new = await to_thread(places.new_session, call.caller, call.text("preset"), call.text("workspace"))
        made = await self._sessions.create(new)
        return results.success(thread_id=made.thread_id)

    async def send(self, call: Call) -> Result:
        """Accept a message, and wait as long as the caller wants."""
        caller, thread_id = call.caller, str(call.arguments["thread_id"])
        row = await owned_session(self._ground, caller, thread_id)
        await self._ground.places.drive(row.thread_id)
        receipt = await self._sessions.submit(
            row.thread_id,
            str(call.arguments["content"]),
            door=DOOR,
            sender={"id": caller.owner, "name": caller.owner, "door": DOOR},
            dedupe_key=_own_key(caller, row.thread_id, call.text("dedupe_key")),
        )
        wait_s = float(call.arguments.get("wait_s", 0)) if receipt.open_request is None else 0
        turn = await self._waited(receipt.turn_id, wait_s)
        if turn.state in _OPEN:
            found = results.success(turn_id=turn.turn_id, state=turn.state)
            return found | ({"open_request": receipt.open_request} if receipt.open_request else {})
        said = await shown.answered(self._sessions, turn)
        answer = await to_thread(self._ground.redact, str(said["text"]))
        changes = await self._changes(row.thread_id)
        found = results.success(
            turn_id=turn.turn_id,
            state=turn.state,
            stop_reason=turn.stop_reason,
            answer=answer,
            changes=changes,
        )
        if said["request"] is not None:
            found["request"] = said["request"]
        if said["error"] is not None:
            found["error"] = results.details(str(said["error"].get("message", "")), self._ground.redact)
        return found

    async def _waited(self, turn_id: str, wait_s: float) -> TurnInfo:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(wait_s):
                return await self._sessions.wait(turn_id)
        return await self._sessions.turn(turn_id)

    async def status(self, call: Call) -> Result:
        """Return how a session stands."""
        row = await owned_session(self._ground, call.caller, str(call.arguments["thread_id"]))
        thread_id, after = row.thread_id, call.arguments.get("after")
        turns = await self._sessions.turns(thread_id)
        if after is None:
            messages = (await self._sessions.messages(thread_id))[-MESSAGES:]
        else:
            messages = await self._sessions.messages(thread_id, after=int(after), limit=PAGE)
        pending = await self._sessions.pending(thread_id)
        tokens = await self._sessions.tokens(thread_id)
        state = next((t.state for t in turns if t.state in (*_OPEN, "waiting")), None)
        return results.success(
            thread_id=thread_id,
            title=row.title,
            state=state or (turns[-1].state if turns else "idle"),
            stop_reason=turns[-1].stop_reason if turns and state is None else None,
            messages=[
                {
                    "cursor": m.cursor,
                    "role": m.role,
                    "content": self._ground.redact(m.content),
                    "at": m.created_at,
                }
                for m in messages
            ],
            pending=[shown.question(request) for request in pending],
            changes=await self._changes(thread_id),
            cost=tokens.cost,
            cursor=row.last_seq,
        )

    async def list_sessions(self, call: Call) -> Result:
        """List the caller's own sessions."""
        caller, after = call.caller, call.text("after")
        if after is not None:
            await owned_session(self._ground, caller, after)
        found, more = await own_sessions(self._ground, caller, after)
        return results.success(sessions=found, more=more)

    async def cancel(self, call: Call) -> Result:
        """Stop a turn."""
        row = await owned_session(self._ground, call.caller, str(call.arguments["thread_id"]))
        return results.success(turn_id=await self._sessions.cancel(row.thread_id))

    async def answer(self, call: Call) -> Result:
        """Answer a pending request of this very session."""
        caller = call.caller
        row = await owned_session(self._ground, caller, str(call.arguments["thread_id"]))
        await self._ground.places.drive(row.thread_id)
        await self._sessions.answer(
            call.text("request_id"),
            str(call.arguments["decision"]),
            thread_id=row.thread_id,
            feedback=call.text("feedback"),
            by=caller.user_id or DOOR,
            door=DOOR,
            authority=caller.authority,
        )
        return results.success()

    async def _changes(self, thread_id: str) -> list[str]:
        try:
            branch = await self._sessions.branch(thread_id)
            return list((await to_thread(branch.changes, ignored=False)).paths)
        except InvalidWorkspace:  # its directory is gone: what is said of the turn stays true
            return []


async def own_sessions(
    ground: McpGround, caller: McpCaller, after: str | None
) -> tuple[list[dict[str, Any]], bool]:
    """Return a page of the caller's own sessions, the last used first, and whether there are more."""
    rows: list[dict[str, Any]] = []
    at = after
    while len(rows) <= PAGE:
        page = await ground.sessions.list(owner=caller.owner, before=at, limit=PAGE + 1)
        # Without a user the list is everybody's: those of people who sign in are not the local owner's.
        rows += [_listed(info) for info in page if info.owner == caller.owner]
        if len(page) <= PAGE:
            break
        at = page[-1].thread_id
    return rows[:PAGE], len(rows) > PAGE


def _listed(info: Any) -> dict[str, Any]:
    found = shown.listed(info)
    return {"thread_id": found.pop("id"), **found}


def _own_key(caller: McpCaller, thread_id: str, key: str | None) -> str | None:
    """Return a key that is this caller's in this session only."""
    if key is None:
        return None
    words = "\0".join((caller.user_id, thread_id, key))
    return "key_" + hashlib.sha256(words.encode("utf-8", "surrogateescape")).hexdigest()[:40]
