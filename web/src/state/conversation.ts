/**
 * A conversation as a fold over the socket's frames (SV-41). Pure: the same frames give the same view,
 * whether they came live or by replay; a frame that comes twice changes nothing.
 *
 * Here: what is shown, in which order. Not here: connections (`live.ts`), words for people (`plain.ts`).
 */

import type { FrameOf, ServerFrame } from "../api/frames.ts";
import { failure, note, notes, subagent } from "./asides.ts";
import { change, put, type Draft } from "./draft.ts";
import { EMPTY, type ConversationState, type Entry, type Flags, type Queued, type RequestEntry, type ToolEntry } from "./entries.ts";
import { NOTHING, take, type Pieces } from "./pieces.ts";

const BESIDE: ReadonlySet<string> = new Set(["hello", "accepted", "pong", "error"]);

/**
 * Return the conversation after `frames`.
 *
 * @param now milliseconds, for how long a tool runs; live frames only.
 */
export function reduce(state: ConversationState, frames: readonly ServerFrame[], now = 0): ConversationState {
  if (frames.length === 0) return state;
  const draft: Draft = {
    ...state,
    entries: state.entries.slice(),
    places: new Map(state.places),
    queued: state.queued.slice(),
  };
  for (const frame of frames) {
    apply(draft, frame, now);
    // These name the head of the history, which a replay may not have reached yet.
    if (!BESIDE.has(frame.type)) draft.cursor = Math.max(draft.cursor, frame.cursor ?? 0);
  }
  return draft;
}

/**
 * Return the whole conversation, of which `shown` is the end.
 *
 * @param before frames of its history up to where `since` begins. since: those that `shown` was made of.
 */
export function joined(before: readonly ServerFrame[], since: readonly ServerFrame[], shown: ConversationState, now = 0): ConversationState {
  const whole = reduce(reduce(EMPTY, before, now), since, now);
  const entries = whole.entries.map((entry) => {
    const at = shown.places.get(entry.key);
    const seen = at === undefined ? undefined : shown.entries[at];
    // When a call began and ended was seen then, not now.
    return entry.kind === "tool" && seen?.kind === "tool" ? { ...entry, startedAt: seen.startedAt, endedAt: seen.endedAt } : entry;
  });
  const { filesVersion, factsVersion } = shown; // nothing changed: more is known
  return withQueue({ ...whole, entries, filesVersion, factsVersion }, shown.queued);
}

/** Return the conversation with the queue as REST lists it: what waited before this viewer came. */
export function withQueue(state: ConversationState, rows: readonly Queued[]): ConversationState {
  const known = new Set([...state.places.keys(), ...state.queued.map((row) => `in:${row.inbox}`)]);
  const fresh = rows.filter((row) => !known.has(`in:${row.inbox}`));
  return fresh.length === 0 ? state : { ...state, queued: [...state.queued, ...fresh] };
}

/** Return the entries of a conversation whose beginning is not here yet, without results whose calls are not. */
export function fromFirstWhole(entries: readonly Entry[]): readonly Entry[] {
  const at = entries.findIndex((entry) => entry.kind !== "tool" || Object.keys(entry.input).length > 0);
  if (at === 0) return entries;
  return at < 0 ? [] : entries.slice(at);
}

/** Whether a turn runs or waits, so that typing would interrupt it. */
export function isBusy(state: ConversationState): boolean {
  return state.status === "running" || state.status === "waiting";
}

/** Return the open questions, oldest first. */
export function openRequests(state: ConversationState): RequestEntry[] {
  return state.entries.filter((entry) => entry.kind === "request" && entry.decision === null) as RequestEntry[];
}

