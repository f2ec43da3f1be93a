/** Entries of a conversation as rows of a face (UI-7). Pure. */

import { answeredPlaces } from "../state/answers.ts";
import type { CommentedPlace } from "../state/comments.ts";
import type { Entry, TextEntry } from "../state/entries.ts";
import type { Face } from "../state/preferences.ts";
import { grownPortions, type Parted, type Portion } from "../ui/portions.ts";

/** What of a long text stands in this row. */
export interface Shown {
  portion: Portion;
  first: boolean;
  last: boolean;
}

export type Row =
  | { kind: "entry"; key: string; entry: Exclude<Entry, TextEntry> }
  | { kind: "portion"; key: string; entry: TextEntry; shown: Shown; answers?: readonly CommentedPlace[] | undefined }
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

/** Parts texts, and knows how it did: of one that grows only the end is looked at again. */
export class Parting {
  readonly #known = new WeakMap<TextEntry, readonly Portion[]>();
  readonly #growing = new Map<string, Parted>();

  of(entry: TextEntry): readonly Portion[] {
    const known = this.#known.get(entry);
    if (known) return known;
    const parted = grownPortions(this.#growing.get(entry.key) ?? null, entry.text, entry.done);
    if (entry.done) this.#growing.delete(entry.key);
    else this.#growing.set(entry.key, parted);
    this.#known.set(entry, parted.portions);
    return parted.portions;
  }
}

/** Return the key of the row with portion number `at` of a text; the first bears the text's own. */
const portionKey = (entry: string, at: number): string => (at === 0 ? entry : `${entry}#${at}`);

/** Return the key of the text that a row shows a portion of; any other row's own. */
export const textOfRow = (key: string): string => key.replace(/#\d+$/, "");

/**
 * Return what a face shows: each entry by itself for developers; for users a run of work is one row, however
 * many steps it has. A long text is several rows.
 */
export function rowsOf(entries: readonly Entry[], face: Face, parting = new Parting()): Row[] {
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
    if (entry.kind === "text") {
      const portions = parting.of(entry);
      for (const [at, portion] of portions.entries()) {
        const last = at === portions.length - 1;
        rows.push({ kind: "portion", key: portionKey(entry.key, at), entry, shown: { portion, first: at === 0, last }, answers: last ? answers.get(entry.key) : undefined });
      }
    } else rows.push({ kind: "entry", key: entry.key, entry });
  }
  settle();
  return rows;
}

/** Whether two rows show the same, so that the one that is drawn may stay. */
export function sameRow(a: Row, b: Row): boolean {
  if (a.kind === "work") {
    return b.kind === "work" && a.entries.length === b.entries.length && a.entries.every((entry, at) => entry === b.entries[at]);
  }
  if (a.kind === "entry" || b.kind !== "portion") return a.kind === b.kind && a.entry === b.entry;
  if ((a.answers?.length ?? 0) !== (b.answers?.length ?? 0)) return false;
  const isWhole = a.shown.last && a.shown.portion.done;
  return a.shown.portion === b.shown.portion && a.shown.last === b.shown.last && (!isWhole || a.entry === b.entry);
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
