"""What people always allow: kept with their answer, followed by later turns, listed and removed (UI-71).

Here: that part of sessions. Not here: which rule a call gives (`agent/always.py`), the rows
(`store/rows/permission_rules.py`), the decision (`agent/permissions.py`).
"""

import msgspec
from sqlalchemy import Connection

from bowerbird.agent.always import DECISIONS
from bowerbird.agent.policy import Rule
from bowerbird.agent.turn import TurnRun
from bowerbird.core.errors import NotFound
from bowerbird.core.events import ApprovalAnswer, ApprovalRequest
from bowerbird.sessions.parts import SessionPart
from bowerbird.sessions.thread_ids import root_of
from bowerbird.sessions.turn_maker import TurnContext
from bowerbird.store.rows.permission_rules import (
    PermissionRow,
    add_rules,
    forget_session,
    permission_list,
    remove_rule,
    rules_of,
)
from bowerbird.store.rows.sessions import SessionRow, get_session
from bowerbird.store.store import Store


def always_rules(request: ApprovalRequest, answer: ApprovalAnswer) -> list[str]:
    """Return the rules that "always" keeps: as the request says, save of calls that were answered apart."""
    meant = [tool for tool in request.tools if tool.get("id") not in answer.calls]
    return [str(rule) for tool in meant for rule in tool.get("rules") or ()]


def keep_rules(
    connection: Connection, thread_id: str, request: ApprovalRequest, answer: ApprovalAnswer
) -> None:
    """Keep what an answer always allows; a subagent's question is answered for the session it works for."""
    session = get_session(connection, root_of(thread_id))
    scope = DECISIONS[answer.decision]
    target = {"session": session.thread_id, "workspace": session.workspace or "", "everywhere": ""}[scope]
    add_rules(connection, session.owner or "", scope, target, always_rules(request, answer), answer.by)


class PermissionRules(SessionPart):
    """The rules of one store.

    Args:
        store: open; closed by its owner.
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    async def join(self, run: TurnRun, context: TurnContext) -> TurnRun:
        """Add the rules that hold in the turn's session."""
        session = context.session
        owner, workspace, root = session.owner or "", session.workspace or "", root_of(session.thread_id)
        found = await self._store.read(lambda c: rules_of(c, owner, workspace, root))
        policy = run.policy.always_allowing(Rule.parse(rule) for rule in found)
        return msgspec.structs.replace(run, policy=policy) if found else run

    async def deleting(self, session: SessionRow) -> None:
        """Forget what was allowed in a deleted session only."""
        await self._store.write(lambda c: forget_session(c, session.thread_id))

    async def list(self, owner: str | None) -> list[PermissionRow]:
        """Return the rules of a person, or of all for None, the newest first."""
        return await self._store.read(lambda c: permission_list(c, owner))

    async def remove(self, rule_id: int, owner: str | None) -> None:
        """Forget one: the next call like it is asked about again.

        Raises:
            NotFound: no such rule, or another person's.
        """
        if not await self._store.write(lambda c: remove_rule(c, rule_id, owner)):
            raise NotFound(f"there is no permission {rule_id}; `bowerbird permissions` lists them")
