/** Syntax colours of pieces of a diff, one line at a time; the highlighter is fetched when it is first needed. */

import { useEffect, useState } from "react";
import type { Line } from "../state/hunks.ts";
import type { Ranges } from "../state/word_edits.ts";
import type { ColourNode } from "../ui/code.tsx";

/** A run of characters of one colour. */
export interface Piece {
  text: string;
  colour: string;
  edited: boolean;
}

export type Colours = ReadonlyMap<Line, readonly Piece[]>;

const LONGEST_LINE = 2000;
const LINGERS_MS = 80;
const made = new WeakMap<readonly Line[], Colours>();

/** Return the colours of `lines` once they are known; what is scrolled past is never coloured. */
export function useLineColours(lines: readonly Line[], language: string | null): Colours | null {
  const [, redraw] = useState(0);
  const known = made.get(lines) ?? null;
  useEffect(() => {
    if (known || !language || lines.length === 0) return;
    let here = true;
    const colour = async (): Promise<void> => {
      const { highlight } = await import("../ui/highlight.ts");
      if (!here) return;
      if (!made.has(lines)) made.set(lines, colourLines(lines, (text) => highlight(text, language)));
      redraw((count) => count + 1);
    };
    const timer = setTimeout(() => {
      if (typeof requestIdleCallback === "function") requestIdleCallback(() => void colour(), { timeout: 500 });
      else void colour();
    }, LINGERS_MS);
    return () => {
      here = false;
      clearTimeout(timer);
    };
  }, [lines, language, known]);
  return known;
}

/** Colour both sides as texts of their own, so that a string that begins on a deleted line ends there. */
export function colourLines(lines: readonly Line[], highlight: (text: string) => readonly ColourNode[] | null): Colours {
  const colours = new Map<Line, readonly Piece[]>();
  if (lines.some((line) => line.content.length > LONGEST_LINE)) return colours;
  for (const side of ["delete", "insert"] as const) {
    const mine = lines.filter((line) => line.type === "normal" || line.type === side);
    if (side === "delete" && !mine.some((line) => line.type === "delete")) continue;
    try {
      const nodes = highlight(mine.map((line) => line.content).join("\n"));
      const rows = nodes ? byLine(nodes) : [];
      for (const [at, line] of mine.entries()) {
        const row = rows[at];
        if (row && (side === "insert" || line.type === "delete")) colours.set(line, row);
      }
    } catch {
      return colours; // a grammar that fails on this text: the lines are shown without colours
    }
  }
  return colours;
}

function byLine(nodes: readonly ColourNode[]): Piece[][] {
  const rows: Piece[][] = [[]];
  const walk = (list: readonly ColourNode[], colour: string): void => {
    for (const node of list) {
      if (node.type !== "text") {
        walk(node.children ?? [], `${colour} ${node.properties?.className?.join(" ") ?? ""}`.trim());
        continue;
      }
      for (const [at, text] of (node.value ?? "").split("\n").entries()) {
        if (at > 0) rows.push([]);
        if (text) rows.at(-1)?.push({ text, colour, edited: false });
      }
    }
  };
  walk(nodes, "");
  return rows;
}

/** Return a line's pieces with its changed words marked. */
export function withEdits(pieces: readonly Piece[], edits: Ranges | undefined): readonly Piece[] {
  if (!edits || edits.length === 0) return pieces;
  const out: Piece[] = [];
  let offset = 0;
  for (const piece of pieces) {
    let from = 0;
    for (const [start, end] of edits) {
      const [first, last] = [Math.max(start - offset, from), Math.min(end - offset, piece.text.length)];
      if (last <= first) continue;
      if (first > from) out.push({ ...piece, text: piece.text.slice(from, first) });
      out.push({ ...piece, text: piece.text.slice(first, last), edited: true });
      from = last;
    }
    if (from < piece.text.length) out.push({ ...piece, text: piece.text.slice(from) });
    offset += piece.text.length;
  }
  return out;
}
