"""The WebSocket's frames, each one typed and documented in one place (SV-37 … SV-42).

Lives here: a frozen struct for each frame of either direction, reading and writing them. The server, the
terminal over `--server`, the page's types and the manual are made from these. Must not be here: when a frame
is sent or what it does (`server/socket/`), how it is drawn.

A new event: its frame in one of these modules, with a docstring, a typed member for each field and an
example. What is called like an event of `core/events.py` and has members of the same names is sent without
more (`frame_of_event`); one with a `line` is drawn without more. CONTRIBUTING has the recipe.
"""

from bowerbird.core.wire import commands
from bowerbird.core.wire.answers import (
    LlmRequest,
    LlmResponse,
    MessageEnd,
    MessageRestart,
    TextDelta,
    Thinking,
    ThinkingDelta,
    ToolCall,
    ToolProgress,
    ToolResult,
)
from bowerbird.core.wire.base import ClientFrame, ServerFrame, frame_type, said_in_a_line, text_of
from bowerbird.core.wire.conditions import (
    ApprovalChanged,
    BranchUpdate,
    Compact,
    Egress,
    Landing,
    LandingProgress,
    ModelFallback,
    Notice,
    PlanModeChanged,
    Retrying,
    SandboxTier,
    Settings,
    TeamsChanged,
)
from bowerbird.core.wire.kinds import (
    CLIENT_FRAMES,
    PLAIN_TYPES,
    SERVER_FRAMES,
    Unknown,
    event_of_frame,
    frame_of_event,
    read_frame,
)
from bowerbird.core.wire.questions import (
    BudgetExceeded,
    PlanApproved,
    PlanReady,
    PlanRejected,
    ToolApprovalRequest,
    ToolApprovalResult,
)
from bowerbird.core.wire.rows import FileRow, Sender, TurnUsage
from bowerbird.core.wire.turns import (
    Accepted,
    Done,
    Error,
    Hello,
    Interrupted,
    Pong,
    TurnQueued,
    TurnStarted,
)
from bowerbird.core.wire.work import (
    BackgroundResult,
    BackgroundRuns,
    SubagentEnd,
    SubagentStart,
    TaskUpdate,
    TeammateStatus,
    TodoUpdate,
)

__all__ = (
    "CLIENT_FRAMES",
    "PLAIN_TYPES",
    "SERVER_FRAMES",
    "Accepted",
    "ApprovalChanged",
    "BackgroundResult",
    "BackgroundRuns",
    "BranchUpdate",
    "BudgetExceeded",
    "ClientFrame",
    "Compact",
    "Done",
    "Egress",
    "Error",
    "FileRow",
    "Hello",
    "Interrupted",
    "Landing",
    "LandingProgress",
    "LlmRequest",
    "LlmResponse",
    "MessageEnd",
    "MessageRestart",
    "ModelFallback",
    "Notice",
    "PlanApproved",
    "PlanModeChanged",
    "PlanReady",
    "PlanRejected",
    "Pong",
    "Retrying",
    "SandboxTier",
    "Sender",
    "ServerFrame",
    "Settings",
    "SubagentEnd",
    "SubagentStart",
    "TaskUpdate",
    "TeammateStatus",
    "TeamsChanged",
    "TextDelta",
    "Thinking",
    "ThinkingDelta",
    "TodoUpdate",
    "ToolApprovalRequest",
    "ToolApprovalResult",
    "ToolCall",
    "ToolProgress",
    "ToolResult",
    "TurnQueued",
    "TurnStarted",
    "TurnUsage",
    "Unknown",
    "commands",
    "event_of_frame",
    "frame_of_event",
    "frame_type",
    "read_frame",
    "said_in_a_line",
    "text_of",
)
