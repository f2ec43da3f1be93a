/** The frames of the conversation socket (SV-37 … SV-41, `v=2`): what they hold, nothing that acts on them. */

export interface FileRow {
  name: string;
  path: string;
  size: number;
}

export interface Usage {
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

export interface ToolUse {
  name: string;
  input: Record<string, unknown>;
  id: string;
}

export interface Todo {
  id?: string | number;
  content?: string;
  subject?: string;
  status?: string;
}

interface Common {
  cursor?: number;
  turn_id?: string | null;
  replay?: boolean;
}

type Of<Type extends string, Fields = unknown> = Common & { type: Type } & Fields;

export type ServerFrame =
  | Of<"hello", { state: TurnState; tier: string; viewers: number; queued: number }>
  | Of<"text_delta", { content: string; message_id: string }>
  | Of<"thinking_delta", { content: string; effort?: string; message_id?: string }>
  | Of<"thinking", { content: string; effort?: string; message_id?: string }>
  | Of<"message_restart", { message_id: string; reason: string }>
  | Of<"message_end", { message_id: string; stop_reason?: string | null }>
  | Of<"tool_call", { tool: string; input: Record<string, unknown>; id: string }>
  | Of<"tool_progress", { id: string; text: string }>
  | Of<
      "tool_result",
      { tool: string; result: string; id: string; status: string; truncated?: boolean; tainted?: boolean }
    >
  | Of<
      "tool_approval_request",
      { tools: ToolUse[]; request_id: string; expires_at?: string | null; kind?: "user" | "effect"; text?: string }
    >
  | Of<"tool_approval_result", { decision: string; tools: ToolUse[]; request_id?: string }>
  | Of<"plan_ready", { plan: string; request_id?: string }>
  | Of<"plan_approved", { request_id?: string }>
  | Of<"plan_rejected", { feedback?: string | null; request_id?: string }>
  | Of<"budget_exceeded", { message: string; request_id?: string }>
  | Of<"plan_mode_changed" | "teams_changed" | "approval_changed", { enabled: boolean }>
  | Of<"settings", { changes: Record<string, unknown> }>
  | Of<"subagent_start", { subagent_id: string; task: string; agent_type: string; handle?: string }>
  | Of<"subagent_delta", { subagent_id: string; text?: string; content?: string }>
  | Of<
      "subagent_end",
      {
        subagent_id: string;
        summary: string;
        agent_type: string;
        usage?: Partial<Usage>;
        tool_count?: number;
        elapsed?: number;
        status?: string;
        handle?: string;
      }
    >
  | Of<"todo_update", { todos: Todo[] }>
  | Of<"task_update", { tasks: Todo[] }>
  | Of<
      "background_result",
      { notifications: { task_id: string; status: string; command?: string; result?: string }[] }
    >
  | Of<"teammate_status", { name: string; role: string; status: string }>
  | Of<"compact", { message: string }>
  | Of<"llm_request", LlmRequest>
  | Of<"llm_response", LlmResponse>
  | Of<"interrupted", { usage: Usage; files: FileRow[] }>
  | Of<
      "done",
      { usage: Usage; files: FileRow[]; stop_reason?: string | null; snapshot_id?: string | null; changed?: number }
    >
  | Of<"error", { message: string; code?: string; retryable?: boolean }>
  | Of<"accepted", { id: string; position: number; duplicate: boolean }>
  | Of<"turn_started">
  | Of<
      "turn_queued",
      {
        inbox_id?: string;
        position: number;
        kind?: string;
        state?: string;
        content?: string;
        sender?: { id: string | null; name: string | null; door: string | null };
      }
    >
  | Of<"branch_update", { files: FileRow[] }>
  | Of<"landing", { message: string }>
  | Of<"notice", { kind: string; message: string }>
  | Of<"retrying", { attempt: number; delay_s: number; reason: string }>
  | Of<"model_fallback", { from: string; to: string; reason: string }>
  | Of<"sandbox_tier", { tier: string }>
  | Of<"egress", { host?: string; allowed?: boolean }>
  | Of<"pong">;

export interface LlmRequest {
  seq: number;
  model: string;
  messages: unknown[];
  tools: unknown[];
  max_tokens: number;
  system?: unknown;
  agent?: string;
  message_count?: number;
  tool_count?: number;
}

export interface LlmResponse {
  seq: number;
  content: string;
  tool_calls: ToolUse[];
  done: boolean;
  usage?: Partial<Usage> | null;
  ms?: number;
  error?: string | null;
}

export type TurnState = "idle" | "queued" | "running" | "waiting" | "deleted";

export type Decision = "approve" | "deny" | "auto_approve";

export type InputKind = "message" | "interrupt" | "steer";

export type ClientFrame =
  | { type: InputKind; content: string; id: string }
  | { type: "cancel" }
  | { type: "resume" }
  | { type: "ping" }
  | { type: "tool_approval_response"; decision: string; request_id?: string; feedback?: string }
  | { type: "plan_approval"; decision: "approve" | "reject"; request_id?: string; feedback?: string }
  | { type: "toggle_plan_mode" | "toggle_teams" | "toggle_approval"; enabled: boolean };

/** Return a text as a frame, null for what is none: a proxy's page, say. */
export function parseFrame(text: string): ServerFrame | null {
  try {
    const value: unknown = JSON.parse(text);
    const known = typeof value === "object" && value !== null && "type" in value && typeof value.type === "string";
    return known ? (value as ServerFrame) : null;
  } catch {
    return null;
  }
}
