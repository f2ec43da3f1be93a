"""From the settings tree to the values that each room takes. Pure.

Here: which key becomes which field. Not here: loading settings, what the rooms do with them.
"""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bowerbird.config import Loaded, Secret, Settings, Url
from bowerbird.config.sections.doors import DOCUMENTATION_HOSTS
from bowerbird.models.settings import (
    LocalSettings,
    ModelOverride,
    ModelSettings,
    Price,
    ProviderSettings,
    RetryPolicy,
    RouterSettings,
    TelemetrySettings,
    TierSettings,
    Timeouts,
)

if TYPE_CHECKING:
    from bowerbird.agent.limits import Limits
    from bowerbird.agent.policy import Policy
    from bowerbird.config.sections.agent import ModelEntry, ProviderEntry
    from bowerbird.config.sections.doors import HookEntry
    from bowerbird.sessions.hooks import EventName, Hook
    from bowerbird.sessions.push.rules import PushRules
    from bowerbird.sessions.settings import SessionSettings
    from bowerbird.sessions.shown import Defaults
    from bowerbird.skills import SkillLibrary
    from bowerbird.store import StoreOptions
    from bowerbird.tools.web.web_tools import WebSettings
    from bowerbird.workspace import FlagRules, HistoryRules, WorkspaceLimits

EMBEDDED = "local:default"


def model_settings(loaded: Loaded) -> ModelSettings:
    """Return what `models` needs."""
    settings = loaded.settings
    agent, provider = settings.agent, settings.provider
    providers = {name: _provider(entry) for name, entry in settings.providers.entries.items()}
    if provider.api_key or provider.base_url:
        # Explicit values of `provider` apply to the chosen one and win.
        own = providers.get(provider.name, ProviderSettings())
        providers[provider.name] = ProviderSettings(
            api_key=_revealed(provider.api_key) or own.api_key,
            base_url=_revealed(provider.base_url) or own.base_url,
            headers=own.headers,
            timeouts=own.timeouts,
        )
    is_default = loaded.origin("provider.model").kind == "default"
    return ModelSettings(
        provider=provider.name,
        model="default" if provider.name == "local" and is_default else provider.model,
        providers=providers,
        overrides={name: _override(entry) for name, entry in settings.models.items()},
        retry=RetryPolicy(agent.llm_max_retries, agent.llm_retry_base_delay, agent.llm_retry_max_delay),
        router=_router(settings),
        local=LocalSettings(
            data_dir=Path(agent.data_dir),
            context_window=settings.local.context_window,
            threads=settings.local.threads,
            all_tools=settings.local.all_tools,
            small=settings.local.small,
        ),
        telemetry=TelemetrySettings(settings.telemetry.otlp_endpoint is not None, settings.telemetry.content),
        context_window=agent.context_window,
        secrets=tuple(sorted(settings.secrets())),
    )


def _revealed(value: Secret | Url | None) -> str | None:
    return value.reveal() if value is not None else None


def _provider(entry: "ProviderEntry") -> ProviderSettings:
    standard = Timeouts()
    return ProviderSettings(
        api_key=_revealed(entry.api_key),
        base_url=_revealed(entry.base_url),
        headers={name: value.reveal() for name, value in entry.headers.items()},
        timeouts=Timeouts(
            standard.connect_s,
            entry.timeout or standard.first_event_s,
            entry.idle_timeout or standard.silence_s,
        ),
    )


def _override(entry: "ModelEntry") -> ModelOverride:
    price = entry.price
    return ModelOverride(
        context_window=entry.context_window,
        max_output_tokens=entry.max_output_tokens,
        images=entry.images,
        constrained_output=entry.constrained_output,
        thinking_form=entry.thinking_form,
        efforts=entry.efforts,
        temperature=entry.temperature,
        price=Price(price.input, price.output, price.cache_read, price.cache_write) if price else None,
        fallback=entry.fallback_models,
    )


