/**
 * A changed file as rows that are drawn one by one, so that only what is seen is drawn (UI-26). Pure.
 *
 * Here: which rows there are and about how high each is. Not here: drawing (`review/`), what is chosen (`review.ts`).
 */

import { gapsOf, hunkData, paired, withoutWhitespace, type Gap, type Line, type Pair, type ReviewHunk } from "./hunks.ts";
import type { ChangedFile } from "./review.ts";

export type View = "unified" | "split";

/** Some lines of a file. `around` is what they are coloured with: a longer piece of the same text. */
export interface LinesRow {
  kind: "lines";
  key: string;
  estimate: number;
  hunk: ReviewHunk | null;
  around: readonly Line[];
  unified: readonly Line[];
  split: readonly Pair[] | null;
}

export type DiffRow =
  | LinesRow
  | { kind: "notes"; key: string; estimate: number }
  | { kind: "hunk"; key: string; estimate: number; hunk: ReviewHunk }
  | { kind: "gap"; key: string; estimate: number; gap: Gap; left: number | null; up: boolean; down: boolean }
  | { kind: "body"; key: string; estimate: number; what: Body };

/** What stands where there are no lines to compare. */
export type Body = "loading" | "problem" | "nothing" | "deleted" | "binary" | "image" | "special" | "large" | "huge" | "long" | "directory" | "mode";

/** How many lines of a gap are shown, from its beginning and from its end. */
export interface Opened {
  top: number;
  bottom: number;
}

/** What is known of a file beyond the list of changes. */
export interface Known {
  hunks: ChangedFile["hunks"];
  problem: string | null;
  /** The new side's lines, once somebody asked for unchanged ones. */
  text: readonly string[] | null;
  /** A deleted file's lines, once somebody asked for them. */
  gone: readonly string[] | null;
}

export interface Shape {
  view: View;
  ignoreSpace: boolean;
  /** Shown although it is large. */
  large: boolean;
  gaps: Readonly<Record<string, Opened>>;
}

/** How a file is drawn where `view` is wanted: one that is new, or gone, has only one side to show. */
export function sidesOf(file: Pick<ChangedFile, "kind">, view: View): View {
  return file.kind === "create" || file.kind === "delete" ? "unified" : view;
}

export const LINE_HEIGHT = 20;
export const STEP = 20;
const CHUNK = 24;
const SEGMENT = 480;
const LARGE = 3000;
const IMAGE = /\.(png|jpe?g|gif|webp|avif|bmp|ico)$/i;

export function isImage(path: string): boolean {
  return IMAGE.test(path);
}

/** Whether a file's changes are shown only when somebody asks: generated files, lock files. */
export function isLarge(file: ChangedFile): boolean {
  return file.added + file.removed > LARGE;
}

/** Return the rows of one file that is open. */
export function rowsOfFile(file: ChangedFile, known: Known | null, shape: Shape): DiffRow[] {
  const rows: DiffRow[] = [];
  const notes = (file.grade === "free" ? 0 : file.flags.length + Number(file.isRed)) + Number(hasWarning(file));
  if (notes > 0) rows.push({ kind: "notes", key: "notes", estimate: 24 + notes * 24 });
  const body = bodyOf(file, known, shape);
  if (body) rows.push({ kind: "body", key: `body:${body}`, estimate: body === "image" ? 240 : 48, what: body });
  if (file.kind === "delete" && known?.gone) {
    const lines = known.gone.map((content, at): Line => ({ type: "delete", content, oldLine: at + 1, newLine: null }));
    rows.push(...chunks("gone", null, lines, shape.view));
  }
  if (body) return rows;
  const hunks = (file.hunks ?? known?.hunks ?? []).map(hunkData);
  const gaps = file.kind === "create" ? [] : gapsOf(hunks);
  for (const [at, plain] of hunks.entries()) {
    rows.push(...gapRows(gaps[at] ?? null, known, shape, at > 0, true));
    const hunk = shape.ignoreSpace ? withoutWhitespace(plain) : plain;
    rows.push({ kind: "hunk", key: `hunk:${hunk.id}`, estimate: 34, hunk });
    rows.push(...chunks(hunk.id, hunk, hunk.lines, shape.view));
  }
  rows.push(...gapRows(gaps[hunks.length] ?? null, known, shape, true, false));
  return rows;
}

export function hasWarning(file: ChangedFile): boolean {
  return file.uncertain || file.drift === "conflict" || file.drift === "mergeable";
}

function bodyOf(file: ChangedFile, known: Known | null, shape: Shape): Body | null {
  const hunks = file.hunks ?? known?.hunks ?? null;
  if (known?.problem) return "problem";
  if (file.kind === "delete" && file.type === "dir") return "directory";
  if (file.kind === "delete") return known?.gone ? null : "deleted";
  if (file.type !== "file") return "special";
  if (file.binary) return isImage(file.path) ? "image" : "binary";
  if (file.tooLarge) return "huge";
  if (isLarge(file) && !shape.large) return "large";
  if (hunks === null) return "loading";
  if (file.longLines) return "long";
  if (hunks.length > 0) return null;
  return file.oldMode !== null && file.oldMode !== file.mode ? "mode" : "nothing";
}

/** Cut lines into pieces small enough to be drawn in a moment. */
function chunks(key: string, hunk: ReviewHunk | null, lines: readonly Line[], view: View): LinesRow[] {
  const rows: LinesRow[] = [];
  for (let from = 0; from < lines.length; from += SEGMENT) {
    const around = lines.length <= SEGMENT ? lines : lines.slice(from, from + SEGMENT);
    const pairs = view === "split" ? paired(around) : null;
    const count = pairs ? pairs.length : around.length;
    for (let at = 0; at < count; at += CHUNK) {
      const split = pairs ? pairs.slice(at, at + CHUNK) : null;
      const unified = pairs ? [] : around.slice(at, at + CHUNK);
      const estimate = (split ?? unified).length * LINE_HEIGHT;
      rows.push({ kind: "lines", key: `${key}:${from + at}`, estimate, hunk, around, unified, split });
    }
  }
  return rows;
}

function gapRows(gap: Gap | null, known: Known | null, shape: Shape, up: boolean, down: boolean): DiffRow[] {
  if (!gap) return [];
  const end = gap.newTo ?? known?.text?.length ?? null;
  const size = end === null ? null : end - gap.newFrom + 1;
  if (size !== null && size <= 0) return [];
  const opened = shape.gaps[gap.key] ?? { top: 0, bottom: 0 };
  const text = known?.text ?? null;
  const top = text ? Math.min(opened.top, size ?? 0) : 0;
  const bottom = text ? Math.min(opened.bottom, (size ?? 0) - top) : 0;
  const left = size === null ? null : size - top - bottom;
  const rows: DiffRow[] = [];
  if (text && top > 0) rows.push(...chunks(`${gap.key}:top`, null, unchanged(gap, text, gap.newFrom, top), shape.view));
  if (left !== 0) rows.push({ kind: "gap", key: gap.key, estimate: 30, gap, left, up, down });
  if (text && bottom > 0 && end !== null) {
    rows.push(...chunks(`${gap.key}:bottom`, null, unchanged(gap, text, end - bottom + 1, bottom), shape.view));
  }
  return rows;
}

function unchanged(gap: Gap, text: readonly string[], from: number, count: number): Line[] {
  return text.slice(from - 1, from - 1 + count).map((content, at) => ({
    type: "normal" as const,
    content,
    oldLine: from + at + gap.shift,
    newLine: from + at,
  }));
}
