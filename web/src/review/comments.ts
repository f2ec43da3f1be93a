/** Comments on lines: drafted here, sent together, then kept at their place or marked outdated (UI-29). */

import { useMemo, useState } from "react";
import { isOutdated, withComment, type ReviewComment } from "../state/comments.ts";
import type { ChangedFile } from "../state/review.ts";

export type { ReviewComment } from "../state/comments.ts";

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
  /** Say of comments that nothing more is to be done about them, or that there is. */
  resolve: (ids: readonly string[], resolved: boolean) => void;
  /** All drafts went to the agent, whose answer is turn `turn`. */
  markSent: (turn: string | null) => void;
}

export function useComments(conversation: string): Comments {
  const [all, setAll] = useState<readonly ReviewComment[]>(() => stored(conversation));
  return useMemo(() => {
    const set = (make: (now: readonly ReviewComment[]) => readonly ReviewComment[]): void =>
      setAll((now) => {
        const next = make(now);
        try {
          localStorage.setItem(key(conversation), JSON.stringify(next.slice(-200)));
        } catch {
          // storage is turned off: drafts hold until the page is closed
        }
        return next;
      });
    return {
      all,
      put: (comment) => set((now) => withComment(now, comment)),
      remove: (id) => set((now) => now.filter((known) => known.id !== id)),
      resolve: (ids, resolved) => set((now) => now.map((one) => (ids.includes(one.id) ? { ...one, resolved } : one))),
      markSent: (turn) => set((now) => now.map((comment) => (comment.sent ? comment : { ...comment, sent: true, turn }))),
    };
  }, [all, conversation]);
}

/** Return the comments of each file, those first whose place is still there. */
export function byFile(all: readonly ReviewComment[], files: readonly ChangedFile[]): ReadonlyMap<string, { here: readonly ReviewComment[]; outdated: readonly ReviewComment[] }> {
  const known = new Map(files.map((file) => [file.path, file]));
  const found = new Map<string, { here: ReviewComment[]; outdated: ReviewComment[] }>();
  for (const comment of all) {
    const file = known.get(comment.path);
    if (!file) continue;
    const mine = found.get(file.path) ?? { here: [], outdated: [] };
    found.set(file.path, mine);
    (isOutdated(comment, file) ? mine.outdated : mine.here).push(comment);
  }
  return found;
}
