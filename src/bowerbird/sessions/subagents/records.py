"""Records of subagents in the store, each made together with its session and its turn (DE-4, SE-1).

Here: those transactions. Not here: running subagents (`runner`), rows' SQL (`store.subagents`).
"""

from collections.abc import Callable, Mapping, Sequence

import msgspec
from sqlalchemy import Connection

from bowerbird.agent.prompt import get_subagent_instructions
from bowerbird.core.forms import decode
from bowerbird.core.ids import new_id
from bowerbird.core.messages import TextBlock, block_to_data
from bowerbird.core.usage import Usage
from bowerbird.store.rows.sessions import SessionRow, get_session, insert_session, update_session
from bowerbird.store.rows.subagents import (
    SubagentRow,
    insert_subagents,
    next_subagent,
    open_subagents,
    replace_subagent,
    subagents_in_turn,
    subagents_of,
)
from bowerbird.store.rows.turns import InboxRow, TurnRow, insert_input, insert_turn
from bowerbird.store.store import Store
from bowerbird.subagents.records import Child
from bowerbird.subagents.roles import AgentType

KIND = "subagent"
TITLE_CHARS = 100
_KEPT_FLAGS = ("enable_thinking", "enable_tracing", "memory", "network", "tools")


class StoredRecords:
    """Implements `subagents.records.Records`.

    Args:
        types: of subagents, by name. model: names the model of one: (record, its parent's session).
    """

    def __init__(
        self, store: Store, types: Mapping[str, AgentType], model: Callable[[Child, SessionRow], str]
    ) -> None:
        self._store = store
        self._types = types
        self._model = model

    async def of(self, session: str) -> Sequence[Child]:
        """See `Records`."""
        rows = await self._store.read(lambda c: subagents_of(c, session))
        return [decode(row.body, Child) for row in rows]

    async def used_in(self, session: str, turn_id: str) -> Usage:
        """Return what the ended subagents of a turn used, as it counts in their caller's totals."""
        ended = (c for c in await self.of(session) if c.turn == turn_id and c.ended is not None)
        return sum((child.usage.as_subagents for child in ended), Usage())

    async def next_number(self, session: str) -> int:
        """See `Records`."""
        return await self._store.read(lambda c: next_subagent(c, session))

    async def open_count(self, root: str) -> int:
        """See `Records`."""
        return await self._store.read(lambda c: open_subagents(c, root))

    async def turn_count(self, root: str, root_turn: str) -> int:
        """See `Records`."""
        return await self._store.read(lambda c: subagents_in_turn(c, root_turn))

    async def add(self, children: Sequence[Child]) -> None:
        """See `Records`: sessions, turns and inputs are made in the same transaction."""

        def write(connection: Connection) -> None:
            for child in children:
                self._make(connection, child)
            insert_subagents(connection, [row_of(child) for child in children])

        await self._store.write(write)

    async def put(self, child: Child) -> None:
        """See `Records`."""

        def write(connection: Connection) -> None:
            replace_subagent(connection, row_of(child))
            update_session(connection, child.session, status=child.state)

        await self._store.write(write)

    def _make(self, connection: Connection, child: Child) -> None:
        parent = get_session(connection, child.parent)
        instructions = self._types[child.agent_type].instructions or get_subagent_instructions()
        flags = {key: parent.flags[key] for key in _KEPT_FLAGS if key in parent.flags}
        insert_session(
            connection,
            SessionRow(
                thread_id=child.session,
                kind=KIND,
                channel=parent.channel,
                chat_id=parent.chat_id,
                owner=parent.owner,
                title=child.task[:TITLE_CHARS],
                system_prompt=instructions,
                flags={**flags, "model": self._model(child, parent)},
                thinking_effort=parent.thinking_effort,
                workspace=parent.workspace,
                branch_id=child.fork,
                status="queued",
            ),
        )
        turn = TurnRow(turn_id=new_id("t"), thread_id=child.session, n=1, kind=KIND)
        insert_turn(connection, turn)
        body = {"content": [block_to_data(TextBlock(child.task))]}
        insert_input(
            connection,
            InboxRow(
                id=new_id("i"),
                thread_id=child.session,
                door=KIND,
                dedupe_key=child.session,
                kind="message",
                sender=msgspec.json.encode({"id": None, "name": child.parent, "door": KIND}).decode(),
                body=msgspec.json.encode(body).decode(),
                turn_id=turn.turn_id,
            ),
        )


def row_of(child: Child) -> SubagentRow:
    """Return a record as its row."""
    return SubagentRow(
        parent=child.parent,
        number=child.number,
        thread_id=child.session,
        root=child.root,
        root_turn=child.root_turn,
        state=child.state,
        body=msgspec.json.encode(child).decode(),
    )
