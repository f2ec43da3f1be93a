"""What holds for one run of an agent: per call, then settings, then the catalogue (PR-3, PR-5).

Settings arrive with the environment merged in, which wins over files (CF-1). Here, pure: an agent's own
settings over those of the model provider whose key it shares, its program as words, model and time limit.
Not here: reading settings, looking for a program.
"""

import shlex
from collections.abc import Iterator

from bowerbird.config.sections.agent import ProviderEntry, ProvidersSection
from bowerbird.core.model_presets import PRESETS
from bowerbird.providers.catalogue import CATALOGUE, CatalogueEntry
from bowerbird.providers.contract.errors import AgentConfigError, shown
from bowerbird.providers.contract.types import AgentRequest

_SHARED = ("api_key", "base_url", "headers")


def settings_of(entry: CatalogueEntry, providers: ProvidersSection) -> ProviderEntry:
    """Return what settings say of an agent.

    Key, address and headers of the model provider that it shares take the place of what it has not; the
    key goes along with its own address only: one set for the agent gets the agent's own key alone.
    """
    own = providers.get(entry.name)
    shared = providers.get(entry.shares) if entry.shares else ProviderEntry()
    if own.max_cost is None:
        own = own.model_copy(update={"max_cost": providers.max_cost})
    if own.base_url is not None and own.base_url != shared.base_url:
        return own
    return own.model_copy(update={name: getattr(own, name) or getattr(shared, name) for name in _SHARED})


def offered(providers: ProvidersSection) -> tuple[CatalogueEntry, ...]:
    """Return the agents that settings offer, in catalogue order; those that settings add come last."""
    enabled = providers.enabled
    every = (*CATALOGUE.values(), *_added(providers))
    return tuple(entry for entry in every if enabled is None or entry.name in enabled)


def _added(providers: ProvidersSection) -> Iterator[CatalogueEntry]:
    """Yield an agent for each program of one's own, and each OpenAI-compatible server with a model (PR-1)."""
    for name, settings in providers.entries.items():
        if name in CATALOGUE or name in PRESETS:
            continue
        if settings.command:
            yield _program(name, settings)
        elif settings.base_url and settings.model:
            yield CatalogueEntry(
                name,
                name,
                "api",
                f"A server that settings name (providers.{name}): answers, no files.",
                CATALOGUE["deepseek"].capabilities,
                CATALOGUE["deepseek"].timeout_s,
                wire="chat",
                core=False,
            )


def _program(name: str, settings: ProviderEntry) -> CatalogueEntry:
    """Return the entry of a program of one's own; with `transport: acp` it is spoken to over ACP."""
    return CatalogueEntry(
        name,
        name,
        "cli",
        f"A program that settings name (providers.{name}), on a branch of the workspace.",
        CATALOGUE["aider"].capabilities,
        CATALOGUE["aider"].timeout_s,
        programs=(name,),
        acp=(name,) if settings.transport == "acp" else (),
        core=False,
    )


def model_of(
    entry: CatalogueEntry, settings: ProviderEntry, request: AgentRequest | None = None
) -> str | None:
    """Return the model to ask for; None = the agent uses its own."""
    asked = request.metadata.get("model") if request is not None else None
    chosen = asked if isinstance(asked, str) and asked.strip() else settings.model
    return (chosen or "").strip() or entry.model


def timeout_of(entry: CatalogueEntry, settings: ProviderEntry, request: AgentRequest) -> float:
    """Return the seconds that a run may take."""
    for seconds in (request.timeout, settings.timeout):
        if seconds is not None:
            return max(seconds, 0.0)
    return entry.timeout_s


def max_cost_of(settings: ProviderEntry, request: AgentRequest) -> float | None:
    """Return the US dollars that a run may spend on its model: a request can lower the limit, not lift it."""
    limits = [most for most in (request.max_cost, settings.max_cost) if most is not None]
    return min(limits) if limits else None


def program_words(entry: CatalogueEntry, settings: ProviderEntry) -> tuple[tuple[str, ...], ...]:
    """Return the programs to try in order, each with its arguments; the first that exists is used.

    Probe and run both take it from here. A program that settings or a variable name takes the place of the
    catalogue's: one that is missing is not silently replaced by another on the PATH.

    Raises:
        AgentConfigError: a command that cannot be divided into words, or is blank.

    Example:
        >>> program_words(CATALOGUE["opencode"], ProviderEntry(command="/opt/oc --quiet"))
        (('/opt/oc', '--quiet'),)
    """
    named = tuple(text for text in (settings.command, settings.alt_command) if text is not None)
    if not named:
        return tuple((program, *settings.args) for program in entry.programs)
    return tuple((*_words(entry, text), *settings.args) for text in named)


def named_by(entry: CatalogueEntry) -> str:
    """Return what a person sets to name the program, for messages."""
    variable = f"{entry.command_variables[0]} or " if entry.command_variables else ""
    return f"{variable}providers.{entry.name}.command"


def _words(entry: CatalogueEntry, text: str) -> tuple[str, ...]:
    try:
        words = tuple(shlex.split(text))
    except ValueError as error:
        raise AgentConfigError(
            f"the command of {entry.name} is {shown(text)!r}, which cannot be read: {error}; "
            f"correct {named_by(entry)}"
        ) from error
    if not words:
        raise AgentConfigError(f"the command of {entry.name} is blank; set {named_by(entry)}")
    return words
