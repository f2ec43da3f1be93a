/**
 * The place in a conversation where reading goes on, held until the person moves the list.
 *
 * The list corrects itself for the blink of an eye only, while on a slow device rows are measured later, history comes
 * in parts, and a panel beside the chat takes its room when it is there. So the place is looked for again whenever
 * something was laid out. Not here: keeping places from page to page (`ui/left.ts`), drawing.
 */

import { useEffect, useLayoutEffect, useState, type RefObject } from "react";
import type { VirtuosoHandle } from "react-virtuoso";
import { rowOfTurn, textOfRow, type Row } from "./rows.ts";

/** A row by its key, and how far it has gone above the edge; its turn, where the row itself is not found. */
export interface Read {
  row: string;
  turn: string;
  above: number;
}

interface Shown {
  rows: readonly Row[];
  /** The number that the first row bears in the list. */
  first: number;
  /** Nothing comes above them any more. */
  whole: boolean;
}

interface Parts {
  frame: RefObject<HTMLElement | null>;
  list: RefObject<VirtuosoHandle | null>;
}

export interface HeldPlace {
  /** Null as soon as the person goes where they want to. */
  now: () => Read | null;
  /** Something was laid out anew. */
  look: () => void;
  free: () => void;
}

const SCROLLER = "[data-virtuoso-scroller]";
/** In so many frames a row that is far away is drawn, or is asked for again. */
const PATIENCE = 20;
const MOST_FRAMES = 600;

/** Return the first row that is seen, null where nothing is. */
export function readNow(frame: HTMLElement | null, { rows, first }: Shown): Read | null {
  const edge = frame?.getBoundingClientRect();
  if (!frame || !edge?.height) return null; // another page is shown already
  for (const element of frame.querySelectorAll<HTMLElement>("[data-item-index]")) {
    const { top, bottom } = element.getBoundingClientRect();
    const row = rows[Number(element.dataset["itemIndex"]) - first];
    if (row && bottom > edge.top) return { row: row.key, turn: turnOf(row), above: Math.round(edge.top - top) };
  }
  return null;
}

function turnOf(row: Row): string {
  return (row.kind === "work" ? row.entries[0]?.turn : row.entry.turn) ?? "";
}

/** Return where a place is among the rows, -1 while it may still come, null where it is gone. */
export function placeOfRead({ row, turn }: Read, { rows, whole }: Omit<Shown, "first">): number | null {
  const found = row ? rows.findIndex((one) => one.key === row) : -1;
  if (found >= 0) return found;
  // A text with footnotes is one row when it is complete.
  const text = row === textOfRow(row) ? -1 : rows.findIndex((one) => one.key === textOfRow(row));
  if (text >= 0) return text;
  // A turn is named: its first row is meant. Of a row that others took in, its turn is the nearest.
  const near = turn && (whole || !row) ? rowOfTurn(rows, turn) : -1;
  return near < 0 && whole ? null : near;
}

class Holder implements HeldPlace {
  shown: Shown = { rows: [], first: 0, whole: false };
  onFound: () => void = () => undefined;
  onGone: () => void = () => undefined;
  readonly #parts: Parts;
  #held: Read | null;
  #frame = 0;
  #tries = 0;
  /** Where the list stood when the place was right. */
  #right: { top: number; height: number } | null = null;

  constructor(parts: Parts, held: Read | null) {
    this.#parts = parts;
    this.#held = held;
  }

  readonly now = (): Read | null => this.#held;

  readonly free = (): void => {
    this.#held = null;
    cancelAnimationFrame(this.#frame);
  };

  readonly look = (): void => {
    if (!this.#held) return;
    cancelAnimationFrame(this.#frame);
    this.#tries = 0;
    this.#step();
  };

  /** Somebody else moved the list, by a search in the page or a screen reader: far, and nothing was laid out. */
  readonly scrolled = (): void => {
    const { frame } = this.#parts;
    const scroller = frame.current?.querySelector(SCROLLER);
    if (!this.#held || !this.#right || !scroller || !frame.current) return;
    const isFar = Math.abs(scroller.scrollTop - this.#right.top) > frame.current.clientHeight / 2;
    if (isFar && scroller.scrollHeight === this.#right.height) this.free();
  };

  readonly #step = (): void => {
    const frame = this.#parts.frame.current;
    const scroller = frame?.querySelector(SCROLLER);
    if (!this.#held || !frame?.clientHeight || !scroller) return;
    const at = placeOfRead(this.#held, this.shown);
    if (at === null) {
      this.free();
      this.onGone();
      return;
    }
    if (at < 0) return;
    this.onFound();
    const row = scroller.querySelector(`[data-item-index="${this.shown.first + at}"]`);
    if (!row) {
      if (this.#tries % PATIENCE === 0) this.#parts.list.current?.scrollToIndex({ index: at, align: "start", offset: this.#held.above });
    } else {
      const off = row.getBoundingClientRect().top - frame.getBoundingClientRect().top + this.#held.above;
      const before = scroller.scrollTop;
      if (Math.abs(off) >= 1) scroller.scrollTop = before + off;
      // It is there, or as near as the list goes.
      if (scroller.scrollTop === before) {
        this.#right = { top: before, height: scroller.scrollHeight };
        return;
      }
    }
    this.#tries += 1;
    if (this.#tries < MOST_FRAMES) this.#frame = requestAnimationFrame(this.#step);
  };
}

interface Told {
  /** The place is here; it may have come after other rows. */
  found: () => void;
  /** The conversation has no such place. */
  gone: () => void;
}

/** Hold `place` until the person moves the list. */
export function useHeldPlace(parts: Parts, place: Read | null, shown: Shown, told: Told): HeldPlace {
  const [holder] = useState(() => new Holder(parts, place));
  holder.shown = shown;
  holder.onFound = told.found;
  holder.onGone = told.gone;
  useLayoutEffect(() => holder.look(), [holder, shown.rows, shown.whole]);
  useEffect(() => {
    const frame = parts.frame.current;
    const scrolled = (): void => holder.scrolled();
    frame?.addEventListener("scroll", scrolled, { capture: true, passive: true });
    return () => {
      frame?.removeEventListener("scroll", scrolled, { capture: true });
      holder.free();
    };
  }, [holder, parts.frame]);
  return holder;
}
