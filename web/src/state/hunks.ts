/** The server's hunks in the form the diff viewer draws. Pure. */

import type { ChangeData, HunkData } from "react-diff-view";
import type { WireHunk } from "../api/types.ts";

/** A hunk with the id that landings know it by. */
export interface ReviewHunk extends HunkData {
  id: string;
}

/** Return one hunk as lines with their numbers; `\ No newline` marks are no lines. */
export function hunkData(hunk: WireHunk): ReviewHunk {
  let oldLine = hunk.old_start;
  let newLine = hunk.new_start;
  const changes: ChangeData[] = [];
  const lines = hunk.text.endsWith("\n") ? hunk.text.slice(0, -1).split("\n") : hunk.text.split("\n");
  for (const line of lines) {
    const content = line.slice(1);
    if (line.startsWith("+")) {
      changes.push({ type: "insert", isInsert: true, content, lineNumber: newLine });
      newLine += 1;
    } else if (line.startsWith("-")) {
      changes.push({ type: "delete", isDelete: true, content, lineNumber: oldLine });
      oldLine += 1;
    } else if (!line.startsWith("\\") && !line.startsWith("@@")) {
      changes.push({ type: "normal", isNormal: true, content, oldLineNumber: oldLine, newLineNumber: newLine });
      oldLine += 1;
      newLine += 1;
    }
  }
  return {
    id: hunk.id,
    content: `@@ -${hunk.old_start},${hunk.old_lines} +${hunk.new_start},${hunk.new_lines} @@`,
    oldStart: hunk.old_start,
    oldLines: hunk.old_lines,
    newStart: hunk.new_start,
    newLines: hunk.new_lines,
    changes,
  };
}

/** Hide changes that are only white space: pairs of equal words become unchanged lines. */
export function withoutWhitespace(hunk: ReviewHunk): ReviewHunk {
  const bare = (text: string): string => text.replace(/\s+/g, "");
  const changes: ChangeData[] = [];
  let index = 0;
  while (index < hunk.changes.length) {
    const from = index;
    while (hunk.changes[index]?.type === "delete") index += 1;
    const deleted = hunk.changes.slice(from, index);
    const middle = index;
    while (hunk.changes[index]?.type === "insert") index += 1;
    const inserted = hunk.changes.slice(middle, index);
    const same =
      deleted.length > 0 &&
      deleted.length === inserted.length &&
      deleted.every((change, at) => bare(change.content) === bare(inserted[at]?.content ?? ""));
    if (same) {
      deleted.forEach((change, at) => {
        const other = inserted[at];
        if (change.type !== "delete" || other?.type !== "insert") return;
        changes.push({
          type: "normal",
          isNormal: true,
          content: other.content,
          oldLineNumber: change.lineNumber,
          newLineNumber: other.lineNumber,
        });
      });
    } else {
      changes.push(...deleted, ...inserted);
    }
    const kept = hunk.changes[index];
    if (kept && kept.type === "normal") {
      changes.push(kept);
      index += 1;
    }
  }
  return { ...hunk, changes };
}

/** Pair deleted with inserted lines, as two columns show them. */
export function zipped(hunk: ReviewHunk): ReviewHunk {
  const changes: ChangeData[] = [];
  let deleted: ChangeData[] = [];
  let inserted: ChangeData[] = [];
  const settle = (): void => {
    for (let at = 0; at < Math.max(deleted.length, inserted.length); at += 1) {
      changes.push(...deleted.slice(at, at + 1), ...inserted.slice(at, at + 1));
    }
    deleted = [];
    inserted = [];
  };
  for (const change of hunk.changes) {
    if (change.type === "delete") deleted.push(change);
    else if (change.type === "insert") inserted.push(change);
    else {
      settle();
      changes.push(change);
    }
  }
  settle();
  return { ...hunk, changes };
}

const LANGUAGES: Readonly<Record<string, string>> = {
  py: "python", pyi: "python", js: "javascript", mjs: "javascript", cjs: "javascript", jsx: "jsx", ts: "typescript",
  tsx: "tsx", json: "json", md: "markdown", html: "markup", xml: "markup", svg: "markup", css: "css", scss: "scss",
  sh: "bash", bash: "bash", zsh: "bash", yml: "yaml", yaml: "yaml", toml: "toml", ini: "ini", cfg: "ini", go: "go",
  rs: "rust", java: "java", kt: "kotlin", c: "c", h: "c", cpp: "cpp", cc: "cpp", hpp: "cpp", cs: "csharp", rb: "ruby",
  php: "php", swift: "swift", sql: "sql", diff: "diff", patch: "diff", lua: "lua", r: "r", pl: "perl", graphql: "graphql",
}; // prettier-ignore

/** Return the name by which the highlighter knows a file's language, null when it knows none. */
export function languageOf(path: string): string | null {
  const name = path.split("/").pop()?.toLowerCase() ?? "";
  if (name === "makefile") return "makefile";
  if (name === "dockerfile") return "docker";
  return LANGUAGES[name.split(".").pop() ?? ""] ?? null;
}
