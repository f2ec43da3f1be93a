/** Which words of a changed line changed. Pure. */

import { eachRun, type Line } from "./hunks.ts";

/** Half-open ranges of characters, in order. */
export type Ranges = readonly (readonly [number, number])[];

const LONGEST_LINE = 2000;
const MOST_CELLS = 40_000;
const LEAST_COMMON = 0.3;

/** Return the changed ranges of every line that has a counterpart it shares enough with. */
export function wordEdits(lines: readonly Line[]): Map<Line, Ranges> {
  const found = new Map<Line, Ranges>();
  eachRun(
    lines,
    (deleted, inserted) => {
      for (let at = 0; at < Math.min(deleted.length, inserted.length); at += 1) {
        const [before, after] = [deleted[at], inserted[at]];
        const edits = before && after ? changedWords(before.content, after.content) : null;
        if (!edits || !before || !after) continue;
        found.set(before, edits[0]);
        found.set(after, edits[1]);
      }
    },
    () => undefined,
  );
  return found;
}

/** Return what changed on each side; null when the lines have too little in common for words to say more. */
export function changedWords(before: string, after: string): readonly [Ranges, Ranges] | null {
  if (before.length > LONGEST_LINE || after.length > LONGEST_LINE) return null;
  const a = words(before);
  const b = words(after);
  let head = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) head += 1;
  let tail = 0;
  while (tail < a.length - head && tail < b.length - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail += 1;
  const [keptA, keptB] = common(a.slice(head, a.length - tail), b.slice(head, b.length - tail));
  const same = (kept: ReadonlySet<number>, all: readonly string[], at: number): boolean =>
    at < head || at >= all.length - tail || kept.has(at - head);
  const shared = a.reduce((sum, word, at) => sum + (same(keptA, a, at) ? word.trim().length : 0), 0);
  const whole = Math.max(before.replace(/\s/g, "").length, after.replace(/\s/g, "").length);
  if (whole === 0 || shared / whole < LEAST_COMMON) return null;
  return [ranges(a, (at) => same(keptA, a, at)), ranges(b, (at) => same(keptB, b, at))];
}

function words(text: string): string[] {
  return text.match(/\s+|[\p{L}\p{N}_]+|./gu) ?? [];
}

/** Return the places of a longest common sequence of words in each list. */
function common(a: readonly string[], b: readonly string[]): [Set<number>, Set<number>] {
  const kept: [Set<number>, Set<number>] = [new Set(), new Set()];
  if (a.length * b.length > MOST_CELLS) return kept;
  const width = b.length + 1;
  const best = new Uint16Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i -= 1) {
    for (let j = b.length - 1; j >= 0; j -= 1) {
      best[i * width + j] =
        a[i] === b[j]
          ? (best[(i + 1) * width + j + 1] ?? 0) + 1
          : Math.max(best[(i + 1) * width + j] ?? 0, best[i * width + j + 1] ?? 0);
    }
  }
  for (let i = 0, j = 0; i < a.length && j < b.length; ) {
    if (a[i] === b[j]) {
      kept[0].add(i++);
      kept[1].add(j++);
    } else if ((best[(i + 1) * width + j] ?? 0) >= (best[i * width + j + 1] ?? 0)) i += 1;
    else j += 1;
  }
  return kept;
}

/** Join what changed; a space alone between two changed words is marked with them. */
function ranges(all: readonly string[], same: (at: number) => boolean): Ranges {
  const found: [number, number][] = [];
  let offset = 0;
  for (const [at, word] of all.entries()) {
    const next = offset + word.length;
    if (!same(at)) {
      const last = found.at(-1);
      const before = all[at - 1] ?? "";
      const joins = last && (last[1] === offset || (last[1] === offset - before.length && before.trim() === ""));
      if (last && joins) last[1] = next;
      else found.push([offset, next]);
    }
    offset = next;
  }
  return found;
}