function apply(draft: Draft, frame: ServerFrame, now: number): void {
  const turn = frame.turn_id ?? null;
  const at = frame.replay ? null : now;
  switch (frame.type) {
    case "hello":
      draft.status = frame.state;
      draft.tier = frame.tier;
      draft.viewers = frame.viewers;
      draft.landing = null; // whether it ended meanwhile is not said again; one that goes on is
      return;
    case "text_delta":
      return text(draft, frame, turn);
    case "thinking_delta":
    case "thinking":
      return thinking(draft, frame, turn);
    case "message_restart":
      return change(draft, `text:${frame.message_id}`, "text", (entry) => ({ ...entry, ...NOTHING }));
    case "message_end":
      return finish(draft, frame.message_id);
    case "tool_call":
      return put(draft, toolEntry(frame, turn, at));
    case "tool_progress":
      return change(draft, `call:${frame.id}`, "tool", (entry) => ({
        ...entry,
        progress: (entry.progress + frame.text).slice(-4000),
      }));
    case "tool_result":
      return toolResult(draft, frame, turn, at);
    case "tool_approval_request":
    case "plan_ready":
    case "budget_exceeded":
      return request(draft, frame, turn);
    case "tool_approval_result":
      for (const [id, said] of Object.entries(frame.calls ?? {}))
        if (said.command != null) change(draft, `call:${id}`, "tool", (entry) => ({ ...entry, input: { ...entry.input, command: said.command } }));
      return decide(draft, frame.request_id, frame.decision, null);
    case "plan_approved":
      return decide(draft, frame.request_id, "approved", null);
    case "plan_rejected":
      return decide(draft, frame.request_id, "rejected", frame.feedback ?? null);
    case "turn_queued":
      return queue(draft, frame, turn);
    case "turn_started":
      return started(draft, turn);
    case "interrupted":
    case "done":
      return ended(draft, frame, turn);
    default:
      return other(draft, frame, turn);
  }
}

function other(draft: Draft, frame: ServerFrame, turn: string | null): void {
  switch (frame.type) {
    case "plan_mode_changed":
      return flag(draft, { plan: frame.enabled });
    case "teams_changed":
      return flag(draft, { teams: frame.enabled });
    case "approval_changed":
      return flag(draft, { approval: frame.enabled });
    case "settings":
      draft.factsVersion += 1;
      return;
    case "todo_update":
      draft.todos = frame.todos;
      return;
    case "task_update":
      // A board belongs to a directory: a chat that has nothing to do with it is told, too, if it is looked at just then.
      if (frame.turn_id != null || draft.todos.length > 0 || draft.flags.teams) draft.todos = frame.tasks;
      return;
    case "branch_update":
      draft.changedFiles = frame.files;
      draft.changedCount = frame.changed ?? frame.files.length;
      draft.filesVersion += 1;
      return;
    case "landing_progress":
      draft.landing = frame.phase === "over" ? null : frame;
      return;
    case "landing":
      moved(draft);
      return note(draft, turn, "info", frame.message, "landing", `landing:${frame.message}`);
    case "notice":
      if (frame.kind === "subagents") moved(draft);
      return notes(draft, frame, turn);
    case "sandbox_tier":
      draft.tier = frame.tier;
      return;
    case "subagent_start":
    case "subagent_end":
      return subagent(draft, frame, turn);
    case "error":
      return failure(draft, frame, turn);
    default:
      return notes(draft, frame, turn);
  }
}

// ---------------------------------------------------------------- entries

function text(draft: Draft, frame: FrameOf<"text_delta">, turn: string | null): void {
  const key = `text:${frame.message_id}`;
  if (!draft.places.has(key)) {
    finish(draft, frame.message_id, "thinking");
    put(draft, { kind: "text", key, turn, ...NOTHING, done: false });
  }
  change(draft, key, "text", (entry) => ({ ...entry, ...placed(entry, frame) }));
}

