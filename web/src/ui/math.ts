/** Formulas: how they are found in Markdown and drawn. A chunk of its own, fetched when the first one is shown. */

import katex from "katex";
import "katex/dist/katex.min.css";
import remarkMath from "remark-math";

export const mathPlugin = remarkMath;

/** Return a formula as HTML, null for one that cannot be read. What it may say is bounded: sizes, macros, no links. */
export function drawn(tex: string, display: boolean): string | null {
  try {
    return katex.renderToString(tex, { displayMode: display, throwOnError: true, strict: false, trust: false, maxSize: 20, maxExpand: 200 });
  } catch {
    return null; // KaTeX has many ways to say that a formula is none
  }
}
