"""Loading the settings again while the server runs (CF-13).

Here: what of a new load takes effect at once, and what is said of the rest. Not here: who asks (a signal,
a route), the load itself (`config`).

Parts that turns are made of are replaced; what runs keeps what it began with. A key that nothing here
replaces is named as one that needs a restart, whatever its row says: a reply must be true.
"""

import asyncio
import logging
from collections.abc import Callable

from bowerbird.app.application import Application
from bowerbird.app.choice import choose_model
from bowerbird.app.features.mcp import SessionMcp
from bowerbird.app.features.subagents import SESSION_DEPTH, subagent_rules
from bowerbird.app.features.teams import team_rules
from bowerbird.app.features.tracing import Traces
from bowerbird.app.mapping import model_settings, session_settings
from bowerbird.app.offers import SettingsOffers
from bowerbird.config import Loaded
from bowerbird.config.changes import changed_keys
from bowerbird.config.keys import KeyInfo
from bowerbird.core.errors import BowerbirdError, ConfigError, NoModel
from bowerbird.core.threads import to_thread
from bowerbird.models.registry import resolve_name
from bowerbird.server.common.context import Reloaded
from bowerbird.sessions.subagents.runner import Children
from bowerbird.sessions.teams.teams import Teams

_log = logging.getLogger(__name__)

Load = Callable[[], Loaded]

# What `Reloader` replaces: sections, or single keys of sections of which the rest needs a restart.
_LIVE = frozenset(
    """
    agent provider providers model_router models tools approval budgets turn inbox resume skills web
    landing.check delegation teams mcp_servers mcp push logging cli shutdown server workspace.landing
    workspace.cleanup workspace.cleanup_delay memory.enabled memory.protected retention
    limits.queue_per_session limits.queue_total limits.message_mb limits.upload_mb
    gateway claude_code
    """.split()
)


def takes_effect(info: KeyInfo) -> bool:
    """Whether a changed key applies without a restart."""
    live = info.path[0] in _LIVE or ".".join(info.path[:2]) in _LIVE
    return live and info.applies == "N"


def model_name(loaded: Loaded) -> str:
    """Return what conversations run on; a missing key is said at their first model call."""
    try:
        chosen = choose_model(loaded)
    except NoModel as error:
        _log.warning("%s", error)
        return str(resolve_name(None, model_settings(loaded)))
    if chosen.note:
        _log.warning("%s", chosen.note)
    return chosen.name


class Reloader:
    """Loads the settings of a running server again.

    Args:
        application, offers: what follows them. load: reads them as at the start.
        on_loaded: told of valid new settings, say for the log's level.
    """

    def __init__(
        self,
        application: Application,
        offers: SettingsOffers,
        load: Load,
        on_loaded: Callable[[Loaded], None] = lambda _: None,
    ) -> None:
        self._application = application
        self._offers = offers
        self._load = load
        self._on_loaded = on_loaded
        self._one = asyncio.Lock()

    async def reload(self) -> Reloaded:
        """Load and apply; invalid settings change nothing, and the log says why."""
        async with self._one:
            try:
                loaded = await to_thread(self._load)
                result = self._apply(loaded)
            except ConfigError as error:
                problems = tuple(str(error).splitlines())
                _log.error("the new settings are invalid; the running ones stay: %s", "; ".join(problems))
                return Reloaded(errors=problems)
            except (BowerbirdError, OSError) as error:
                _log.error("the settings cannot be loaded; the running ones stay: %s", error)
                return Reloaded(errors=(str(error),))
        for kind, keys in (("applied", result.applied), ("needs a restart", result.restart)):
            if keys:
                _log.info("settings loaded again; %s: %s", kind, ", ".join(keys))
        return result

    def _apply(self, loaded: Loaded) -> Reloaded:
        application = self._application
        changed = changed_keys(application.maker.settings, loaded.settings)
        settings, name = loaded.settings, model_name(loaded)
        sessions = application.sessions
        # What may be refused comes first: then nothing has changed.
        rules, mcp = subagent_rules(settings, max_depth=SESSION_DEPTH), sessions.part(SessionMcp)
        servers = mcp.made(settings)
        application.maker.use(loaded, name)
        mcp.use(servers)
        sessions.part(Traces).use(model_settings(loaded))
        application.use(loaded)
        sessions.use(session_settings(settings))
        self._offers.use(name)
        tiers = settings.model_router.tiers if settings.model_router.enabled else ()
        agent = settings.agent
        sessions.part(Children).use(
            rules,
            model=agent.subagent_model,
            temperature=agent.subagent_temperature,
            tiers=tuple(sorted(tiers)),
        )
        sessions.part(Teams).use(
            team_rules(settings), model=agent.teammate_model, temperature=agent.teammate_temperature
        )
        self._on_loaded(loaded)
        return Reloaded(
            applied=tuple(info.name for info in changed if takes_effect(info)),
            restart=tuple(info.name for info in changed if not takes_effect(info)),
            warnings=loaded.warnings,
        )