def _router(settings: Settings) -> RouterSettings:
    router = settings.model_router
    tiers = {
        name: TierSettings(
            name=tier.name,
            model=tier.model,
            temperature=tier.temperature,
            max_tokens=tier.max_tokens,
            base_url=_revealed(tier.base_url),
            api_key=_revealed(tier.api_key),
        )
        for name, tier in router.tiers.items()
    }
    return RouterSettings(router.enabled, router.default_tier, tiers)


def session_settings(settings: Settings) -> "SessionSettings":
    """Return what `sessions` needs."""
    from bowerbird.sessions.settings import SessionSettings

    budgets, limits = settings.budgets, settings.limits
    return SessionSettings(
        lease_s=settings.dispatch.lease_s,
        heartbeat_s=settings.dispatch.heartbeat_s,
        parallel_turns=limits.parallel_turns,
        queue_per_session=limits.queue_per_session,
        queue_total=limits.queue_total,
        message_bytes=int(limits.message_mb * (1 << 20)),
        max_attempts=settings.turn.max_attempts,
        resume_external=settings.resume.external,
        approval_timeout_s=settings.approval.timeout_s,
        approval_expiry_days=settings.approval.expiry_days,
        grace_s=settings.shutdown.grace_s,
        dedupe_days=settings.inbox.dedupe_days,
        outbox_age_h=settings.outbox.max_age_h,
        deleted_days=settings.retention.deleted_days,
        sessions_days=settings.retention.sessions_days,
        detail_days=settings.retention.detail_days,
        session_usd=budgets.session_usd,
        user_day_usd=budgets.user_day_usd,
        schedule_day_usd=budgets.schedule_day_usd,
        deployment_day_usd=budgets.deployment_day_usd,
        landing_check=settings.landing.check.strip(),
        turn_tokens=settings.agent.max_token_budget,
    )


def session_defaults(settings: Settings) -> "Defaults":
    """Return what a session has when nobody said otherwise."""
    from bowerbird.sessions.shown import Defaults

    agent = settings.agent
    return Defaults(
        preset=agent.preset,
        enable_approval=settings.approval.default == "unsafe",
        enable_thinking=agent.thinking_enabled,
        thinking_effort=agent.thinking_effort,
    )


def store_options(settings: Settings) -> "StoreOptions":
    """Return what `store` needs."""
    from bowerbird.store import StoreOptions

    store = settings.store
    return StoreOptions(
        durability=store.durability,
        busy_timeout_s=store.busy_timeout_s,
        min_free_mb=store.min_free_mb,
        adopt=store.adopt,
        inline_max_kb=settings.journal.inline_max_kb,
    )


def workspace_limits(settings: Settings) -> "WorkspaceLimits":
    """Return the limits of branches."""
    from bowerbird.workspace import WorkspaceLimits

    section = settings.workspace
    return WorkspaceLimits(
        write_mb=section.write_mb,
        edit_mb=section.edit_mb,
        changed_bytes=section.changed_bytes,
        changed_paths=section.changed_paths,
        depth=section.depth,
    )


def landing_rules(loaded: Loaded, workspace: Path | None) -> "FlagRules":
    """Return what is shown apart at landing: settings files in use in `workspace` too."""
    from bowerbird.workspace import FlagRules

    section = loaded.settings.landing
    in_use: list[str] = []
    if workspace is not None:
        inside = [file for file in loaded.files if file.is_relative_to(workspace)]
        in_use = [file.relative_to(workspace).as_posix() for file in inside]
    return FlagRules(
        flag=section.flag,
        unflag=section.unflag,
        ignore=section.ignore,
        agent_config=(*loaded.settings.memory.protected, *in_use),
    )


def skill_library(settings: Settings, workspace: Path | None) -> "SkillLibrary | None":
    """Return the skills of a workspace, None when they are off.

    What a skill asks for is there when this process has the variable, or the sandbox is given it, and when
    agents may use the bridge (AS-45).
    """
    from bowerbird.skills import SkillLibrary

    section, gateway = settings.skills, settings.gateway
    if not section.enabled:
        return None
    shown = {name: value.reveal() for name, value in settings.sandbox.env.items()}
    bridges = frozenset(name for name in gateway.bridges if gateway.enabled and gateway.for_agents(name))
    return SkillLibrary(workspace, section.directory, env={**os.environ, **shown}, bridges=bridges)


