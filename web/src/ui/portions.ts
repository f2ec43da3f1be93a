/**
 * A long text of Markdown in portions of whole blocks: each is a row of a list that draws only what is near the screen,
 * so that an answer of 250 kB costs what one of a screen does (UI-92). Pure.
 *
 * Here: where a text is parted, also while it grows. Not here: what is a block (`blocks.ts`), how one is drawn.
 */

import { DEFINITION, grownBlocks, type Blocks } from "./blocks.ts";
import { bounded } from "./bounded.ts";

export interface Portion {
  /** Those of a text, one after the other, are the text. */
  text: string;
  /** Nothing of it changes any more. */
  done: boolean;
}

/** A text that may grow in its portions. */
export interface Parted {
  text: string;
  portions: readonly Portion[];
  /** Where the last portion begins, and its blocks. */
  start: number;
  tail: Blocks;
}

/** A portion ends with the block that makes it weigh this much: about four screens. */
const MOST = 6000;
/** What a block weighs besides its characters. */
const BLOCK = 60;
/** A text that is shorter is one portion whatever it says. */
const SHORT = 1000;

/** Return a text by itself: a slice would keep the text that it was cut from, and there is one of each moment. */
const copied = (text: string): string => ` ${text}`.slice(1);

/** Return which block of a tail begins the next portion, null while none does. */
function nextStart({ blocks, sure }: Blocks): number | null {
  let weight = 0;
  for (let at = 0; at < sure; at += 1) {
    weight += (blocks[at]?.length ?? 0) + BLOCK;
    if (weight >= MOST) return at + 1;
  }
  return null;
}

/**
 * Return the portions of `text`; where it begins with the text before, those that are done are the same objects.
 *
 * Footnotes and references by name may stand in other portions than what names them: with such, a text that is
 * complete is one portion, as far as it is drawn as one.
 */
export function grownPortions(before: Parted | null, text: string, complete: boolean): Parted {
  if (complete && text.length > SHORT && DEFINITION.test(text) && bounded(text).rest === "") before = null;
  else if (text.length > SHORT) return parted(before, text, complete);
  return { text, portions: [{ text, done: complete }], start: 0, tail: grownBlocks(null, "") };
}

function parted(before: Parted | null, text: string, complete: boolean): Parted {
  const goesOn = before !== null && text.startsWith(before.text);
  const portions = goesOn ? before.portions.slice(0, -1) : [];
  let start = goesOn ? before.start : 0;
  let tail = grownBlocks(goesOn ? before.tail : null, text.slice(start));
  for (let next = nextStart(tail); next !== null; next = nextStart(tail)) {
    const end = tail.starts[next] ?? 0;
    portions.push({ text: copied(tail.text.slice(0, end)), done: true });
    start += end;
    tail = grownBlocks(null, tail.text.slice(end));
  }
  portions.push({ text: tail.text, done: complete });
  return { text, portions, start, tail };
}
