"""Subagents from settings: caps, types, checks.

Here: which key becomes which value. Not here: running subagents (`bowerbird.subagents`, `sessions.children`).
"""

from typing import TYPE_CHECKING

from bowerbird.agent.limits import Limits
from bowerbird.agent.policy import Policy
from bowerbird.app.mapping import turn_limits, turn_policy
from bowerbird.config import Settings
from bowerbird.sessions.subagents.by_others import ByOthers, OtherAgents
from bowerbird.sessions.subagents.runner import Children
from bowerbird.sessions.subagents.tournaments import Tournaments
from bowerbird.subagents.checks import TEST_GLOBS
from bowerbird.subagents.entries import Caps
from bowerbird.subagents.roles import AgentType
from bowerbird.subagents.session_tree import Rules

if TYPE_CHECKING:
    from bowerbird.app.ground import Ground
    from bowerbird.sessions.service import SessionService
    from bowerbird.store.rows.sessions import SessionRow

SESSION_DEPTH = 1  # DE-2: subagents of sessions have none of their own


def subagent_rules(settings: Settings, *, max_depth: int) -> Rules:
    """Return what `delegation.*` says.

    Args:
        max_depth: how deep subagents may nest.

    Raises:
        InvalidArgument: a custom type has the name of another.
    """
    section = settings.delegation
    types = (
        AgentType(
            name=name,
            description=entry.description,
            tools=None if entry.tools is None else frozenset(entry.tools),
            instructions=entry.instructions or "",
            model=entry.model or "",
        )
        for name, entry in section.types.items()
    )
    return Rules(
        max_depth=max_depth,
        caps=Caps(
            tasks_per_call=section.tasks_per_call,
            parallel=section.parallel,
            per_turn=section.per_turn,
            unmerged=section.unmerged,
            child_s=section.child_s,
        ),
        types=tuple(types),
        checks=section.checks,
        test_globs=section.test_globs or TEST_GLOBS,
    )


def session_children(ground: "Ground", service: "SessionService", agents: OtherAgents) -> Children:
    """Return what runs the subagents of a process's sessions; `agents` do what another vendor's shall do."""
    settings = ground.loaded.settings
    tiers = settings.model_router.tiers if settings.model_router.enabled else ()
    return Children(
        ground.store,
        ground.branches,
        service,
        rules=subagent_rules(settings, max_depth=SESSION_DEPTH),
        model_of=ground.maker.model_of,
        sandboxes=ground.sandboxes,
        model=settings.agent.subagent_model,
        temperature=settings.agent.subagent_temperature,
        tiers=tuple(sorted(tiers)),
        others=ByOthers(ground.store, service.settings, service.executor_id, agents),
    )


def door_tournaments(ground: "Ground", service: "SessionService", children: Children) -> Tournaments:
    """Return the tournaments that doors begin, on each session's own terms."""

    def terms(session: "SessionRow") -> tuple[Policy, Limits]:
        settings, flags = ground.maker.settings, dict(session.flags)
        policy = turn_policy(settings, flags)
        policy = policy.approved() if session.auto_approve else policy
        return policy, turn_limits(settings, flags, ground.maker.model_of(session))

    return Tournaments(ground.store, children, service.live, terms)
