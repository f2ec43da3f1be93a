/** Entries of a conversation as rows of a face (UI-7). Pure. */

import { answeredPlaces } from "../state/answers.ts";
import type { CommentedPlace } from "../state/comments.ts";
import type { Entry } from "../state/entries.ts";
import type { Face } from "../state/preferences.ts";

export type Row =
  | { kind: "entry"; key: string; entry: Entry; answers?: readonly CommentedPlace[] | undefined }
  | { kind: "work"; key: string; entries: readonly Entry[] };

/** Ends that need a person's attention in plain words; any other end is not said in the user face. */
const SAID_ENDS = new Set([
  "budget", "token_budget", "max_turns", "deadline", "stuck", "truncated", "refused", "cancelled", "disconnected",
  "approval_timeout", "crash_loop",
]); // prettier-ignore

function isWork(entry: Entry): boolean {
  return entry.kind === "tool" || entry.kind === "thinking" || entry.kind === "subagent";
}

function isHiddenFromUsers(entry: Entry): boolean {
  if (entry.kind === "note") return entry.tone === "info" && entry.code !== "landing";
  if (entry.kind === "end") return entry.state === "interrupted" || !SAID_ENDS.has(entry.reason ?? "");
  return entry.kind === "text" && entry.text.trim() === "";
}

/**
 * Return what a face shows: each entry by itself for developers; for users a run of work is one row, however
 * many steps it has.
 */
export function rowsOf(entries: readonly Entry[], face: Face): Row[] {
  const rows: Row[] = [];
  const answers = answeredPlaces(entries);
  let work: Entry[] = [];
  const settle = (): void => {
    const first = work[0];
    if (first) rows.push({ kind: "work", key: `work:${first.key}`, entries: work });
    work = [];
  };
  for (const entry of entries) {
    if (face === "user" && isWork(entry)) {
      work.push(entry);
      continue;
    }
    if (face === "user" && isHiddenFromUsers(entry)) continue;
    settle();
    rows.push({ kind: "entry", key: entry.key, entry, answers: answers.get(entry.key) });
  }
  settle();
  return rows;
}

/** Whether two rows show the same, so that the one that is drawn may stay. */
export function sameRow(a: Row, b: Row): boolean {
  if (a.kind === "work") {
    return b.kind === "work" && a.entries.length === b.entries.length && a.entries.every((entry, at) => entry === b.entries[at]);
  }
  if (b.kind === "work") return false;
  return a.entry === b.entry && (a.answers?.length ?? 0) === (b.answers?.length ?? 0);
}

/** Return the place of the first row of a turn, -1 when there is none. */
export function rowOfTurn(rows: readonly Row[], turn: string): number {
  return rows.findIndex((row) => (row.kind === "work" ? row.entries[0]?.turn : row.entry.turn) === turn);
}

/** Return the entries up to the end of turn number `turn` (from 1), as a replay shows them (UI-24). */
export function upToTurn(entries: readonly Entry[], turn: number): readonly Entry[] {
  let ends = 0;
  for (const [index, entry] of entries.entries()) {
    if (entry.kind === "end") ends += 1;
    if (ends === turn) return entries.slice(0, index + 1);
  }
  return entries;
}
