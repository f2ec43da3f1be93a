/** A file as it was before some hunks. Pure. */

import type { WireHunk } from "../api/types.ts";

/** Return `text` with `hunks` taken back: what both sides began with. */
export function baseOf(text: string, hunks: readonly Pick<WireHunk, "new_start" | "new_lines" | "text">[]): string {
  const lines = text.split("\n");
  for (const hunk of [...hunks].sort((a, b) => b.new_start - a.new_start)) {
    const body = hunk.text.endsWith("\n") ? hunk.text.slice(0, -1) : hunk.text;
    const old = body.split("\n").filter((line) => line.startsWith(" ") || line.startsWith("-"));
    // A hunk without new lines names the line before it.
    const from = hunk.new_lines === 0 ? hunk.new_start : hunk.new_start - 1;
    lines.splice(from, hunk.new_lines, ...old.map((line) => line.slice(1)));
  }
  return lines.join("\n");
}
