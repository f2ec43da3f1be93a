/** Made by scripts/build_web_types.py from src/bowerbird/core/wire; never edited by hand. */

export interface Hello {
  type: "hello";
  state: "deleted" | "idle" | "queued" | "running" | "waiting";
  tier: string;
  viewers: number;
  queued: number;
  head: number;
  replay?: boolean;
  cursor: number;
  turn_id: string | null;
}

export interface Accepted {
  type: "accepted";
  id: string;
  position: number;
  duplicate: boolean;
  open_request?: string;
  replay?: boolean;
  cursor: number;
  turn_id: string | null;
}

export interface TurnQueued {
  type: "turn_queued";
  inbox_id?: string | null;
  position: number;
  kind?: string;
  state?: string;
  content?: string;
  sender?: Sender;
  replay?: boolean;
  cursor: number;
  turn_id: string | null;
}

export interface Sender {
  door: string | null;
  id: string | null;
  name: string | null;
}

export interface TurnStarted {
  type: "turn_started";
  replay?: boolean;
  cursor: number;
  turn_id: string | null;
}

export interface Interrupted {
  type: "interrupted";
  usage: TurnUsage;
  files: FileRow[];
  files_truncated?: boolean;
  replay?: boolean;
  cursor: number;
  turn_id: string | null;
}

export interface TurnUsage {
  input_tokens: number;
  output_tokens: number;
  last_input_tokens: number;
  plan_mode: boolean;
  cache_read_tokens: number;
  cache_write_tokens: number;
  reasoning_tokens: number;
  cost: number | null;
  subagents: Record<string, unknown>;
}

export interface FileRow {
  name: string;
  path: string;
  size: number;
}

export interface Done {
  type: "done";
  usage: TurnUsage;
  files: FileRow[];
  files_truncated?: boolean;
  stop_reason: string | null;
  waiting_for: string | null;
  snapshot_id: string | null;
  changed: number;
  replay?: boolean;
  cursor: number;
  turn_id: string | null;
}

export interface Error {
  type: "error";
  message: string;
  code: string;
  retryable: boolean;
  subagent_id?: string;
  replay?: boolean;
  cursor: number;
  turn_id: string | null;
}

export interface Pong {
  type: "pong";
  replay?: boolean;
  cursor: number;
  turn_id: string | null;
}

export interface TextDelta {
  type: "text_delta";
  content: string;
  message_id: string;
  offset: number;
  replay?: boolean;
  cursor: number;
  turn_id: string | null;
}

export interface ThinkingDelta {
  type: "thinking_delta";
  content: string;
  effort: string | null;
  message_id: string;
  offset: number;
  replay?: boolean;
  cursor: number;
  turn_id: string | null;
}

export interface Thinking {
  type: "thinking";
  content: string;
  effort: string | null;
  replay?: boolean;
  cursor: number;
  turn_id: string | null;
}

export interface MessageRestart {
  type: "message_restart";
  message_id: string;
  reason: string;
  replay?: boolean;
  cursor: number;
  turn_id: string | null;
}

export interface MessageEnd {
  type: "message_end";
  message_id: string;
  stop_reason: string;
  replay?: boolean;
  cursor: number;
  turn_id: string | null;
}

export interface ToolCall {
  type: "tool_call";
  tool: string;
  input: Record<string, unknown>;
  id: string;
  replay?: boolean;
  cursor: number;
  turn_id: string | null;
}

export interface ToolProgress {
  type: "tool_progress";
  id: string;
  text: string;
  replay?: boolean;
  cursor: number;
  turn_id: string | null;
}

export interface ToolResult {
  type: "tool_result";
  tool: string;
  result: string;
  id: string;
  status: string;
  truncated: boolean;
  tainted: boolean;
  diff?: ToolDiff;
  replay?: boolean;
  cursor: number;
  turn_id: string | null;
}

export interface ToolDiff {
  added: number;
  removed: number;
  text: string;
}

export interface LlmRequest {
  type: "llm_request";
  seq: number;
  model: string;
  messages: unknown[];
  tools: unknown[];
  max_tokens: number;
  system: string[];
  temperature: number | null;
  thinking_enabled: boolean;
  thinking_effort: string | null;
  message_count: number;
  tool_count: number;
  agent: string;
  replay?: boolean;
  cursor: number;
  turn_id: string | null;
}

export interface LlmResponse {
  type: "llm_response";
  seq: number;
  content: string;
  tool_calls: ToolUse[];
  done: boolean;
  usage: CallUsage | null;
  error: string | null;
  stop_reason: string | null;
  ms: number | null;
  first_token_ms: number | null;
  repairs?: string[];
  replay?: boolean;
  cursor: number;
  turn_id: string | null;
}

export interface ToolUse {
  diff?: ToolDiff;
  id: string;
  input: Record<string, unknown>;
  name: string;
  rules?: string[];
}

