/** Markdown cut into top-level blocks, so that a growing answer is parsed one block at a time (UI-16). Pure. */

const FENCE = /^ {0,3}(`{3,}|~{3,})/;

/**
 * Return the blocks of `text`; joined by blank lines they are the text again.
 *
 * A cut is made only where no construct can go on: after a blank line outside a fence, before a line that is
 * neither indented nor part of a list.
 */
export function splitBlocks(text: string): string[] {
  const blocks: string[] = [];
  let lines: string[] = [];
  let fence: string | null = null;
  let blank = false;
  for (const line of text.split("\n")) {
    const mark = FENCE.exec(line)?.[1];
    const goesOn = fence !== null || /^\s|^([-*+]|\d+[.)])\s/.test(line) || line === "";
    if (blank && !goesOn && lines.length > 0) {
      blocks.push(lines.join("\n").trimEnd());
      lines = [];
    }
    if (mark && fence === null) fence = mark;
    else if (mark && fence !== null && mark.startsWith(fence) && line.trim() === mark) fence = null;
    lines.push(line);
    blank = line.trim() === "" && fence === null;
  }
  const last = lines.join("\n").trimEnd();
  if (last || blocks.length === 0) blocks.push(last);
  return blocks;
}
