"""The chat channels of a server, bound to settings, models and skills (AS-1 … AS-28).

Here: that binding. Not here: the channels (`channels/`), which of them there are (`channels/make.py`).
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from bowerbird.app.features.mcp import masking
from bowerbird.channels.part import Channels
from bowerbird.core.threads import to_thread
from bowerbird.scheduler.schedules import Schedules

if TYPE_CHECKING:
    from bowerbird.app.ground import Ground
    from bowerbird.app.maker import SettingsTurnMaker
    from bowerbird.channels.commands import Command
    from bowerbird.channels.contract import Channel
    from bowerbird.channels.facts import SkillFact
    from bowerbird.channels.house import Rules, Surroundings
    from bowerbird.config import Settings
    from bowerbird.sessions.service import SessionService
    from bowerbird.sessions.values import NewSession
    from bowerbird.store.rows.sessions import SessionRow


class SettingsFacts:
    """What chats show, from the settings in force."""

    def __init__(self, maker: "SettingsTurnMaker") -> None:
        self._maker = maker

    def model(self, session: "SessionRow | None") -> str:
        """See `Facts`."""
        return self._maker.model_of(session) if session is not None else self._maker.usual_model

    def tiers(self) -> Sequence[str]:
        """See `Facts`."""
        router = self._maker.pool.router
        return router.tiers if router is not None else ()

    async def skills(self, session: "SessionRow | None") -> "Sequence[SkillFact]":
        """See `Facts`."""
        from bowerbird.channels.facts import SkillFact
        from bowerbird.skills.library import SkillLibrary

        settings = self._maker.settings
        if not settings.skills.enabled:
            return ()
        at = session.workspace if session is not None else settings.agent.workspace
        library = SkillLibrary(Path(at) if at else None, settings.skills.directory)
        found = await to_thread(library.all)
        return [SkillFact(skill.name, skill.description, skill.hidden or "") for skill in found]


def session_channels(ground: "Ground", service: "SessionService") -> Channels:
    """Return the channels of a process; they start only where it drives every session."""
    maker = ground.maker

    def settings() -> "Settings":
        return maker.settings

    def defaults() -> "NewSession":
        from bowerbird.sessions.values import NewSession

        now = settings()
        return NewSession(
            kind="chat",
            workspace=str(Path(now.agent.workspace).resolve()),
            policy=now.workspace.landing,
            hide=now.workspace.hidden,
        )

    def around() -> "Surroundings":
        from bowerbird.app.features.claude_code import claude_rules, on_branches
        from bowerbird.channels.house import Surroundings
        from bowerbird.channels.schedule_commands import schedule_commands
        from bowerbird.sessions.provider_agents.part import ProviderAgents

        def extra(channel: str) -> "Iterable[Command]":
            return schedule_commands(channel, service.part(Schedules))

        file = ground.loaded.settings.claude_code.state_file
        claude = claude_rules(settings, on_branches(service.part(ProviderAgents), ground.store))
        return Surroundings(
            service, SettingsFacts(maker), defaults, extra, claude=claude, claude_file=Path(file)
        )

    def made() -> "Sequence[tuple[Channel, Rules]]":
        from bowerbird.channels.make import make_channels

        hide = masking(settings())
        return make_channels(settings, ground.store, ground.data_dir, service.executor_id, hide)

    return Channels(made, around)
