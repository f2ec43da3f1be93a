"""Provider agents, bound to settings, store, sandboxes and branches (PR-8, PR-20).

Here: that binding. Not here: any agent (`providers/`), what doors and turns get of them
(`sessions/provider_agents`).
"""

from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING

from bowerbird.core.threads import to_thread
from bowerbird.sessions.provider_agents.part import Closes, ProviderAgents, thread_memory

if TYPE_CHECKING:
    from bowerbird.app.ground import Ground
    from bowerbird.config import Settings
    from bowerbird.config.sections.agent import ProviderEntry, ProvidersSection
    from bowerbird.providers.catalogue import CatalogueEntry
    from bowerbird.providers.contract.agent import ProviderAgent
    from bowerbird.providers.programs.ground import LentTools
    from bowerbird.providers.registry import Registry
    from bowerbird.sessions.service import SessionService


def with_main_model(settings: "Settings") -> "ProvidersSection":
    """Return what settings say of providers, with key and host of the main model as its provider's.

    Both as the model has them: an agent that shares them asks the same host with the same key, and no other.
    """
    main = settings.provider
    given = {name: value for name in ("api_key", "base_url") if (value := getattr(main, name)) is not None}
    if not given:
        return settings.providers
    entry = settings.providers.get(main.name).model_copy(update=given)
    return settings.providers.model_copy(update={main.name: entry})


def provider_agents(ground: "Ground", service: "SessionService") -> ProviderAgents:
    """Return the agents of a process; they are made with the first question, as no start needs them.

    The main agent gets their tools where `providers.enabled` lists agents: a run costs money, and what it
    sees leaves this machine.
    """

    def make() -> "tuple[Registry, Sequence[Closes]]":
        from bowerbird.providers.api.agent import api_maker
        from bowerbird.providers.programs.agent import program_agent
        from bowerbird.providers.programs.ground import ProgramGround
        from bowerbird.providers.registry import Registry
        from bowerbird.providers.sessions import ProviderSessions
        from bowerbird.sessions.provider_agents.places import BranchPlaces

        places = BranchPlaces(
            ground.store, ground.branches, service, lambda: ground.maker.settings.agent.workspace
        )

        async def lender(names: Sequence[str], agent: str, *, may_change: bool) -> "LentTools":
            from bowerbird.app.features.mcp import SessionMcp

            lending = await to_thread(import_module, "bowerbird.protocols.mcp_client.lending")
            shared = service.part(SessionMcp).servers.shared
            return await lending.lend(shared, names, agent, may_change=may_change)

        programs = ProgramGround(ground.data_dir, ground.sandboxes, places.branch_of, lender=lender)

        def of_programs(entry: "CatalogueEntry", settings: "ProviderEntry") -> "ProviderAgent":
            return program_agent(entry, settings, programs)

        of_api = api_maker(lambda: ground.maker.pool.settings)
        registry = Registry(
            lambda: with_main_model(ground.maker.settings),
            {"api": of_api, "local": of_api, "cli": of_programs},
            ProviderSessions(ground.store),
            places,
            thread_memory(service),
        )
        return registry, (programs,)

    return ProviderAgents(service, make, lambda: bool(ground.maker.settings.providers.enabled))
