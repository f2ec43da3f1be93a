/** Changes in lines too long to be drawn: where each differs, cut to what can be read. Pure. */

import { eachRun, type Line, type ReviewHunk } from "./hunks.ts";

export const EXCERPT = 600;

/** One changed line: what is equal at both ends is left out. */
export interface LongChange {
  /** Its number, on the side that has it. */
  line: number;
  /** How many characters before the difference are equal. */
  equal: number;
  removed: string;
  added: string;
  /** How many further characters differ and are not shown. */
  removedMore: number;
  addedMore: number;
}

/** Return the changed lines of some hunks, in order; lines beside each other in a change are compared. */
export function longChanges(hunks: readonly ReviewHunk[]): LongChange[] {
  const found: LongChange[] = [];
  for (const hunk of hunks) {
    eachRun(
      hunk.lines,
      (deleted, inserted) => {
        for (let at = 0; at < Math.max(deleted.length, inserted.length); at += 1) found.push(changeOf(deleted[at], inserted[at]));
      },
      () => undefined,
    );
  }
  return found;
}

function changeOf(before: Line | undefined, after: Line | undefined): LongChange {
  const [old, now] = [before?.content ?? "", after?.content ?? ""];
  const shortest = before && after ? Math.min(old.length, now.length) : 0;
  let start = 0;
  while (start < shortest && old[start] === now[start]) start += 1;
  let end = 0;
  while (end < shortest - start && old[old.length - 1 - end] === now[now.length - 1 - end]) end += 1;
  const [removed, added] = [old.slice(start, old.length - end), now.slice(start, now.length - end)];
  return {
    line: after?.newLine ?? before?.oldLine ?? 0,
    equal: start,
    removed: removed.slice(0, EXCERPT),
    added: added.slice(0, EXCERPT),
    removedMore: Math.max(0, removed.length - EXCERPT),
    addedMore: Math.max(0, added.length - EXCERPT),
  };
}