function thinking(draft: Draft, frame: FrameOf<"thinking" | "thinking_delta">, turn: string | null): void {
  const id = frame.type === "thinking_delta" ? frame.message_id : `${turn}:${frame.cursor}`;
  const key = `think:${id}`;
  put(draft, { kind: "thinking", key, turn, ...NOTHING, effort: frame.effort ?? "", done: frame.type === "thinking" });
  const pieces = (entry: Pieces): Pieces => (frame.type === "thinking" ? take(NOTHING, frame.content, 0) : placed(entry, frame));
  change(draft, key, "thinking", (entry) => ({ ...entry, ...pieces(entry) }));
}

/** A text with one more piece; with `replay` the piece is all there is so far: what was there is of a stream that broke off. */
function placed(before: Pieces, frame: FrameOf<"text_delta" | "thinking_delta">): Pieces {
  return take(frame.replay === true && frame.offset === 0 ? NOTHING : before, frame.content, frame.offset);
}

function finish(draft: Draft, id: string, only?: "thinking"): void {
  if (!only) change(draft, `text:${id}`, "text", (entry) => ({ ...entry, done: true }));
  change(draft, `think:${id}`, "thinking", (entry) => ({ ...entry, done: true }));
}

function toolEntry(frame: FrameOf<"tool_call">, turn: string | null, at: number | null): ToolEntry {
  return {
    kind: "tool",
    key: `call:${frame.id}`,
    turn,
    tool: frame.tool,
    input: frame.input,
    status: "running",
    result: null,
    truncated: false,
    tainted: false,
    progress: "",
    startedAt: at,
    endedAt: null,
  };
}

function toolResult(
  draft: Draft,
  frame: FrameOf<"tool_result">,
  turn: string | null,
  at: number | null,
): void {
  put(draft, toolEntry({ ...frame, type: "tool_call", input: {} }, turn, null));
  change(draft, `call:${frame.id}`, "tool", (entry) => ({
    ...entry,
    status: frame.status,
    result: frame.result,
    truncated: frame.truncated === true,
    tainted: frame.tainted === true,
    diff: frame.diff ?? null,
    endedAt: entry.endedAt ?? at,
  }));
}

// ---------------------------------------------------------------- questions

function request(
  draft: Draft,
  frame: FrameOf<"tool_approval_request" | "plan_ready" | "budget_exceeded">,
  turn: string | null,
): void {
  const entry: RequestEntry = {
    kind: "request",
    key: `ask:${frame.request_id ?? `${turn}:${frame.cursor ?? 0}`}`,
    turn,
    ask: frame.type === "plan_ready" ? "plan" : frame.type === "budget_exceeded" ? "budget" : (frame.kind ?? "approval"),
    tools: frame.type === "tool_approval_request" ? frame.tools : [],
    text: frame.type === "plan_ready" ? frame.plan : frame.type === "budget_exceeded" ? frame.message : (frame.text ?? ""),
    expiresAt: frame.type === "tool_approval_request" ? (frame.expires_at ?? null) : null,
    decision: null,
    feedback: null,
  };
  put(draft, entry);
  draft.status = "waiting";
}

function decide(draft: Draft, id: string | undefined, decision: string, feedback: string | null): void {
  const key = id ? `ask:${id}` : draft.entries.findLast((e) => e.kind === "request" && e.decision === null)?.key;
  if (key) change(draft, key, "request", (entry) => ({ ...entry, decision, feedback }));
  if (draft.status === "waiting") draft.status = "running";
}

// ---------------------------------------------------------------- turns

function queue(draft: Draft, frame: FrameOf<"turn_queued">, turn: string | null): void {
  if (frame.content === undefined) return; // a turn that was put back: its input is known
  const inbox = frame.inbox_id || `@${frame.cursor ?? 0}`;
  if (frame.state === "cancelled") {
    draft.queued = draft.queued.filter((row) => row.inbox !== inbox);
    return;
  }
  if (draft.places.has(`in:${inbox}`)) return;
  if (!frame.inbox_id && confirm(draft, `in:${inbox}`, turn, frame.content)) return;
  const row: Queued = {
    inbox,
    turn: turn ?? "",
    position: frame.position,
    kind: frame.kind ?? "message",
    text: frame.content ?? "",
    by: frame.sender?.name ?? null,
    door: frame.sender?.door ?? null,
  };
  draft.queued = draft.queued.filter((known) => known.inbox !== inbox);
  const begins = frame.replay === true || turn === draft.turn || (draft.status === "idle" && frame.position === 0);
  if (begins || row.kind === "steer") show(draft, row);
  else draft.queued.push(row);
}

