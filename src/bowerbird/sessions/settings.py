"""The limits and times of sessions, with the defaults of the settings chapter.

Here: one frozen value that the composition root fills from `Settings`. Not here: reading
settings, or what enforces them.
"""

from typing import Literal

import msgspec


class SessionSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Times in seconds unless the name says otherwise; names as in settings.

    Attributes:
        lease_s, heartbeat_s: `dispatch.*`: when a silent process loses its session; how often it renews.
        parallel_turns: `limits.parallel_turns` of this process.
        queue_per_session, queue_total: waiting inputs, then QueueFull.
        message_bytes: text of one message (`limits.message_mb`).
        max_attempts: `turn.max_attempts`: processes that may die with a turn.
        resume_external: `resume.external`: `tell` the model, or `ask` a person.
        approval_timeout_s, approval_expiry_days: how long a question keeps the turn, then waits.
        grace_s: `shutdown.grace_s`.
        dedupe_days: `inbox.dedupe_days`. outbox_age_h: `outbox.max_age_h`.
        deleted_days, sessions_days, detail_days: `retention.*`; 0 keeps for ever.
        max_records, max_bytes: of one session, a fork's inherited ones not counted.
        session_usd … deployment_day_usd: `budgets.*`, None = no limit.
        landing_check: `landing.check`: the command that judges changes, "" = none.
        turn_tokens: `agent.max_token_budget`, 0 = no limit.
    """

    lease_s: float = 15.0
    heartbeat_s: float = 5.0
    sweep_s: float = 5.0
    parallel_turns: int = 64
    queue_per_session: int = 100
    queue_total: int = 10_000
    message_bytes: int = 1 << 20
    max_records: int = 100_000
    max_attempts: int = 3
    resume_external: Literal["tell", "ask"] = "tell"
    approval_timeout_s: float = 300.0
    approval_expiry_days: float = 7.0
    grace_s: float = 10.0
    dedupe_days: float = 30.0
    outbox_age_h: float = 24.0
    deleted_days: float = 7.0
    sessions_days: float = 0.0
    detail_days: float = 90.0
    max_bytes: int = 1 << 30
    session_usd: float | None = None
    user_day_usd: float | None = None
    schedule_day_usd: float | None = None
    deployment_day_usd: float | None = None
    landing_check: str = ""
    turn_tokens: int = 200_000
