/** Where a comment on a line stands after the file changed below it (UI-29), and how the chat speaks of it. Pure. */

import { hunkData, type ReviewHunk } from "./hunks.ts";
import type { ChangedFile } from "./review.ts";

export interface ReviewComment {
  id: string;
  path: string;
  side: "old" | "new";
  line: number;
  endLine: number | null;
  text: string;
  /** The line as it was when the comment was written. */
  quote: string;
  sent: boolean;
  /** The turn that answers it, once sent. */
  turn?: string | null;
  /** Nothing more is to be done about it. */
  resolved?: boolean;
}

/** Comments on the same lines, in the order in which they were written. */
export interface Thread {
  key: string;
  comments: readonly ReviewComment[];
  resolved: boolean;
}

/** Return comments as threads: those on the same lines are one, resolved when all of it is. */
export function threadsOf(comments: readonly ReviewComment[]): Thread[] {
  const found = new Map<string, ReviewComment[]>();
  for (const comment of comments) {
    const key = `${comment.path}:${comment.side}${comment.line}-${comment.endLine ?? ""}`;
    found.set(key, [...(found.get(key) ?? []), comment]);
  }
  return [...found].map(([key, mine]) => ({ key, comments: mine, resolved: mine.every((one) => one.resolved === true) }));
}

/** Return comments after one more: a word in a thread that was resolved opens it again. */
export function withComment(now: readonly ReviewComment[], comment: ReviewComment): ReviewComment[] {
  const isBeside = (one: ReviewComment): boolean => one.path === comment.path && one.side === comment.side && one.line === comment.line;
  const others = now.filter((known) => known.id !== comment.id);
  return [...others.map((one) => (isBeside(one) && one.resolved ? { ...one, resolved: false } : one)), comment];
}

/** Return the text of a line of a diff, null when the diff does not show it. */
export function lineText(hunks: readonly ReviewHunk[], side: "old" | "new", line: number): string | null {
  for (const hunk of hunks) {
    for (const one of hunk.lines) if ((side === "new" ? one.newLine : one.oldLine) === line) return one.content;
  }
  return null;
}

/**
 * Return the line a comment is at now: where it was, or where its line has gone to; null when it is nowhere.
 *
 * Lines that many files have many times over (braces, blank ones) are not followed.
 */
export function lineNow(comment: Pick<ReviewComment, "side" | "line" | "quote">, hunks: readonly ReviewHunk[]): number | null {
  if (lineText(hunks, comment.side, comment.line) === comment.quote) return comment.line;
  if (comment.quote.trim().length < 4) return null;
  let nearest: number | null = null;
  for (const hunk of hunks) {
    for (const one of hunk.lines) {
      const line = comment.side === "new" ? one.newLine : one.oldLine;
      if (line === null || one.content !== comment.quote) continue;
      if (nearest === null || Math.abs(line - comment.line) < Math.abs(nearest - comment.line)) nearest = line;
    }
  }
  return nearest;
}

/** Whether what a sent comment was about is no longer there. */
export function isOutdated(comment: ReviewComment, file: ChangedFile): boolean {
  if (!comment.sent || file.hunks === null) return false;
  return lineNow(comment, file.hunks.map(hunkData)) === null;
}

/** A place that a message of comments speaks of. */
export interface CommentedPlace {
  path: string;
  line: number;
  endLine: number | null;
  old: boolean;
  quote: string;
  text: string;
}

const HEAD = "Review comments on your changes:";
const PLACE = /^(\/.+?) lines? (\d+)(?:-(\d+))?( \(before the change\))?:$/;

/** Return the places a message of comments is about, null for any other message. */
export function commentedPlaces(message: string): CommentedPlace[] | null {
  if (!message.startsWith(HEAD)) return null;
  const places: CommentedPlace[] = [];
  for (const line of message.slice(HEAD.length).trim().split("\n")) {
    const found = PLACE.exec(line);
    const last = places.at(-1);
    if (found) {
      const [, path = "", first = "1", end, old] = found;
      places.push({ path, line: Number(first), endLine: end ? Number(end) : null, old: Boolean(old), quote: "", text: "" });
    } else if (last && line.startsWith("> ") && !last.text) last.quote += `${line.slice(2)}\n`;
    else if (last) last.text = `${last.text}${last.text ? "\n" : ""}${line}`;
  }
  return places.length > 0 ? places.map((place) => ({ ...place, text: place.text.trim() })) : null;
}
