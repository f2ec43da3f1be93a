"""Schedules from settings (AS-29 … AS-40).

Here: which key becomes which value, and binding schedules to an application's sessions. Not here: when a task
runs (`bowerbird.scheduler`).
"""

from pathlib import Path
from typing import TYPE_CHECKING

from bowerbird.config import Settings
from bowerbird.scheduler.schedules import Schedules
from bowerbird.scheduler.task_rules import ScheduleRules

if TYPE_CHECKING:
    from bowerbird.app.ground import Ground
    from bowerbird.sessions.service import SessionService


def schedule_rules(settings: Settings) -> ScheduleRules:
    """Return what `scheduler.*` says, and what a task's session is made with."""
    section, router = settings.scheduler, settings.model_router
    return ScheduleRules(
        enabled=section.enabled,
        poll_s=section.poll_interval,
        min_interval_s=section.min_interval,
        timezone=section.timezone,
        history_turns=section.history_turns,
        tiers=tuple(sorted(router.tiers)) if router.enabled else (),
        workspace=str(Path(settings.agent.workspace).resolve()),
        policy=settings.workspace.landing,
        hide=settings.workspace.hidden,
    )


def session_schedules(ground: "Ground", service: "SessionService") -> Schedules:
    """Return the schedules of a process's sessions; nothing is looked at yet."""
    file = ground.loaded.settings.scheduler.data_file
    return Schedules(service, lambda: schedule_rules(ground.maker.settings), Path(file) if file else None)
