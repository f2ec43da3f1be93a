/** Syntax colours and word-level marks of a diff; the highlighter is fetched when it is first needed. */

import { markEdits, tokenize, type HunkTokens } from "react-diff-view";
import type { ReviewHunk } from "../state/hunks.ts";

const MOST_CHANGES = 4000;
const LONGEST_LINE = 2000;

/** Return the tokens of some hunks, null where colouring would cost more than it shows. */
export async function tokensOf(hunks: readonly ReviewHunk[], language: string | null): Promise<HunkTokens | null> {
  const changes = hunks.reduce((sum, hunk) => sum + hunk.changes.length, 0);
  const long = hunks.some((hunk) => hunk.changes.some((change) => change.content.length > LONGEST_LINE));
  if (changes === 0 || changes > MOST_CHANGES || long) return null;
  const list = [...hunks];
  const enhancers = [markEdits(list, { type: "block" })];
  const { highlight } = await import("../ui/highlight.ts");
  try {
    if (language && highlight("", language)) {
      const refractor = { highlight: (text: string, name: string) => highlight(text, name) ?? [] };
      return tokenize(list, { highlight: true, refractor: refractor as never, language, enhancers });
    }
    return tokenize(list, { highlight: false, enhancers });
  } catch {
    return null; // a grammar that fails on this text: the lines are shown without colours
  }
}