/** A replay may not name the input: what was seen live with the same words in the same turn is that one, once. */
function confirm(draft: Draft, key: string, turn: string | null, words: string): boolean {
  for (let at = draft.entries.length - 1; at >= 0; at -= 1) {
    const entry = draft.entries[at];
    if (entry === undefined || entry.turn !== turn) return false;
    const seen = `seen:${entry.key}`;
    if (entry.kind !== "user" || entry.text !== words || entry.key.startsWith("in:@") || draft.places.has(seen)) continue;
    draft.places.set(key, at);
    draft.places.set(seen, at);
    return true;
  }
  return false;
}

function show(draft: Draft, row: Queued): void {
  put(draft, {
    kind: "user",
    key: `in:${row.inbox}`,
    turn: row.turn,
    text: row.text,
    mode: row.kind,
    by: row.by,
    door: row.door,
  });
}

function started(draft: Draft, turn: string | null): void {
  draft.status = "running";
  draft.turn = turn;
  draft.factsVersion += 1; // the first turn gives a conversation its title
  for (const row of draft.queued.filter((known) => known.turn === turn)) show(draft, row);
  draft.queued = draft.queued.filter((row) => row.turn !== turn);
}

function ended(draft: Draft, frame: FrameOf<"done" | "interrupted">, turn: string | null): void {
  // What was asked stays open until a person answers it, however the turn stopped for its viewers.
  const waits = frame.type === "done" && typeof frame.waiting_for === "string";
  draft.status = waits ? "waiting" : "idle";
  draft.lastInputTokens = frame.usage.last_input_tokens || draft.lastInputTokens;
  draft.flags = { ...draft.flags, plan: frame.usage.plan_mode };
  draft.filesVersion += 1;
  draft.factsVersion += 1;
  if (frame.type === "done" && typeof frame.changed === "number") draft.changedCount = frame.changed;
  draft.entries = draft.entries.map((entry) => (entry.turn === turn ? closed(entry, waits) : entry));
  put(draft, {
    kind: "end",
    key: `end:${turn}:${frame.cursor ?? 0}`,
    turn,
    state: frame.type,
    reason: frame.type === "done" ? (frame.stop_reason ?? null) : "interrupted",
    usage: frame.usage,
    changed: frame.type === "done" ? (frame.changed ?? null) : null,
    snapshot: frame.type === "done" ? (frame.snapshot_id ?? null) : null,
  });
}

/** An entry of a turn that is over: nothing of it goes on. */
function closed(entry: Entry, waits: boolean): Entry {
  if (entry.kind === "tool" && entry.status === "running") return { ...entry, status: "interrupted" };
  if ((entry.kind === "text" || entry.kind === "thinking") && !entry.done) return { ...entry, done: true };
  if (entry.kind === "subagent" && entry.status === "running") return { ...entry, status: "stopped" };
  if (entry.kind === "request" && entry.decision === null && !waits) return { ...entry, decision: "closed" };
  return entry;
}

// ---------------------------------------------------------------- the rest

/** The branch's files changed beside a turn: how many is for REST to say. */
function moved(draft: Draft): void {
  draft.filesVersion += 1;
  draft.factsVersion += 1;
  draft.changedCount = null;
}

function flag(draft: Draft, flags: Partial<Flags>): void {
  draft.flags = { ...draft.flags, ...flags };
  draft.factsVersion += 1;
}
