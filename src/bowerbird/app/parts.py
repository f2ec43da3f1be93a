"""The features of sessions, in their order (R2): this list is all that a new one is added to.

Here: which parts the sessions of a process have. Not here: what any of them does, the contract
(`sessions/parts.py`).
"""

from collections.abc import Sequence

from bowerbird.app.features.background import BackgroundEnds
from bowerbird.app.features.boards import SessionRecords
from bowerbird.app.features.channels import session_channels
from bowerbird.app.features.commit_words import commit_words
from bowerbird.app.features.gateway import HostCommands
from bowerbird.app.features.mcp import SessionMcp
from bowerbird.app.features.memory import kept_files, session_memory
from bowerbird.app.features.own_commands import own_commands
from bowerbird.app.features.providers import provider_agents
from bowerbird.app.features.schedules import session_schedules
from bowerbird.app.features.subagents import door_tournaments, session_children
from bowerbird.app.features.teams import session_teams
from bowerbird.app.features.tracing import Traces
from bowerbird.app.ground import Ground
from bowerbird.app.mapping import hooks_of, model_settings, push_rules
from bowerbird.app.own import own_workspace
from bowerbird.sessions.hooks import Hooks
from bowerbird.sessions.parts import SessionPart
from bowerbird.sessions.permission_rules import PermissionRules
from bowerbird.sessions.provider_agents.attempts import Attempts
from bowerbird.sessions.push.part import Push
from bowerbird.sessions.searching import SessionSearch
from bowerbird.sessions.service import SessionService
from bowerbird.sessions.turn.background_notices import CommandNotices


def session_parts(ground: Ground, service: SessionService) -> Sequence[SessionPart]:
    """Return the parts; each joins a turn after those before it, and ends before them."""
    store, live, host = ground.store, service.live, ground.sandboxes
    records = SessionRecords(store, live, own_workspace(ground.loaded))
    desk = CommandNotices(store, live, lambda turn: service.resume(turn.turn_id))
    agents = provider_agents(ground, service)
    children = session_children(ground, service, Attempts(agents))
    return (
        ground.runtimes,
        Traces(store, live, model_settings(ground.loaded)),
        records,
        BackgroundEnds(store, host, ground.news, ground.branches, desk, service.note_changes),
        own_commands(ground, service.note_changes),
        SessionMcp(ground.loaded.settings, host),
        HostCommands(lambda: ground.maker.settings),
        agents,
        children,
        door_tournaments(ground, service, children),
        session_teams(ground, service, records.boards),
        session_memory(ground, service),
        commit_words(ground, service),
        kept_files(ground, service),
        session_schedules(ground, service),
        PermissionRules(store),
        SessionSearch(store),
        session_channels(ground, service),
        Push(store, live, lambda: service.outbox, lambda: push_rules(ground.maker.settings)),
        Hooks(lambda: hooks_of(ground.maker.settings), live),  # last: they see the tools of all
    )
