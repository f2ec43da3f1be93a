/** Comments on lines: drafted here, sent together, then kept at their place or marked outdated (UI-29). */

import { useState } from "react";
import type { ReviewHunk } from "../state/hunks.ts";

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
}

const key = (conversation: string): string => `bowerbird.comments.${conversation}`;

function stored(conversation: string): ReviewComment[] {
  try {
    const found: unknown = JSON.parse(localStorage.getItem(key(conversation)) ?? "[]");
    return Array.isArray(found) ? (found as ReviewComment[]) : [];
  } catch {
    return []; // unreadable: nothing was drafted that could be shown
  }
}

export interface Comments {
  all: readonly ReviewComment[];
  put: (comment: ReviewComment) => void;
  remove: (id: string) => void;
  markSent: () => void;
}

export function useComments(conversation: string): Comments {
  const [all, setAll] = useState<readonly ReviewComment[]>(() => stored(conversation));
  const set = (next: readonly ReviewComment[]): void => {
    setAll(next);
    try {
      localStorage.setItem(key(conversation), JSON.stringify(next.slice(-200)));
    } catch {
      // storage is turned off: drafts hold until the page is closed
    }
  };
  return {
    all,
    put: (comment) => set([...all.filter((known) => known.id !== comment.id), comment]),
    remove: (id) => set(all.filter((known) => known.id !== id)),
    markSent: () => set(all.map((comment) => ({ ...comment, sent: true }))),
  };
}

/** Return the text of a line of a diff, null when the diff does not show it. */
export function lineText(hunks: readonly ReviewHunk[], side: "old" | "new", line: number): string | null {
  for (const hunk of hunks) {
    for (const change of hunk.changes) {
      if (change.type === "normal") {
        if ((side === "new" ? change.newLineNumber : change.oldLineNumber) === line) return change.content;
      } else if ((change.type === "insert") === (side === "new") && change.lineNumber === line) {
        return change.content;
      }
    }
  }
  return null;
}

/** Whether what a comment was about is no longer there. */
export function isOutdated(comment: ReviewComment, hunks: readonly ReviewHunk[]): boolean {
  return comment.sent && lineText(hunks, comment.side, comment.line) !== comment.quote;
}