export interface CallUsage {
  cache_read_tokens?: number;
  cache_write_tokens?: number;
  cost?: number | null;
  estimated?: boolean;
  input_tokens?: number;
  output_tokens?: number;
  reasoning_tokens?: number;
}

export interface ToolApprovalRequest {
  type: "tool_approval_request";
  tools: ToolUse[];
  request_id: string;
  expires_at: string | null;
  kind?: "effect" | "user";
  text?: string;
  subagent_id?: string;
  replay?: boolean;
  cursor: number;
  turn_id: string | null;
}

export interface ToolApprovalResult {
  type: "tool_approval_result";
  decision: string;
  tools: Record<string, unknown>[];
  request_id: string;
  calls?: Record<string, CallAnswer>;
  subagent_id?: string;
  replay?: boolean;
  cursor: number;
  turn_id: string | null;
}

export interface CallAnswer {
  decision: "approve" | "deny";
  feedback?: string | null;
  command?: string | null;
}

export interface PlanReady {
  type: "plan_ready";
  plan: string;
  request_id: string;
  subagent_id?: string;
  replay?: boolean;
  cursor: number;
  turn_id: string | null;
}

export interface PlanApproved {
  type: "plan_approved";
  request_id: string;
  replay?: boolean;
  cursor: number;
  turn_id: string | null;
}

export interface PlanRejected {
  type: "plan_rejected";
  feedback: string | null;
  request_id: string;
  replay?: boolean;
  cursor: number;
  turn_id: string | null;
}

export interface BudgetExceeded {
  type: "budget_exceeded";
  message: string;
  request_id: string;
  subagent_id?: string;
  replay?: boolean;
  cursor: number;
  turn_id: string | null;
}

export interface SubagentStart {
  type: "subagent_start";
  subagent_id: string;
  task: string;
  agent_type: string;
  handle: string;
  parent_id: string;
  replay?: boolean;
  cursor: number;
  turn_id: string | null;
}

export interface SubagentEnd {
  type: "subagent_end";
  subagent_id: string;
  summary: string;
  agent_type: string;
  usage: Usage;
  handle: string;
  parent_id: string;
  status: string;
  tool_count: number;
  elapsed: number;
  replay?: boolean;
  cursor: number;
  turn_id: string | null;
}

export interface Usage {
  input_tokens: number;
  output_tokens: number;
  cache_read_tokens: number;
  cache_write_tokens: number;
  reasoning_tokens: number;
  repeated_tokens: number;
  model_calls: number;
  tool_calls: number;
  cost: number | null;
  estimated: boolean;
  subagents: Usage | null;
}

export interface TeammateStatus {
  type: "teammate_status";
  name: string;
  role: string;
  status: string;
  replay?: boolean;
  cursor: number;
  turn_id: string | null;
}

export interface TodoUpdate {
  type: "todo_update";
  todos: Todo[];
  replay?: boolean;
  cursor: number;
  turn_id: string | null;
}

export interface Todo {
  activeForm?: string;
  content: string;
  status: string;
}

export interface TaskUpdate {
  type: "task_update";
  tasks: Task[];
  replay?: boolean;
  cursor: number;
  turn_id: string | null;
}

export interface Task {
  activeForm?: string;
  blockedBy?: number[];
  blocks?: number[];
  description?: string;
  id: number;
  metadata?: Record<string, unknown>;
  owner?: string | null;
  status?: string;
  subject: string;
}

export interface BackgroundResult {
  type: "background_result";
  notifications: Notification[];
  replay?: boolean;
  cursor: number;
  turn_id: string | null;
}

export interface Notification {
  command: string;
  result: string;
  status: string;
  task_id: string;
}

export interface BackgroundRuns {
  type: "background_runs";
  runs: BackgroundRun[];
  replay?: boolean;
  cursor: number;
  turn_id: string | null;
}

export interface BackgroundRun {
  command: string;
  duration_ms?: number | null;
  exit_code?: number | null;
  output?: string;
  spill?: string | null;
  status: string;
  tail?: string;
  task_id: string;
  total_bytes?: number;
  truncated?: boolean;
}

export interface Compact {
  type: "compact";
  message: string;
  replay?: boolean;
  cursor: number;
  turn_id: string | null;
}

export interface PlanModeChanged {
  type: "plan_mode_changed";
  enabled: boolean;
  replay?: boolean;
  cursor: number;
  turn_id: string | null;
}

export interface TeamsChanged {
  type: "teams_changed";
  enabled: boolean;
  replay?: boolean;
  cursor: number;
  turn_id: string | null;
}

export interface ApprovalChanged {
  type: "approval_changed";
  enabled: boolean;
  replay?: boolean;
  cursor: number;
  turn_id: string | null;
}

export interface Settings {
  type: "settings";
  changes: Record<string, unknown>;
  replay?: boolean;
  cursor: number;
  turn_id: string | null;
}

