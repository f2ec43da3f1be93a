"""Boards as tools use them (`tools/together/board.py`'s `TaskBoard`).

Here: arguments of tools to changes. Not here: the tools' texts and schemas, the board.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from bowerbird.boards.boards import Boards
from bowerbird.boards.rules import TaskChange, TaskData, board_lines, task_id_of
from bowerbird.core.errors import InvalidArgument

if TYPE_CHECKING:
    from bowerbird.tools.context import ToolContext


class BoardToolCalls:
    """The boards of all sessions of a process, each call on its session's."""

    def __init__(self, boards: Boards) -> None:
        self._boards = boards

    async def create(self, subject: str, description: str, active_form: str, call: "ToolContext") -> TaskData:
        """See `TaskBoard`."""
        key = await self._boards.key_of(call.session)
        return await self._boards.create(
            key,
            subject,
            description=description,
            active_form=active_form,
            session=call.session,
            call=call,
        )

    async def get(self, task_id: object, call: "ToolContext") -> TaskData:
        """See `TaskBoard`."""
        key = await self._boards.key_of(call.session)
        await self._boards.begin(key)
        return await self._boards.task(key, task_id_of(task_id))

    async def update(self, task_id: object, changes: Mapping[str, Any], call: "ToolContext") -> TaskData:
        """See `TaskBoard`."""
        key = await self._boards.key_of(call.session)
        return await self._boards.update(key, task_id_of(task_id), change_of(changes), call=call)

    async def all(self, call: "ToolContext") -> tuple[str, list[TaskData]]:
        """See `TaskBoard`."""
        key = await self._boards.key_of(call.session)
        await self._boards.begin(key)
        state = await self._boards.state(key)
        return board_lines(state.tasks), list(state.tasks)


def change_of(changes: Mapping[str, Any]) -> TaskChange:
    """Return a change from arguments of `task_update`, named as on wires; None and missing = as it is.

    Raises:
        InvalidArgument: an id is none, or nothing is to be changed.
    """
    given = {key: value for key, value in changes.items() if value not in (None, [], ())}
    if not given:
        raise InvalidArgument("nothing to change: give status, subject, owner or another field")
    return TaskChange(
        status=given.get("status"),
        subject=given.get("subject"),
        description=given.get("description"),
        active_form=given.get("activeForm"),
        owner=given.get("owner"),
        metadata=given.get("metadata"),
        add_blocked_by=_ids(given.get("addBlockedBy", ())),
        add_blocks=_ids(given.get("addBlocks", ())),
        remove_blocked_by=_ids(given.get("removeBlockedBy", ())),
        remove_blocks=_ids(given.get("removeBlocks", ())),
    )


def _ids(values: Sequence[object]) -> tuple[int, ...]:
    return tuple(dict.fromkeys(task_id_of(value) for value in values))
