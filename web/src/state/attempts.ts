/** Attempts at one task beside each other: what each changed, and which files are taken from which (UI-32). Pure. */

import type { RankedAttempt, Subagent, Tournament } from "../api/types.ts";
import type { Entry, ToolEntry } from "./entries.ts";
import type { PatchedDiff } from "./patch.ts";

export interface Column {
  handle: string;
  attempt: Subagent;
  /** Known once the tournament has ended. */
  ranked: RankedAttempt | null;
}

/** Return the attempts, best first once they are ranked. */
export function columnsOf(tournament: Tournament): Column[] {
  const ranks = new Map(tournament.ranking.map((row) => [row.handle, row]));
  const columns = tournament.attempts.map((attempt) => ({ handle: attempt.handle, attempt, ranked: ranks.get(attempt.handle) ?? null }));
  return columns.sort((a, b) => (a.ranked?.rank ?? 99) - (b.ranked?.rank ?? 99));
}

export type Composition = Readonly<Record<string, string>>;

export interface FileRow {
  path: string;
  /** By handle: what that attempt did to it. */
  cells: Readonly<Record<string, { added: number; removed: number; deleted: boolean }>>;
}

/** Return every path that some attempt changed. */
export function fileRows(diffs: Readonly<Record<string, PatchedDiff | null>>): FileRow[] {
  const rows = new Map<string, Record<string, { added: number; removed: number; deleted: boolean }>>();
  const put = (path: string, handle: string, cell: { added: number; removed: number; deleted: boolean }): void => {
    rows.set(path, { ...rows.get(path), [handle]: cell });
  };
  for (const [handle, diff] of Object.entries(diffs)) {
    for (const row of diff?.written ?? []) put(row.path, handle, { added: row.added, removed: row.removed, deleted: false });
    for (const path of diff?.deleted ?? []) put(path, handle, { added: 0, removed: 0, deleted: true });
  }
  return [...rows].map(([path, cells]) => ({ path, cells })).sort((a, b) => (a.path < b.path ? -1 : 1));
}

/** Return the composition that takes all files of one attempt. */
export function takeAll(rows: readonly FileRow[], handle: string): Composition {
  return Object.fromEntries(rows.filter((row) => row.cells[handle]).map((row) => [row.path, handle]));
}

/** Return the chosen paths by attempt. */
export function byAttempt(composition: Composition): Map<string, string[]> {
  const found = new Map<string, string[]>();
  for (const [path, handle] of Object.entries(composition)) found.set(handle, [...(found.get(handle) ?? []), path]);
  return found;
}

/** Return the calls by which a conversation's agent held tournaments, the newest first. */
export function tournamentCalls(entries: readonly Entry[]): ToolEntry[] {
  const calls = entries.filter((entry) => entry.kind === "tool" && entry.tool === "run_tournament" && entry.status === "ok");
  return (calls as ToolEntry[]).reverse();
}

/** Return a tournament as the result of the agent's call tells of it; null when the result is no such one. */
export function heldByAgent(conversation: string, call: Pick<ToolEntry, "key" | "input" | "result">, subagents: readonly Subagent[]): Tournament | null {
  let said: Partial<Pick<Tournament, "ranking" | "winner" | "note">>;
  try {
    said = JSON.parse(call.result ?? "") as typeof said;
  } catch {
    return null; // cut off, or a refusal in words
  }
  if (!Array.isArray(said?.ranking)) return null;
  const handles = new Set(said.ranking.map((row) => row.handle));
  const checks = call.input["checks"];
  return {
    id: call.key.slice("call:".length),
    conversation_id: conversation,
    state: "finished",
    task: String(call.input["task"] ?? ""),
    checks: Array.isArray(checks) ? checks.map(String) : [],
    merge: String(call.input["merge"] ?? "none"),
    attempts: subagents.filter((row) => handles.has(row.handle)),
    winner: said.winner ?? null,
    ranking: said.ranking,
    note: said.note ?? null,
    error: null,
  };
}
