/** Subagents as people see them: what their record says beside what was seen live. Pure. */

import type { Subagent } from "../api/types.ts";
import type { Entry, SubagentEntry } from "./entries.ts";

export type SubagentState = "running" | "finished" | "failed" | "merged" | "discarded" | "stopped";

const STATES: ReadonlySet<string> = new Set(["running", "finished", "failed", "merged", "discarded", "stopped"]);

/** Return the state a card shows: the record's, once the live one is over. */
export function stateOfSubagent(entry: SubagentEntry, record: Subagent | null): SubagentState {
  if (record && record.state !== "running") return record.state as SubagentState;
  if (entry.status === "running") return "running";
  if (entry.status === "ok" || entry.status === "done" || entry.status === "completed") return "finished";
  return STATES.has(entry.status) ? (entry.status as SubagentState) : "failed";
}

const MAKERS: ReadonlySet<string> = new Set(["spawn_subagents", "task", "run_tournament"]);

/** How many calls may have made subagents; grows when there may be records to ask for. */
export function makerCount(entries: readonly Entry[]): number {
  return entries.reduce((sum, entry) => {
    const counts = entry.kind === "subagent" || (entry.kind === "tool" && MAKERS.has(entry.tool));
    return sum + (counts ? (entry.status === "running" ? 1 : 2) : 0);
  }, 0);
}

function entryOf(record: Subagent, turn: string | null): SubagentEntry {
  const usage = record.usage as { input_tokens?: number; output_tokens?: number };
  const ended = record.ended ? new Date(record.ended).getTime() - new Date(record.created).getTime() : null;
  return {
    kind: "subagent",
    key: `sub:${record.session}`,
    turn,
    task: record.task,
    agentType: record.agent_type,
    status: record.ended ? record.state : "running",
    summary: record.error ?? record.result ?? "",
    toolCount: null,
    elapsed: ended === null ? null : ended / 1000,
    handle: record.handle,
    tokens: (usage.input_tokens ?? 0) + (usage.output_tokens ?? 0),
  };
}

/**
 * Return entries with a card for each subagent that was made while nobody watched: their beginning and end are
 * events of the moment, their records stay. A record stands behind the call that named its task.
 */
export function withRecords(entries: readonly Entry[], records: readonly Subagent[]): readonly Entry[] {
  const seen = new Set(entries.map((entry) => entry.key));
  const missing = records.filter((record) => !seen.has(`sub:${record.session}`));
  if (missing.length === 0) return entries;
  const out: Entry[] = [];
  for (const entry of entries) {
    out.push(entry);
    if (entry.kind !== "tool" || !MAKERS.has(entry.tool)) continue;
    const said = JSON.stringify(entry.input);
    for (const record of [...missing]) {
      if (!said.includes(JSON.stringify(record.task).slice(1, -1))) continue;
      out.push(entryOf(record, entry.turn));
      missing.splice(missing.indexOf(record), 1);
      if (entry.tool === "task") break;
    }
  }
  return out;
}
