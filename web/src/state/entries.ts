/** What a conversation shows: its entries and state as values. Not here: how frames change them (`conversation.ts`). */

import type { FileRow, LandingProgress, Todo, ToolDiff, ToolUse, TurnState, Usage } from "../api/frames.ts";
import type { Pieces } from "./pieces.ts";


interface Base {
  key: string;
  turn: string | null;
}

export interface UserEntry extends Base {
  kind: "user";
  text: string;
  mode: string;
  by: string | null;
  door: string | null;
}
export interface TextEntry extends Base, Pieces {
  kind: "text";
  done: boolean;
}
export interface ThinkingEntry extends Base, Pieces {
  kind: "thinking";
  effort: string;
  done: boolean;
}
export interface ToolEntry extends Base {
  kind: "tool";
  tool: string;
  input: Record<string, unknown>;
  status: string;
  result: string | null;
  truncated: boolean;
  tainted: boolean;
  progress: string;
  startedAt: number | null;
  endedAt: number | null;
  /** What the call changed in text files, where it did. */
  diff?: ToolDiff | null;
}
export interface RequestEntry extends Base {
  kind: "request";
  ask: "approval" | "user" | "effect" | "plan" | "budget";
  tools: ToolUse[];
  text: string;
  expiresAt: string | null;
  decision: string | null;
  feedback: string | null;
}
export interface SubagentEntry extends Base {
  kind: "subagent";
  task: string;
  agentType: string;
  status: string;
  summary: string;
  toolCount: number | null;
  elapsed: number | null;
  handle: string | null;
  tokens: number | null;
}
export interface NoteEntry extends Base {
  kind: "note";
  tone: "info" | "warn" | "error";
  text: string;
  code: string | null;
  retryable: boolean;
}
export interface EndEntry extends Base {
  kind: "end";
  state: "done" | "interrupted";
  reason: string | null;
  usage: Usage;
  changed: number | null;
  snapshot: string | null;
}

export type Entry =
  | UserEntry
  | TextEntry
  | ThinkingEntry
  | ToolEntry
  | RequestEntry
  | SubagentEntry
  | NoteEntry
  | EndEntry;

export interface Queued {
  inbox: string;
  turn: string;
  position: number;
  kind: string;
  text: string;
  by: string | null;
  door: string | null;
}

export interface Flags {
  plan: boolean;
  teams: boolean;
  approval: boolean;
}

export interface ConversationState {
  entries: readonly Entry[];
  /** Where an entry stands, by its key. */
  places: ReadonlyMap<string, number>;
  queued: readonly Queued[];
  status: TurnState;
  turn: string | null;
  cursor: number;
  todos: readonly Todo[];
  /** Teammates by name, as they were last told of. */
  teammates: Readonly<Record<string, { role: string; status: string }>>;
  /** Files the branch has changed, while a turn runs; null = not told yet. */
  changedFiles: readonly FileRow[] | null;
  changedCount: number | null;
  /** Grows whenever the branch's files may differ from what was shown before. */
  filesVersion: number;
  /** Grows when a turn ends or a setting changes: totals are worth asking for again. */
  factsVersion: number;
  lastInputTokens: number;
  tier: string | null;
  /** How far the landing or undo of many files is that runs now. */
  landing: LandingProgress | null;
  viewers: number;
  flags: Partial<Flags>;
  /** Errors that belong to no turn, newest last. */
  alerts: readonly { key: string; text: string; code: string | null }[];
}

export const EMPTY: ConversationState = {
  entries: [],
  places: new Map(),
  queued: [],
  status: "idle",
  turn: null,
  cursor: 0,
  todos: [],
  teammates: {},
  changedFiles: null,
  changedCount: null,
  filesVersion: 0,
  factsVersion: 0,
  lastInputTokens: 0,
  tier: null,
  landing: null,
  viewers: 1,
  flags: {},
  alerts: [],
};
