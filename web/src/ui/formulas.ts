/** Where a Markdown text has formulas, and the same text with each of them marked in one way. Pure. */

const FENCE = /^ {0,3}(`{3,}|~{3,})/;
/** A formula longer than this is no formula. */
const LONGEST = 10_000;

/**
 * Return the text with its formulas as `$…$`, and as `$$` on lines of their own; null when it has none.
 *
 * Models write `$…$`, `$$…$$`, `\(…\)` and `\[…\]`. A dollar sign that is money or a variable is escaped: a formula
 * begins before no space and ends after none, and no letter or digit follows it. Code stays as it is.
 */
export function withFormulas(text: string): string | null {
  if (!/\$|\\[([]/.test(text)) return null;
  let out = "";
  let found = false;
  let at = 0;
  const none = new Map<string, number>();
  let line = 0; // where this one begins
  const pass = (length: number): void => {
    const end = text.slice(at, at + length).lastIndexOf("\n");
    if (end >= 0) line = at + end + 1;
    at += length;
  };
  while (at < text.length) {
    const code = (at === 0 || text[at - 1] === "\n" ? fenceAt(text, at) : 0) || spanAt(text, at);
    if (code > 0) {
      out += text.slice(at, at + code);
      pass(code);
      continue;
    }
    const formula = formulaAt(text, at, none);
    if (formula) {
      found = true;
      out += written(formula, text.slice(Math.max(line, at - 100), at), text[at + formula.length]);
      pass(formula.length);
    } else if (text[at] === "\\") {
      out += text.slice(at, at + 2);
      pass(2);
    } else {
      out += text[at] === "$" ? "\\$" : text[at];
      pass(1);
    }
  }
  return found ? out : null;
}

interface Formula {
  tex: string;
  display: boolean;
  length: number;
}

/** How long the fenced code is that begins here; 0 for none. */
function fenceAt(text: string, at: number): number {
  const line = text.slice(at, at + 200);
  const mark = FENCE.exec(line)?.[1];
  if (!mark) return 0;
  const close = new RegExp(`\\n {0,3}\\${mark[0]}{${mark.length},}[ \\t]*(?=\\n|$)`, "g");
  close.lastIndex = at + mark.length;
  const end = close.exec(text);
  return (end ? end.index + end[0].length : text.length) - at;
}

/** How long the inline code is that begins here, or the run of backticks that begins none; 0 for neither. */
function spanAt(text: string, at: number): number {
  if (text[at] !== "`") return 0;
  let run = 1;
  while (text[at + run] === "`") run += 1;
  const close = new RegExp(`(?<!\`)\`{${run}}(?!\`)`, "g");
  close.lastIndex = at + run;
  const end = close.exec(text);
  return end ? end.index + run - at : run;
}

const PAIRS = [
  ["$$", "$$", true],
  ["\\[", "\\]", true],
  ["\\(", "\\)", false],
  ["$", "$", false],
] as const;

/** @param none up to where each mark is known to come no more: or many that open and never close would cost a square. */
function formulaAt(text: string, at: number, none: Map<string, number>): Formula | null {
  if (text[at] !== "$" && text[at] !== "\\") return null;
  for (const [open, close, display] of PAIRS) {
    if (!text.startsWith(open, at)) continue;
    const begin = at + open.length;
    if (begin < (none.get(close) ?? 0)) return null;
    const end = closing(text, begin, close);
    if (end < 0) {
      none.set(close, -end);
      return null;
    }
    const tex = text.slice(begin, end);
    if (!tex.trim() || (close === "$" && !isTight(tex, text[end + 1]))) return null;
    return { tex, display, length: end + close.length - at };
  }
  return null;
}

/** Where the formula ends that begins here: in its paragraph, and not too far; negative, how far none does. */
function closing(text: string, begin: number, mark: string): number {
  let at = begin;
  for (; at < text.length && at - begin < LONGEST; at += 1) {
    if (text.startsWith(mark, at)) return at;
    if (text[at] === "\\") at += 1;
    else if (text[at] === "\n" && /^[ \t]*(\n|$)/.test(text.slice(at + 1, at + 80))) break;
  }
  return -at;
}

const isTight = (tex: string, after: string | undefined): boolean => !/^\s|\s$/.test(tex) && !/[\p{L}\d]/u.test(after ?? "");

/** Return a formula as the parser reads it; one that has its line for itself is a block. */
function written({ tex, display }: Formula, before: string, after: string | undefined): string {
  if (display && before.trim() === "" && (after === undefined || after === "\n")) {
    const inside = tex.trim().split("\n").map((one) => before + one.trim());
    return `$$\n${inside.join("\n")}\n${before}$$`;
  }
  const mark = tex.includes("$") || display ? "$$" : "$";
  return `${mark}${tex.replace(/\s*\n\s*/g, " ")}${mark}`;
}
