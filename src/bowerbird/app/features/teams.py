"""Teams from settings (DE-46 … DE-67).

Here: which key becomes which value, and binding teams to an application's sessions. Not here: running
teammates (`sessions/teams/teams.py`), their rules (`teams/rules.py`).
"""

from typing import TYPE_CHECKING

from bowerbird.app.own import own_workspace
from bowerbird.boards.boards import Boards
from bowerbird.config import Settings
from bowerbird.sessions.teams.hub import TeamHub
from bowerbird.sessions.teams.readable_copies import TeamCopies
from bowerbird.sessions.teams.teams import Teams
from bowerbird.teams.rules import TeamRules

if TYPE_CHECKING:
    from bowerbird.app.ground import Ground
    from bowerbird.sessions.service import SessionService


def team_rules(settings: Settings) -> TeamRules:
    """Return what `agent.max_teammates` and `teams.*` say."""
    section = settings.teams
    return TeamRules(
        max_teammates=settings.agent.max_teammates,
        wake_lead=section.wake_lead,
        poll_s=section.poll_s,
        idle_s=section.idle_s,
        shutdown_s=section.shutdown_s,
        plan_s=section.plan_s,
        phases=section.phases,
    )


def session_teams(ground: "Ground", service: "SessionService", boards: Boards) -> Teams:
    """Return what runs the teammates of a process's sessions."""
    settings = ground.loaded.settings
    hub = TeamHub(
        ground.store,
        ground.branches,
        service,
        service.live,
        rules=team_rules(settings),
        boards=boards,
        copies=TeamCopies(ground.store, ground.branches, own_workspace(ground.loaded)),
        holder=service.executor_id,
        wake=lambda turn: service.resume(turn.turn_id),
    )
    return Teams(
        hub,
        runs=ground.runs,
        model_of=ground.maker.model_of,
        model=settings.agent.teammate_model,
        temperature=settings.agent.teammate_temperature,
        silent_s=int(max(settings.dispatch.lease_s, 3 * service.settings.sweep_s)),
        sweep_s=service.settings.sweep_s,
    )
