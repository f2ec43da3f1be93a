/** What REST answers hold: the types generated from the server's OpenAPI, with members it adds beyond them. */

import type { components } from "../../generated/openapi";
import type { PatchedDiff } from "../state/patch.ts";

type Schemas = components["schemas"];

/** A schema's named members, without the `[key: string]` of answers that may hold more. */
type Known<Schema> = { [Key in keyof Schema as string extends Key ? never : Key]: Schema[Key] };

export type ConversationRow = Known<Schemas["Row"]> & {
  kind?: string;
  pending?: string | null;
  workspace?: string | null;
  parent?: string | null;
};

export interface QueuedRow {
  inbox_id: string;
  turn_id: string;
  position: number;
  kind: string;
  content: string;
  sender?: { id: string | null; name: string | null; door: string | null };
}

export type Conversation = Omit<Known<Schemas["Conversation"]>, "queued"> & {
  status?: string;
  workspace?: string | null;
  changed_files?: number;
  auto_approve?: boolean;
  context_window?: number;
  queued: QueuedRow[];
};

export type NewConversation = Partial<Schemas["NewConversation"]>;
export type ModelRow = Known<Schemas["ModelShown"]>;
export type Named = Known<Schemas["NamedShown"]>;
export type WorkspaceRow = Known<Schemas["WorkspaceShown"]>;
export type Sandbox = Known<Schemas["Sandbox"]>;
export type Question = Known<Schemas["Question"]>;
export type FileListRow = Known<Schemas["FileRow"]>;
export type FileText = Known<Schemas["FileShown"]>;
export type Call = Known<Schemas["CallShown"]> & { ms?: number | null };
export type Comment = Schemas["Comment"];
export type LandRequest = Partial<Schemas["Land"]>;

export interface WireHunk {
  id: string;
  old_start: number;
  old_lines: number;
  new_start: number;
  new_lines: number;
  text: string;
}

export interface WrittenFile {
  path: string;
  kind: "create" | "modify";
  type: string;
  size: number;
  mode: number | null;
  old_mode: number | null;
  binary: boolean;
  added: number;
  removed: number;
  renamed_from: string | null;
  similarity?: number | null;
  edits?: WireHunk[] | null;
  base: "exact" | "uncertain";
  flags: string[];
  grade: PlanEntry["grade"];
  reasons: string[];
  hunks: WireHunk[] | null;
  truncated?: boolean;
  too_large?: boolean;
  long_lines?: boolean;
  target?: string | null;
  old_target?: string | null;
}

export type GitRepository = Known<Schemas["GitRepository"]>;
export type GitRef = Known<Schemas["GitRef"]>;
export type FoldedRow = Known<Schemas["FoldedRow"]>;

export interface Diff {
  written: WrittenFile[];
  deleted: string[];
  git?: GitRepository[];
  folded?: FoldedRow[];
}

export type Conflict = Known<Schemas["ConflictShown"]> & { places: ConflictPlace[] | null };
export type ConflictPlace = Known<Schemas["PlaceShown"]>;
export type Taken = Schemas["Taken"];

export type PlanEntry = Known<Schemas["PlanRow"]>;

export interface LandingPlan {
  plan: string;
  entries: PlanEntry[];
  commits?: boolean;
  /** What lands can be a commit. */
  in_git?: boolean;
}

/** What `landing.check` found on a branch. */
/** What changed and what landing it would do, of one state of the branch. */
export interface ReviewShown {
  diff: Diff;
  plan: LandingPlan;
}

export type LandingCheck = Known<Schemas["CheckShown"]>;

export interface Refused {
  path: string;
  reason: string;
}

export interface Landing {
  id: string;
  /** `commit`: it went on another git branch, and no file landed. */
  kind: "land" | "undo" | "commit";
  state: string;
  at: string;
  branch: string;
  actor?: string;
  door?: string;
  undoes?: string | null;
  entries: { path: string; op: string; hunks?: string[]; merged?: boolean }[];
  refused: Refused[];
  history?: LandedRepository[];
}

/** What a landing did in one repository. */
export type LandedRepository = Known<Schemas["LandedRepository"]>;

export type OutcomeRow = Known<Schemas["OutcomeRow"]>;

export interface UsageRow {
  key: string;
  calls: number;
  input_tokens: number;
  output_tokens: number;
  cost: number | null;
  known_cost?: number;
  unpriced_calls?: number;
}

export type Subagent = Known<Schemas["SubagentShown"]>;

export interface TranscriptRow {
  cursor: number;
  at: string;
  role: "user" | "assistant" | "tool";
  content: string;
  id?: string;
  tool?: string;
  status?: string;
  truncated?: boolean;
  tool_calls?: { id: string; tool: string; input: Record<string, unknown> }[];
}

export type SubagentWhole = Omit<Known<Schemas["SubagentWhole"]>, "diff" | "transcript"> & {
  diff: PatchedDiff | null;
  transcript: TranscriptRow[];
};

export type Merged = Known<Schemas["Merged"]>;

export interface CheckRow {
  command: string;
  exit_code: number | null;
  seconds: number;
  output_tail: string;
  baseline_failed: boolean;
}

export interface RankedAttempt {
  handle: string;
  /** `self`, or another vendor's agent. */
  agent: string;
  rank: number;
  status: string;
  passed: number;
  failed: number;
  checks: CheckRow[];
  files: number;
  added: number;
  removed: number;
  touched_checks: boolean;
  cost: number | null;
  tokens: number;
  seconds: number;
  error: string | null;
}

export type Tournament = Omit<Known<Schemas["TournamentShown"]>, "attempts" | "ranking"> & {
  attempts: Subagent[];
  ranking: RankedAttempt[];
  note?: string | null;
};

export type NewTournament = { task: string; attempts?: number; checks?: string[]; models?: string[]; agents?: string[] };
export type MemoryVersion = Known<Schemas["VersionShown"]>;
export type AgentRow = Known<Schemas["AgentShown"]>;
export type AgentProbe = Known<Schemas["ProbeShown"]>;
export type AgentRun = Known<Schemas["AgentRunShown"]>;
export type Permission = Known<Schemas["PermissionShown"]>;
export type TokenRow = Schemas["TokenShown"];
export type TokenMade = Schemas["TokenMade"];
export type NewToken = Pick<Schemas["NewToken"], "name"> & Partial<Schemas["NewToken"]>;
export type Skill = Known<Schemas["SkillShown"]>;
export type Budget = Known<Schemas["BudgetShown"]>;
export type NewBudget = Schemas["NewBudget"];
