/**
 * How much of a block of Markdown is drawn as such: what an agent writes may have more markup than a browser draws
 * in a moment, or be nested deeper than its stack. Pure.
 *
 * Here: where such a block is cut. Not here: how the rest is shown (`markdown.tsx`).
 */

/** Of a block that costs more, what comes first is drawn; on a usual machine this takes about a tenth of a second. */
const MOST = 4000;
const FENCE = /^ {0,3}(`{3,}|~{3,})/;
const ITEM = /^\s*([-*+]|\d{1,9}[.)])\s/;
const MARKUP = /[[\]*_~`<>&@!\\$]|:\/\//g;
const CELL = /\|/g;
const DEEPEST = 40;
const DEEPEST_INDENT = 80;

export interface Bounded {
  /** Drawn as Markdown. */
  text: string;
  /** Shown as it was written; "" where everything is drawn. */
  rest: string;
}

const times = (line: string, what: RegExp): number => line.match(what)?.length ?? 0;

/** Whether a line is inside more lists or quotes than anybody writes. */
function isDeep(line: string): boolean {
  let markers = 0;
  let at = 0;
  for (; at < line.length && markers <= DEEPEST; at += 1) {
    const letter = line[at] ?? "";
    if (letter === ">" || ("-*+".includes(letter) && line[at + 1] === " ")) markers += 1;
    else if (letter !== " " && letter !== "\t") break;
  }
  return markers > DEEPEST || (ITEM.test(line) && line.search(/\S/) > DEEPEST_INDENT);
}

function costOf(line: string, inFence: boolean): number {
  if (inFence) return 0.1 + line.length / 200;
  return 1 + line.length / 50 + times(line, MARKUP) + 2 * times(line, CELL) + (ITEM.test(line) ? 3 : 0);
}

/** Return a block in what is drawn and what is not; a cut is made between lines only. */
export function bounded(block: string): Bounded {
  let cost = 0;
  let at = 0;
  let fence: string | null = null;
  while (at <= block.length) {
    const found = block.indexOf("\n", at);
    const end = found < 0 ? block.length : found;
    const line = block.slice(at, end);
    const mark = FENCE.exec(line)?.[1];
    if (mark && fence === null) fence = mark;
    else if (mark && fence !== null && mark.startsWith(fence) && line.trim() === mark) fence = null;
    cost += costOf(line, fence !== null);
    if (cost > MOST || (fence === null && isDeep(line))) return { text: block.slice(0, Math.max(0, at - 1)), rest: block.slice(at) };
    at = end + 1;
  }
  return { text: block, rest: "" };
}
