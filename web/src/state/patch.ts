/** Changes told as one patch, in the form reviews are drawn from. Pure. */

import type { WireHunk } from "../api/types.ts";
import { changedFiles, type ChangedFile } from "./review.ts";

/** What a subagent changed (DE-11): counts by path, and one unified patch. */
export interface PatchedDiff {
  written: { path: string; kind: "create" | "modify"; size: number; added: number; removed: number }[];
  deleted: string[];
  patch: string;
  patch_truncated: boolean;
}

const HEAD = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@/;

/**
 * Return the path of a file's header, null for other lines. Both names are the same one, so the middle is the
 * blank between them: a directory called "x b" cannot pass for another file.
 */
function pathOfHeader(line: string): string | null {
  if (!line.startsWith("diff --git ")) return null;
  const names = line.slice("diff --git ".length);
  const name = names.slice((names.length + 1) / 2);
  return name.startsWith('"') ? name.slice(2, -1) : name.slice(1);
}

/** Return the hunks of each path of a patch. */
export function hunksOfPatch(patch: string): ReadonlyMap<string, WireHunk[]> {
  const found = new Map<string, WireHunk[]>();
  let hunks: WireHunk[] | null = null;
  let left = { old: 0, new: 0 };
  for (const line of patch.split("\n")) {
    const open = hunks?.at(-1);
    if (open && (left.old > 0 || left.new > 0) && /^[ +\-\\]/.test(line)) {
      open.text += `${line}\n`;
      if (line[0] === " " || line[0] === "-") left.old -= 1;
      if (line[0] === " " || line[0] === "+") left.new -= 1;
      continue;
    }
    const name = pathOfHeader(line);
    if (name) {
      hunks = found.get(name) ?? [];
      found.set(name, hunks);
      continue;
    }
    const [, oldStart, oldLines = "1", newStart, newLines = "1"] = HEAD.exec(line) ?? [];
    if (!hunks || oldStart === undefined || newStart === undefined) continue;
    left = { old: Number(oldLines), new: Number(newLines) };
    hunks.push({
      id: `${found.size}:${hunks.length}`,
      old_start: Number(oldStart),
      old_lines: left.old,
      new_start: Number(newStart),
      new_lines: left.new,
      text: "",
    });
  }
  return found;
}

/** Return a subagent's changes as files of a review. */
export function filesOfPatch(diff: PatchedDiff): ChangedFile[] {
  const hunks = hunksOfPatch(diff.patch);
  const written = diff.written.map((row) => ({
    ...row,
    type: "file",
    mode: null,
    old_mode: null,
    binary: !hunks.get(row.path)?.length && row.added + row.removed === 0 && row.size > 0,
    renamed_from: null,
    base: "exact" as const,
    flags: [],
    grade: "free" as const,
    reasons: [],
    hunks: hunks.get(row.path) ?? [],
  }));
  return changedFiles({ written, deleted: diff.deleted }, null);
}
