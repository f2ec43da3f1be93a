"""What conversations of the server are offered, from settings (SV-6, 7, 11 … 13).

Here: models, presets, tools and skills as values for doors. Not here: the turns themselves (`maker.py`).
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from bowerbird.agent.permissions import offered
from bowerbird.agent.prompt import list_presets, load_preset
from bowerbird.app.choice import has_weights
from bowerbird.app.maker import offered_tools
from bowerbird.app.mapping import EMBEDDED, skill_library, turn_policy
from bowerbird.app.sandboxes import process_settings
from bowerbird.config import Settings
from bowerbird.core.errors import ConfigError, InvalidArgument
from bowerbird.core.model_presets import PRESETS
from bowerbird.core.threads import to_thread
from bowerbird.models.offered import OfferedModel, doubt_about, offered_models
from bowerbird.server.common.context import AgentOffered, Named
from bowerbird.sessions.provider_agents.part import ProviderAgents
from bowerbird.sessions.subagents.runner import Children
from bowerbird.skills import SkillLibrary
from bowerbird.tools import Toolset
from bowerbird.tools.processes.family import Processes
from bowerbird.tools.processes.process_tools import PROCESS_TOOLS, process_tools, processes_unavailable

if TYPE_CHECKING:
    from bowerbird.app.application import Application
    from bowerbird.store.rows.sessions import SessionRow


class SettingsOffers:
    """`server.context.Offers` over one process's settings, maker and parts.

    Args:
        name: `provider:model` that conversations run on which name none.
    """

    def __init__(self, application: "Application", name: str) -> None:
        self._sessions = application.sessions
        self._maker = application.maker
        self._sandboxes = application.sandboxes
        self._name = name

    def use(self, name: str) -> None:
        """Name another model that conversations run on which name none; settings are the maker's."""
        self._name = name

    @property
    def _settings(self) -> Settings:
        return self._maker.settings

    @property
    def model(self) -> str:
        """See `Offers`; the name as settings have it."""
        configured = self._settings.provider.model
        return configured if self._name.endswith(f":{configured}") else self._name

    def model_of(self, session: "SessionRow") -> str:
        """See `Offers`."""
        return self._maker.model_of(session)

    def window_of(self, session: "SessionRow") -> int:
        """See `Offers`."""
        return self._maker.window_of(self._maker.model_of(session))

    @property
    def model_pattern(self) -> str:
        """See `Offers`."""
        own = [name for name, entry in self._maker.pool.settings.providers.items() if entry.base_url]
        known = "|".join(map(re.escape, sorted({*PRESETS, *own})))
        tiers = self._settings.model_router.tiers if self._settings.model_router.enabled else ()
        tier = "".join(f"|tier:{re.escape(name)}" for name in sorted(tiers))
        bare = "[A-Za-z0-9][A-Za-z0-9._@+/-]*"
        return f"^(?:(?:{known})[:/][A-Za-z0-9][A-Za-z0-9._:@+/-]*|{bare}{tier})$"

    def models(self) -> Sequence[OfferedModel]:
        """See `Offers`."""
        agent, liked = self._settings.agent, self._settings.cli
        settings = self._maker.pool.settings
        embedded = EMBEDDED if has_weights(settings) else ""
        others = (agent.subagent_model, agent.compact_model, liked.model, embedded)
        return offered_models(settings, [name for name in others if name])

    def knows_model(self, name: str) -> str | None:
        """See `Offers`; whether the provider has the model shows at the first call."""
        if name.startswith("tier:"):
            router = self._settings.model_router
            known = name.removeprefix("tier:") in router.tiers if router.enabled else False
            return None if known else f"there is no tier {name!r}"
        try:
            return doubt_about(name, self._maker.pool.settings)
        except ConfigError as error:
            return str(error)

    def presets(self) -> Sequence[Named]:
        """See `Offers`; a preset that cannot be read is left out."""
        prompts = Path(self._settings.agent.prompts_dir)
        found: list[Named] = []
        for name in list_presets(prompts):
            try:
                found.append(Named(name, load_preset(name, prompts).description))
            except InvalidArgument:
                continue  # said when a conversation asks for it
        return found

    async def tools(self, session: "SessionRow | None" = None) -> Toolset:
        """See `Offers`; of MCP servers, which a turn starts, what those that were started before have."""
        flags = session.flags if session is not None else {}
        plan = bool(flags.get("enable_plan_mode"))
        router = self._maker.pool.router
        every = offered_tools(
            self._settings,
            await to_thread(self.skills),
            processes=await self._processes(),
            attended=True,
            plan=plan,
            tiers=router.tiers if router is not None else (),
        )
        policy = turn_policy(self._settings, flags)
        for part in self._sessions.parts:
            names = {tool.name for tool in every}
            every = every.with_(*(tool for tool in part.tools(session) if tool.name not in names))
        full = (flags.get("tools") or self._settings.agent.tools) == "full"
        shown = offered(every, "plan" if plan else "normal", policy, full=full)
        return Toolset(shown, absent=every.absent)

    async def _processes(self) -> Processes:
        status = await self._sandboxes.status()
        reason = processes_unavailable(status)
        if reason is not None:
            return Processes((), dict.fromkeys(PROCESS_TOOLS, reason), status=status)
        tools = process_tools(self._sandboxes, process_settings(self._settings))
        return Processes(tuple(tools), status=status)

    async def agents(self) -> Sequence[AgentOffered]:
        """See `Offers`."""
        types = self._sessions.part(Children).tree.types.values()
        own = [
            AgentOffered(
                name=kind.name,
                type="subagent",
                description=kind.description,
                model=kind.model or None,
                tools=None if kind.tools is None else tuple(sorted(kind.tools)),
            )
            for kind in sorted(types, key=lambda kind: kind.name)
        ]
        others = await self._sessions.part(ProviderAgents).listed()
        return [*own, *(AgentOffered(**row) for row in others)]

    def skills(self) -> SkillLibrary | None:
        """See `Offers`."""
        return skill_library(self._settings, Path(self._settings.agent.workspace))

    def skills_dir(self) -> Path | None:
        """See `Offers`."""
        section = self._settings.skills
        if not section.enabled:
            return None
        return Path(self._settings.agent.workspace) / section.directory
