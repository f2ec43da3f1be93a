"""Landing by an agent's policy, with what is said of it while it runs and afterwards (WS-57, reliability 7).

Here: the landing as events, and how often its progress is told, at every door. Not here: counting
(`workspace/landing/progress.py`), when a policy lands (`library_run.py`, `sessions/turn/finish.py`).
"""

import asyncio
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING

import msgspec

from bowerbird.core.errors import LandingRefused, WorkspaceError
from bowerbird.core.events import LandingProgress, Notice
from bowerbird.core.threads import to_thread

if TYPE_CHECKING:
    from bowerbird.workspace import Branch

FEW_FILES = 100
"""A landing of so many is over before anybody has read of it."""
EVERY_S = 0.25


async def land_by_policy(branch: "Branch") -> AsyncGenerator[LandingProgress | Notice]:
    """Land what may land by itself; yield how far it is, and at the end what stays pending."""
    newest: LandingProgress | None = None

    def told(progress: LandingProgress) -> None:
        nonlocal newest
        if progress.total > FEW_FILES:
            newest = progress

    said = None
    landing = asyncio.ensure_future(to_thread(branch.land, partial=True, automatic=True, told=told))
    while not (await asyncio.wait([landing], timeout=EVERY_S))[0]:
        if newest is not None and newest is not said:
            said = newest
            yield newest
    if newest is not None:
        yield msgspec.structs.replace(newest, phase="over")
    try:
        refused = [(row.path, row.reason) for row in landing.result().refused]
    except LandingRefused as refusal:
        refused = [(row["path"], row["reason"]) for row in refusal.refused]
    except WorkspaceError as error:
        yield Notice("landing", f"nothing landed: {error}")
        return
    if refused:
        paths = ", ".join(f"{path} ({reason})" for path, reason in refused)
        yield Notice("landing", f"not landed, waits for review: {paths}")
