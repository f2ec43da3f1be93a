/** What one call changed, as lines that can be drawn (UI-70). Pure. Not here: the review's files (`review.ts`). */

import type { ToolDiff } from "../api/frames.ts";
import { hunkData, type Line } from "./hunks.ts";

export type DiffLine = { kind: "line"; line: Line } | { kind: "path"; path: string } | { kind: "gap" };

const HEAD = /^@@ -(\d+),(\d+) \+(\d+),(\d+) @@$/;

/** Return the lines of a call's changes: between hunks there is a gap, before each of several files its path. */
export function diffLines(diff: ToolDiff): DiffLine[] {
  const out: DiffLine[] = [];
  const rows = diff.text.replace(/\n$/, "").split("\n");
  let at = 0;
  while (at < rows.length) {
    const row = rows[at] ?? "";
    at += 1;
    const [, oldStart, oldLines, newStart, newLines] = HEAD.exec(row) ?? [];
    if (oldStart === undefined) {
      if (row.startsWith("+++ ")) out.push({ kind: "path", path: row.slice(4) });
      continue;
    }
    if (out.at(-1)?.kind === "line") out.push({ kind: "gap" });
    const begin = at;
    at = endOf(rows, at, Number(oldLines), Number(newLines));
    const hunk = { id: "", old_start: Number(oldStart), old_lines: Number(oldLines), new_start: Number(newStart), new_lines: Number(newLines), text: rows.slice(begin, at).join("\n") };
    if (at > begin) out.push(...hunkData(hunk).lines.map((line) => ({ kind: "line", line }) as const));
  }
  return out;
}

/** Where a hunk ends: by its counts, for a line of a file may look like a header. */
function endOf(rows: readonly string[], begin: number, oldLines: number, newLines: number): number {
  let [at, old, fresh] = [begin, oldLines, newLines];
  while (at < rows.length && (old > 0 || fresh > 0 || rows[at]?.startsWith("\\"))) {
    const sign = rows[at]?.[0];
    if (sign === " " || sign === "-") old -= 1;
    if (sign === " " || sign === "+") fresh -= 1;
    at += 1;
  }
  return at;
}

/** Whether there is more than the lines show: the server cuts long ones. */
export function isCut(diff: ToolDiff, lines: readonly DiffLine[]): boolean {
  const changed = lines.filter((one) => one.kind === "line" && one.line.type !== "normal").length;
  return changed < diff.added + diff.removed;
}
