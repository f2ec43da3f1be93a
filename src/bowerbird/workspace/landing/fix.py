"""The ways out of a landing that came neither to its end nor back (D-1).

Here: trying again, taking back, giving up, for one landing whose locks are held. Not here: finding it
(`landings.py`), changing files (`apply.py`).
"""

import os
from collections.abc import Sequence
from typing import Literal

import msgspec

from bowerbird.core.errors import LandingStuck
from bowerbird.workspace.landing.apply import Applier, Settle, remove_places
from bowerbird.workspace.landing.landed_paths import LandedPaths
from bowerbird.workspace.landing.landing import is_pending, set_base
from bowerbird.workspace.landing.record import LandingFolder, LandingRecord, State, Step
from bowerbird.workspace.landing.staging import Staging
from bowerbird.workspace.tree.real_directory import Beneath
from bowerbird.workspace.tree.stack import Stack

Fix = Literal["retry", "take_back", "give_up"]


def fix(tree: Beneath, folder: LandingFolder, how: Fix, settle: Settle, stack: Stack) -> LandingRecord:
    """Do one of them, and return the record as it is then.

    Raises:
        LandingStuck: taking back met an error again; the record says where.
    """
    record, steps = folder.record(), folder.steps()
    if how == "retry":
        done = Applier(tree, folder).finish(
            record, steps, settle, lambda: _take_back_bases(stack, folder, tree, steps)
        )
        # It was taken back instead: its folder is gone, what it says is what a listing said last.
        return done if done is not None else _ended(record, "undone")
    if how == "take_back":
        stuck = Applier(tree, folder).take_back(steps)
        if stuck:
            path, why = next(iter(stuck.items()))
            raise LandingStuck(
                f"{path.lstrip('/')} of landing {record.id} cannot be taken back: {why}", record.id
            )
        _take_back_bases(stack, folder, tree, steps)
        return _close(tree, folder, steps, _ended(record, "undone"))
    landed = [step for step in steps if tree.version(step.path) == step.after]
    settle(record, landed)
    return _close(tree, folder, steps, _ended(record, "given_up"))


def _take_back_bases(stack: Stack, folder: LandingFolder, tree: Beneath, steps: Sequence[Step]) -> None:
    """What may have been settled already is pending in the branch again."""
    paths: list[str] = []
    for step in steps:
        path = "/" + os.fsdecode(step.path)
        if stack.touched(path) is not None:
            set_base(stack, folder, path, step.base)
            paths.append(path)
    LandedPaths(stack.directory).update(tree, (), gone=[path for path in paths if is_pending(stack, path)])


def _close(
    tree: Beneath, folder: LandingFolder, steps: Sequence[Step], record: LandingRecord
) -> LandingRecord:
    with Staging(tree, folder) as staging:
        remove_places(staging, folder, steps)
    folder.write_record(record)
    return record


def _ended(record: LandingRecord, state: State) -> LandingRecord:
    return msgspec.structs.replace(record, state=state)
