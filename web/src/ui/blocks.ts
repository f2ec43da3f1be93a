/** Markdown cut into top-level blocks, so that a growing answer is parsed one block at a time (UI-16). Pure. */

/** A line that defines a footnote or a reference by name; what names it may stand anywhere in the text. */
export const DEFINITION = /^ {0,3}\[\^?[^\]\n]+\]:/m;

const FENCE = /^ {0,3}(`{3,}|~{3,})/;

/**
 * Return the blocks of `text`; joined by blank lines they are the text again.
 *
 * A cut is made only where no construct can go on: after a blank line outside a fence, before a line that is
 * neither indented nor part of a list.
 */
export function splitBlocks(text: string): string[] {
  return [...grownBlocks(null, text).blocks];
}

/** The blocks of a text that may grow, and where each begins. */
export interface Blocks {
  text: string;
  blocks: readonly string[];
  starts: readonly number[];
  /** How many stay as they are, and where the next begins stays, too: what its last line becomes may join the last one to it. */
  sure: number;
}

/** Return the blocks of `text`; where it begins with the text before, only that one's last two are looked at. */
export function grownBlocks(before: Blocks | null, text: string): Blocks {
  if (before === null || !text.startsWith(before.text)) return split(text);
  const { sure } = before;
  const start = before.starts[sure] ?? 0;
  const rest = split(text.slice(start));
  const blocks = [...before.blocks.slice(0, sure), ...rest.blocks];
  const starts = [...before.starts.slice(0, sure), ...rest.starts.map((at) => start + at)];
  return { text, blocks, starts, sure: sure + rest.sure };
}

function split(text: string): Blocks {
  const blocks: string[] = [];
  const starts = [0];
  let at = 0;
  let lines: string[] = [];
  let fence: string | null = null;
  let blank = false;
  for (const line of text.split("\n")) {
    const mark = FENCE.exec(line)?.[1];
    const goesOn = fence !== null || /^\s|^([-*+]|\d+[.)])\s/.test(line) || line === "";
    if (blank && !goesOn && lines.length > 0) {
      blocks.push(lines.join("\n").trimEnd());
      lines = [];
      starts.push(at);
    }
    if (mark && fence === null) fence = mark;
    else if (mark && fence !== null && mark.startsWith(fence) && line.trim() === mark) fence = null;
    lines.push(line);
    blank = line.trim() === "" && fence === null;
    at += line.length + 1;
  }
  blocks.push(lines.join("\n").trimEnd());
  return { text, blocks, starts, sure: Math.max(0, blocks.length - 2) };
}
