"""The REST routes, one module per subject: conversations, turns, files, review, usage and so on.

Lives here: paths, members and statuses. Must not be here: decisions of sessions, files or access; the
modules beside this package hold what routes share.
"""

from fastapi import APIRouter


def routers() -> tuple[APIRouter, ...]:
    """Return every router in the order of the chapter."""
    from bowerbird.server.routes import (
        agents,
        approvals,
        background,
        board,
        catalogue,
        commands,
        conflicts,
        conversations,
        files,
        health,
        memory,
        permissions,
        push,
        review,
        schedules,
        settings,
        subagents,
        turn_list,
        turns,
        usage,
    )

    modules = (
        health,
        conversations,
        turn_list,
        turns,
        background,
        commands,
        catalogue,
        agents,
        files,
        review,
        conflicts,
        settings,
        subagents,
        approvals,
        schedules,
        usage,
        board,
        memory,
        permissions,
        push,
    )
    return tuple(module.router for module in modules)