def git_rules(settings: Settings) -> "HistoryRules":
    """Return what landings do with commits."""
    from bowerbird.workspace import HistoryRules

    section = settings.git
    return HistoryRules(section.land, section.max_bytes, section.resign, section.agent_identity)


def push_rules(settings: Settings) -> "PushRules":
    """Return what web push needs."""
    from bowerbird.sessions.push.rules import PushRules

    push = settings.push
    return PushRules(push.enabled, push.after, push.contact, frozenset(push.allow_hosts))


def web_settings(settings: Settings) -> "WebSettings":
    """Return what the web tools need."""
    from bowerbird.sandbox.network.egress_policy import EgressPolicy
    from bowerbird.tools.web.web_tools import WebSettings

    # Whoever lists the hosts that commands may reach means what the agent fetches, too.
    network = settings.sandbox.network
    listed = network.mode == "allowlist"
    return WebSettings(
        brave_api_key=_revealed(settings.web.brave_api_key),
        fetch_timeout_s=settings.web.fetch_timeout,
        # The sites that come with the program are public: only what somebody added may be private.
        allow_hosts=tuple(host for host in settings.web.allow_hosts if host not in DOCUMENTATION_HOSTS),
        stays=True,
        admits=EgressPolicy.parse(network.allow).admits if listed else None,
    )


def turn_limits(settings: Settings, flags: dict[str, Any], model: str) -> "Limits":
    """Return the limits of a turn; `flags` of the session win."""
    from bowerbird.agent.limits import Limits

    agent, provider = settings.agent, settings.provider
    entry = settings.models.get(model)
    return Limits(
        max_iterations=int(flags.get("max_turns") or agent.max_turns),
        max_tokens_total=agent.max_token_budget,
        max_output_tokens=provider.max_tokens or agent.max_output_tokens,
        max_cost=flags.get("max_cost"),
        context_window=agent.context_window,
        compact_threshold=agent.compact_threshold,
        keep_results=agent.keep_results,
        allow_unpriced=bool(entry and entry.allow_unpriced),
    )


def turn_policy(settings: Settings, flags: dict[str, Any], named: Iterable[str] = ()) -> "Policy":
    """Return who is asked; `enable_approval` of the session wins.

    Args:
        named: hosts that people wrote in the conversation.
    """
    from bowerbird.agent.policy import Policy, Rule

    lists: dict[str, list[Rule]] = {"allow": [], "ask": [], "deny": []}
    for rule in settings.approval.rules:
        lists[rule.decision].append(Rule.parse(rule.tool))
    approval = flags.get("enable_approval")
    return Policy(
        deny=tuple(lists["deny"]),
        ask=tuple(lists["ask"]),
        allow=tuple(lists["allow"]),
        enable_approval=settings.approval.default == "unsafe" if approval is None else bool(approval),
        bridges=frozenset(
            name for name, entry in settings.gateway.bridges.items() if entry.approval == "allow"
        ),
        hosts=frozenset(named) | frozenset(host.lower() for host in settings.web.allow_hosts),
    )


def hooks_of(settings: Settings) -> "list[Hook]":
    """Return the user's hooks in their order."""
    from bowerbird.sessions.hooks import Hook

    section = settings.hooks
    named: tuple[tuple[EventName, tuple[HookEntry, ...]], ...] = (
        ("before_tool", section.before_tool),
        ("after_tool", section.after_tool),
        ("turn_end", section.turn_end),
        ("before_land", section.before_land),
        ("notification", section.notification),
    )
    return [
        Hook(
            event, each.command, each.tools, each.timeout, each.cwd,
            {name: value.reveal() for name, value in each.env.items()},
        )
        for event, some in named
        for each in some
    ]  # fmt: skip
