/** The server's hunks as lines that can be drawn: numbered, paired, without white space. Pure. */

import type { WireHunk } from "../api/types.ts";

/** One line of a file, as it was, as it is, or both. */
export interface Line {
  readonly type: "normal" | "insert" | "delete";
  readonly content: string;
  readonly oldLine: number | null;
  readonly newLine: number | null;
  /** It ends with CR LF. */
  readonly cr?: boolean;
  /** The last line of a file, which nothing ends. */
  readonly open?: boolean;
}

/** Two lines beside each other; null where a side has none. */
export type Pair = readonly [Line | null, Line | null];

/** A hunk with the id that landings know it by. */
export interface ReviewHunk {
  readonly id: string;
  readonly heading: string;
  readonly oldStart: number;
  readonly oldLines: number;
  readonly newStart: number;
  readonly newLines: number;
  readonly lines: readonly Line[];
}

const made = new WeakMap<WireHunk, ReviewHunk>();

/** Return one hunk as lines with their numbers, made once; `\ No newline` marks are no lines. */
export function hunkData(hunk: WireHunk): ReviewHunk {
  const known = made.get(hunk) ?? parsed(hunk);
  made.set(hunk, known);
  return known;
}

function parsed(hunk: WireHunk): ReviewHunk {
  let oldLine = hunk.old_start;
  let newLine = hunk.new_start;
  const lines: Line[] = [];
  const text = hunk.text.endsWith("\n") ? hunk.text.slice(0, -1) : hunk.text;
  for (const line of text.split("\n")) {
    const cr = line.endsWith("\r") ? { cr: true } : {};
    const content = cr.cr ? line.slice(1, -1) : line.slice(1);
    if (line.startsWith("+")) {
      lines.push({ type: "insert", content, oldLine: null, newLine, ...cr });
      newLine += 1;
    } else if (line.startsWith("-")) {
      lines.push({ type: "delete", content, oldLine, newLine: null, ...cr });
      oldLine += 1;
    } else if (line.startsWith("\\")) {
      const last = lines.pop();
      if (last) lines.push({ ...last, open: true });
    } else if (!line.startsWith("@@")) {
      lines.push({ type: "normal", content, oldLine, newLine, ...cr });
      oldLine += 1;
      newLine += 1;
    }
  }
  return {
    id: hunk.id,
    heading: `@@ -${hunk.old_start},${hunk.old_lines} +${hunk.new_start},${hunk.new_lines} @@`,
    oldStart: hunk.old_start,
    oldLines: hunk.old_lines,
    newStart: hunk.new_start,
    newLines: hunk.new_lines,
    lines,
  };
}

/** Call `each` for every run of deleted lines and the inserted ones that follow it. */
export function eachRun(lines: readonly Line[], each: (deleted: Line[], inserted: Line[]) => void, kept: (line: Line) => void): void {
  let index = 0;
  while (index < lines.length) {
    const from = index;
    while (lines[index]?.type === "delete") index += 1;
    const middle = index;
    while (lines[index]?.type === "insert") index += 1;
    if (index > from) each(lines.slice(from, middle), lines.slice(middle, index));
    const line = lines[index];
    if (line?.type === "normal") {
      kept(line);
      index += 1;
    }
  }
}

/** Hide changes that are only white space: pairs of equal words become unchanged lines. */
export function withoutWhitespace(hunk: ReviewHunk): ReviewHunk {
  const bare = (text: string): string => text.replace(/\s+/g, "");
  const lines: Line[] = [];
  eachRun(
    hunk.lines,
    (deleted, inserted) => {
      const same =
        deleted.length === inserted.length &&
        deleted.every((line, at) => bare(line.content) === bare(inserted[at]?.content ?? ""));
      if (!same) return void lines.push(...deleted, ...inserted);
      for (const [at, line] of inserted.entries()) {
        lines.push({ ...line, type: "normal", oldLine: deleted[at]?.oldLine ?? null });
      }
    },
    (line) => lines.push(line),
  );
  return { ...hunk, lines };
}

/** Pair deleted with inserted lines, as two columns show them. */
export function paired(lines: readonly Line[]): Pair[] {
  const pairs: Pair[] = [];
  eachRun(
    lines,
    (deleted, inserted) => {
      for (let at = 0; at < Math.max(deleted.length, inserted.length); at += 1) {
        pairs.push([deleted[at] ?? null, inserted[at] ?? null]);
      }
    },
    (line) => pairs.push([line, line]),
  );
  return pairs;
}

/** Return the line after a side of a hunk; a side without lines names the line before it. */
function behind(start: number, count: number): number {
  return count === 0 ? start + 1 : start + count;
}

/** Unchanged lines that a diff leaves out: `newFrom` … `newTo` of the new side, null = to the end of the file. */
export interface Gap {
  readonly key: string;
  readonly newFrom: number;
  readonly newTo: number | null;
  /** What to add to a new line's number for the old one. */
  readonly shift: number;
}

/** Return what lies unshown before, between and behind the hunks of a file. */
export function gapsOf(hunks: readonly ReviewHunk[]): (Gap | null)[] {
  const gaps: (Gap | null)[] = [];
  let newFrom = 1;
  let shift = 0;
  for (const hunk of hunks) {
    const newTo = hunk.newLines === 0 ? hunk.newStart : hunk.newStart - 1;
    gaps.push(newTo >= newFrom ? { key: `gap:${newFrom}`, newFrom, newTo, shift } : null);
    newFrom = behind(hunk.newStart, hunk.newLines);
    shift = behind(hunk.oldStart, hunk.oldLines) - newFrom;
  }
  const last = hunks.at(-1);
  let trailing = 0;
  for (let at = (last?.lines.length ?? 0) - 1; at >= 0 && last?.lines[at]?.type === "normal"; at -= 1) trailing += 1;
  // With fewer than three unchanged lines behind the last change the file ends there.
  gaps.push(last && trailing >= 3 ? { key: `gap:${newFrom}`, newFrom, newTo: null, shift } : null);
  return gaps;
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