export interface BranchUpdate {
  type: "branch_update";
  files: FileRow[];
  changed: number;
  replay?: boolean;
  cursor: number;
  turn_id: string | null;
}

export interface Landing {
  type: "landing";
  message: string;
  replay?: boolean;
  cursor: number;
  turn_id: string | null;
}

export interface LandingProgress {
  type: "landing_progress";
  kind: "land" | "undo";
  phase: "checking" | "over" | "placing" | "recording" | "saving" | "taking_back" | "writing";
  done: number;
  total: number;
  undoes: string | null;
  replay?: boolean;
  cursor: number;
  turn_id: string | null;
}

export interface Notice {
  type: "notice";
  kind: string;
  message: string;
  replay?: boolean;
  cursor: number;
  turn_id: string | null;
}

export interface SandboxTier {
  type: "sandbox_tier";
  tier: string;
  minimum: string;
  reasons: Record<string, string | null>;
  replay?: boolean;
  cursor: number;
  turn_id: string | null;
}

export interface Egress {
  type: "egress";
  host: string;
  port: number;
  verdict: string;
  bytes_in: number;
  bytes_out: number;
  replay?: boolean;
  cursor: number;
  turn_id: string | null;
}

export interface Retrying {
  type: "retrying";
  attempt: number;
  delay_s: number;
  reason: string;
  replay?: boolean;
  cursor: number;
  turn_id: string | null;
}

export interface ModelFallback {
  type: "model_fallback";
  from: string;
  to: string;
  reason: string;
  replay?: boolean;
  cursor: number;
  turn_id: string | null;
}

export interface Message {
  type: "message";
  content: string;
  id?: string | null;
  request_id?: string | null;
}

export interface Interrupt {
  type: "interrupt";
  content: string;
  id?: string | null;
  request_id?: string | null;
}

export interface Steer {
  type: "steer";
  content: string;
  id?: string | null;
  request_id?: string | null;
}

export interface Cancel {
  type: "cancel";
  id?: string | null;
  request_id?: string | null;
}

export interface Resume {
  type: "resume";
  id?: string | null;
  request_id?: string | null;
}

export interface ToolApprovalResponse {
  type: "tool_approval_response";
  decision: string;
  feedback?: string | null;
  calls?: Record<string, CallAnswer>;
  id?: string | null;
  request_id?: string | null;
}

export interface PlanApproval {
  type: "plan_approval";
  decision: "approve" | "reject";
  feedback?: string | null;
  id?: string | null;
  request_id?: string | null;
}

export interface TogglePlanMode {
  type: "toggle_plan_mode";
  enabled: boolean;
  id?: string | null;
  request_id?: string | null;
}

export interface ToggleTeams {
  type: "toggle_teams";
  enabled: boolean;
  id?: string | null;
  request_id?: string | null;
}

export interface ToggleApproval {
  type: "toggle_approval";
  enabled: boolean;
  id?: string | null;
  request_id?: string | null;
}

export interface Background {
  type: "background";
  id?: string | null;
  request_id?: string | null;
}

export interface CancelBackground {
  type: "cancel_background";
  task_id: string;
  id?: string | null;
  request_id?: string | null;
}

export interface Ping {
  type: "ping";
  id?: string | null;
  request_id?: string | null;
}

export type ServerFrame =
  | Hello
  | Accepted
  | TurnQueued
  | TurnStarted
  | Interrupted
  | Done
  | Error
  | Pong
  | TextDelta
  | ThinkingDelta
  | Thinking
  | MessageRestart
  | MessageEnd
  | ToolCall
  | ToolProgress
  | ToolResult
  | LlmRequest
  | LlmResponse
  | ToolApprovalRequest
  | ToolApprovalResult
  | PlanReady
  | PlanApproved
  | PlanRejected
  | BudgetExceeded
  | SubagentStart
  | SubagentEnd
  | TeammateStatus
  | TodoUpdate
  | TaskUpdate
  | BackgroundResult
  | BackgroundRuns
  | Compact
  | PlanModeChanged
  | TeamsChanged
  | ApprovalChanged
  | Settings
  | BranchUpdate
  | Landing
  | LandingProgress
  | Notice
  | SandboxTier
  | Egress
  | Retrying
  | ModelFallback;

export type ClientFrame =
  | Message
  | Interrupt
  | Steer
  | Cancel
  | Resume
  | ToolApprovalResponse
  | PlanApproval
  | TogglePlanMode
  | ToggleTeams
  | ToggleApproval
  | Background
  | CancelBackground
  | Ping;

/** What one line says of a frame; `{name}` stands for a member. */
export const LINES = {
  teammate_status: "{name} ({role}) is {status}",
  compact: "{message}",
  landing: "{message}",
  notice: "{message}",
  sandbox_tier: "commands now run in the sandbox tier {tier}",
  egress: "network: {host}:{port} {verdict}",
  model_fallback: "{from} does not answer ({reason}); going on with {to}",
} as const;
